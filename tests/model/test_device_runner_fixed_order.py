"""`deterministic=True` on the device's runner: the bits of a token are the same in every step, in triton's interpreter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu import device_graphs
from rtlang_kernels.planning import work_items
from rtlang_kernels.triton.attention import decode_plan
from tests.support.long_tests import is_long
from tests.support.models.model_steps import Pages, TrackedSequence, all_logits, next_row, ragged_logits
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
NUM_PAGES, PAGE_SIZE, SEGMENT = 96, 16, 64
PROMPT = [(7 * i) % 250 for i in range(63)]
GREEDY = SamplingParams(logprobs=2)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts of a few pages have several parts, and steps of more than 32 tokens are launched kernel by kernel."""
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", (1, 2, 32))
    monkeypatch.setattr(work_items, "SEGMENT", SEGMENT)
    monkeypatch.setattr(decode_plan, "SEGMENT", SEGMENT)
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")


def loaded(path: Path, **rest: Any) -> DeviceRunner:
    given = {"num_pages": NUM_PAGES, "page_size": PAGE_SIZE, "num_threads": 1, "max_rows": 2, "deterministic": True}
    runner = DeviceRunner(RuntimeConfig(model=str(path), device=DEVICE, **{**given, **rest}))
    runner.load()
    return runner


def alone(runner: DeviceRunner, token_ids: list[int]) -> torch.Tensor:
    """Logits of all tokens of a sequence in a step of its own."""
    row = next_row(TrackedSequence(token_ids), len(token_ids), Pages(NUM_PAGES, seed=9), PAGE_SIZE)
    return all_logits(runner, [row])[0]


def test_logits_do_not_depend_on_the_step(tmp_path: Path) -> None:
    """Alone, in chunks beside others, and among many rows."""
    path = make_checkpoint(tmp_path, "mistral", num_hidden_layers=1, num_key_value_heads=1)
    runner = loaded(path, dtype="float32")
    assert runner.is_row_invariant
    assert runner.decoder.is_row_invariant
    prompt = [*PROMPT, 5, 6, 7]
    want, sequence, pages = alone(runner, prompt), TrackedSequence(prompt), Pages(NUM_PAGES, seed=1)
    others = [TrackedSequence(PROMPT[:20]), TrackedSequence(PROMPT[:9])]
    for size in (50, 14, 2):
        rows = [next_row(each, size // 10 + 1, pages, PAGE_SIZE) for each in others]
        start = sequence.num_computed
        found = all_logits(runner, [rows[0], next_row(sequence, size, pages, PAGE_SIZE), rows[1]])[1]
        assert torch.equal(found, want[start : start + size])
    short = [[row, 1] for row in range(64)]
    want = alone(runner, short[0])
    for num_rows in (31, 64) if is_long() else (64,):
        pages = Pages(NUM_PAGES, seed=num_rows)
        rows = [next_row(TrackedSequence(ids), len(ids), pages, PAGE_SIZE) for ids in short[:num_rows]]
        assert torch.equal(all_logits(runner, rows)[0], want)


@pytest.mark.long
@pytest.mark.parametrize(("family", "dtype"), [("mistral", "float32"), ("qwen3", "bfloat16"), ("llama", "float16")])
def test_logits_of_ragged_steps_with_a_shared_prefix(family: str, dtype: str, tmp_path: Path) -> None:
    runner = loaded(make_checkpoint(tmp_path, family, num_hidden_layers=1), dtype=dtype)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        assert torch.equal(alone(runner, token_ids)[-len(logits) :], logits)


def test_replayed_steps_have_the_same_bits(tmp_path: Path) -> None:
    """A token in a replayed step of one and of two rows, beside a prompt, and as the last of a replayed and of a launched chunk."""
    runner = loaded(make_checkpoint(tmp_path, "llama", num_hidden_layers=1), dtype="float32")
    pages = tuple(range(6))
    other = Row(1, [9], 20, (10, 11), 0, True, GREEDY)
    before = Row(0, PROMPT, 0, pages, 0, False, GREEDY)
    companion = Row(1, PROMPT[:20], 0, (10, 11), 0, False, GREEDY)
    steps = [
        [Row(0, [5], len(PROMPT), pages, 0, True, GREEDY)],  # the first key of the second part follows
        [Row(0, [5], len(PROMPT), pages, 0, True, GREEDY), other],
        [Row(0, [5], len(PROMPT), pages, 0, True, GREEDY), Row(1, PROMPT[:20], 0, (10, 11), 0, False, GREEDY)],
        [Row(0, [*PROMPT[50:], 5], 50, pages, 0, True, GREEDY)],
        [Row(0, [*PROMPT[16:], 5], 16, pages, 0, True, GREEDY)],
    ]
    found = []
    for number, rows in enumerate([[before, companion], *steps]):
        flight = runner.launch(Step(number, tuple(rows)))
        runner.sample(flight, tuple(rows), None)
        found.append(runner.collect(flight).rows[0])
    assert (runner.num_replayed, runner.num_eager) == (4, 2)
    results = [(row.token_id, row.logprob) for row in found[1:]]
    assert results[0][1] is not None
    assert results == [results[0]] * len(steps)


def test_models_without_a_fixed_order_are_refused_by_name(tmp_path: Path) -> None:
    for family, what, rest in (
        ("qwen3", "torch's kernels", {"decoder": "transformers"}),
        ("gpt2", "expected False for this model on a GPU", {}),
    ):
        path = make_checkpoint(tmp_path / family, family, num_hidden_layers=1)
        with pytest.raises(ConfigError, match=what) as refused:
            loaded(path, dtype="float32", **rest)
        assert refused.value.field == "deterministic"
    with pytest.raises(ConfigError, match="requires tensor_parallel 1"):
        RuntimeConfig(device="cuda", deterministic=True, tensor_parallel=2)
