"""The device's runner with a recurrent layer, in triton's interpreter: logits are those of whole sequences, and slots keep their states."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model import device_runner
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu import device_graphs
from tests.support.kernels.recorded_graphs import RecordedGraphs
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.recurrent_decoder import RecurrentDecoder
from tests.support.models.tiny_models import make_checkpoint, random_model, save_checkpoint

pytestmark = pytest.mark.skipif(
    os.environ.get("RTLANG_TEST_DEVICE") == "cuda", reason="graphs are recorded, and weights lie on the host"
)
PARAMS = SamplingParams(temperature=0, logprobs=0)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("llama"), num_hidden_layers=1)


def settings(path: Path, **rest: Any) -> RuntimeConfig:
    given: dict[str, Any] = {
        "num_pages": 12,
        "page_size": 4,
        "num_threads": 1,
        "max_rows": 4,
        "max_model_len": 40,
        **rest,
    }
    return RuntimeConfig(str(path), device="interpreter", dtype="float32", **given)


def loaded(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, *, has_attention: bool = True, **rest: Any
) -> tuple[DeviceRunner, RecurrentDecoder]:
    """A runner with a recurrent decoder in the place of the model, and a graph for 4 tokens."""
    load = device_runner.load_model
    found: list[RecurrentDecoder] = []

    def replaced(*args: Any) -> Any:
        _, config, tokenizer = load(*args)
        found.append(RecurrentDecoder(config.vocab_size, has_attention=has_attention))
        return found[0], config, tokenizer

    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setattr(device_runner, "load_model", replaced)
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", (4,))
    runner = DeviceRunner(settings(checkpoint, **rest), RecordedGraphs())
    runner.load()
    return runner, found[0]


def check(runner: DeviceRunner, decoder: RecurrentDecoder | StockModel, rows: list[tuple[Row, list[int]]]) -> None:
    """Compute rows, each given with the tokens before it, and compare tokens and log-probabilities."""
    step = Step(0, tuple(row for row, _ in rows))
    flight = runner.launch(step)
    runner.sample(flight, step.rows, None)
    for (row, before), found in zip(rows, runner.collect(flight).rows, strict=True):
        exact = decoder.exact([*before, *row.token_ids])[-row.num_sampled :].log_softmax(1)
        assert [token.token_id for token in found.tokens] == exact.argmax(1).tolist()
        for token, want in zip(found.tokens, exact.amax(1).tolist(), strict=True):
            assert token.logprob is not None
            assert token.logprob.logprob == pytest.approx(want, abs=1e-4)


def test_logits_are_those_of_whole_sequences(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, decoder = loaded(checkpoint, monkeypatch)
    assert runner.num_states >= 8
    a, b = [5, 9, 2, 7, 7, 1, 3], [5, 9, 2, 7, 4]

    def row(
        tokens: list[int], start: int, pages: list[int], source: int | None, *marks: tuple[int, int], **rest: Any
    ) -> tuple[Row, list[int]]:
        own = Row(pages[-1], tokens[start:], start, pages, 0, True, PARAMS, states=RowStates(source, marks), **rest)
        return own, tokens[:start]

    check(runner, decoder, [row(a, 0, [3, 5], None, (4, 2), (7, 0)), row(b[:3], 0, [7, 8], None, (3, 1))])
    check(runner, decoder, [row(b, 3, [7, 8], 1, (2, 1)), row(a[:6], 4, [3, 6], 2, (2, 3))])  # a fork at the checkpoint
    assert (runner.num_replayed, runner.num_eager) == (1, 1), "the graph has 4 tokens"
    kept = [tensor.clone() for tensor in states_of(runner)]
    a, b = [*a, 8], [*b, 6]
    check(runner, decoder, [row(a, 7, [3, 5], 0, (1, 0)), row(b, 5, [7, 8], 1, (1, 4), num_draft_tokens=0)])
    for before, after in zip(kept, states_of(runner), strict=True):
        changed = [slot for slot in range(runner.num_states) if not torch.equal(before[slot], after[slot])]
        assert changed == [0, 4], "padding keeps no state"
    drafted = [*b, 1, 2, 3]  # the last two are drafts, which leave no trace
    check(
        runner,
        decoder,
        [row(drafted, 6, [7, 8, 9], 4, (1, 4), num_draft_tokens=2), row([*a, 4], 8, [3, 5, 10], 0, (1, 0))],
    )
    check(runner, decoder, [row([*b, 1, 9], 7, [7, 8, 9], 4, (1, 4))])
    assert (runner.num_replayed, runner.num_eager) == (4, 1)
    page = [part[:, 20:24].clone() for part in pages_of(runner)]
    replayed = row(a[:5], 4, [3, 5], 2, (1, 5), num_replayed_tokens=1)
    check(runner, decoder, [replayed])
    assert (runner.num_replayed, runner.num_eager) == (5, 1)
    assert all(torch.equal(was, part[:, 20:24]) for was, part in zip(page, pages_of(runner), strict=True))
    runner.close()
    assert runner.states is None


def states_of(runner: DeviceRunner) -> list[torch.Tensor]:
    assert runner.states is not None
    return [runner.states.of(0, name) for name in ("conv", "recurrent")]


def pages_of(runner: DeviceRunner) -> list[torch.Tensor]:
    return [part[None] for part in (*runner.kv.k, *runner.kv.v)]


def test_a_model_without_attention_is_replayed_from_graphs(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, decoder = loaded(checkpoint, monkeypatch, has_attention=False)
    tokens = [5, 9, 2, 7, 7]
    first = Row(0, tokens[:4], 0, [1, 2], 0, True, PARAMS, states=RowStates(None, ((4, 0),)))
    check(runner, decoder, [(first, [])])
    after = Row(0, tokens[4:], 4, [1, 2], 0, True, PARAMS, states=RowStates(0, ((1, 0),)))
    check(runner, decoder, [(after, tokens[:4])])
    assert (runner.num_replayed, runner.num_eager) == (2, 0)


@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "model_type",
    [
        pytest.param(each, marks=() if each == "lfm2" else pytest.mark.long)
        for each in dict.fromkeys(family.model_type for family in FAMILIES if family.has_states)
    ],
)
def test_families_of_transformers_have_the_logits_of_the_stock_model(
    model_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (family,) = (each for each in FAMILIES if each.model_type == model_type)
    model = random_model(make_config(family))
    model.set_attn_implementation("eager")
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", (2,))
    runner = DeviceRunner(settings(save_checkpoint(model, tmp_path), max_rows=2), RecordedGraphs())
    runner.load()
    stock = StockModel(model)
    a, b = [5, 9, 2, 7, 7, 1, 3, 8, 4], [5, 9, 2, 7, 7, 6]

    def row(tokens: list[int], start: int, page: int, slot: int) -> tuple[Row, list[int]]:
        states = RowStates(slot if start else None, ((len(tokens) - start, slot),))
        return Row(slot, tokens[start:], start, [page, page + 1, page + 2], 0, True, PARAMS, states=states), tokens[
            :start
        ]

    check(runner, stock, [row(a[:6], 0, 3, 0)])
    check(runner, stock, [row(b, 0, 7, 1), row(a[:7], 6, 3, 0)])
    check(runner, stock, [row([*b, 2], 6, 7, 1), row(a[:8], 7, 3, 0)])
    check(runner, stock, [row(a, 8, 3, 0)])
    assert (runner.num_replayed, runner.num_eager) == (2, 2)


@dataclass(frozen=True)
class StockModel:
    """A model of transformers alone."""

    model: Any

    def exact(self, token_ids: list[int]) -> torch.Tensor:
        with torch.inference_mode():
            logits: torch.Tensor = self.model(input_ids=torch.tensor([token_ids]), use_cache=False).logits[0]
        return logits.double()


def test_too_little_memory_for_states_is_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="2 states of 704 bytes and three pages are needed"):
        loaded(checkpoint, monkeypatch, num_pages=None, cache_bytes=2500)
