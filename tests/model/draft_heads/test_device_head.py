"""A draft head on a device: drafts and keys are those of the head on the CPU, from graphs and kernel by kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu import device_graphs
from rtlang.model.host_runner import HostRunner
from tests.support.models.draft_heads import EAGLE, EAGLE_3, write_head
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint, make_model

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
PAGE = 8
SEEDED = SamplingParams(temperature=0.9, top_p=0.9)
PAGES = (3, 5, 1, 7)


def greedy(name: int, token_ids: list[int], start: int, **options: Any) -> Row:
    return Row(name, token_ids, start, PAGES, 0, True, SamplingParams(), **options)


def sampled(runner: Any, step: Step) -> list[int]:
    flight = runner.launch(step)
    runner.sample(flight, step.rows, None)
    return [token.token_id for row in runner.collect(flight).rows for token in row.tokens]


def drafts(runner: Any, token_id: int, start: int) -> list[int]:
    """Greedy, sampled and masked drafts after a token at a position."""
    bitmask = np.zeros((1, -(-VOCAB_SIZE // 32)), dtype=np.int32)
    bitmask[0, 2] = 0b1011  # tokens 64, 65 and 67
    found = []
    for number, (params, mask_row) in enumerate(((SamplingParams(), None), (SEEDED, None), (SEEDED, 0))):
        row = Row(
            1, [token_id], start + number, PAGES, 0, True, params, seed=5, num_output_tokens=number, mask_row=mask_row
        )
        step = Step(number, (row,))
        flight = runner.head.launch(step)
        runner.head.sample(flight, step.rows, None if mask_row is None else bitmask)
        (output,) = runner.head.collect(flight).rows
        token_id = output.tokens[0].token_id
        found.append(token_id)
    return found


@pytest.mark.parametrize(("layout", "graph_tokens"), [(EAGLE, (4, 16)), (EAGLE_3, (2,))])
def test_drafts_are_those_of_the_cpu(
    layout: str, graph_tokens: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = {"num_hidden_layers": 1 if layout == EAGLE else 3}
    target = make_checkpoint(tmp_path / "target", **layers)
    head = write_head(tmp_path / "head", layout, make_model(**layers), tapped=[0, 1, 2])
    settings: dict[str, Any] = {
        "model": str(target),
        "draft_model": str(head),
        "dtype": "float32",
        "num_pages": 12,
        "page_size": PAGE,
        "num_threads": 1,
    }
    prompt = [(7 * at) % 250 for at in range(11)]
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", graph_tokens)
    results = []
    for device in ("cpu", DEVICE):
        if device == "interpreter":
            monkeypatch.setenv("RTLANG_KERNELS", "triton")
        else:
            monkeypatch.delenv("RTLANG_KERNELS", raising=False)
        runner: Any
        if device == "cpu":
            runner = HostRunner(RuntimeConfig(**settings))
        else:
            config = RuntimeConfig(device=device, max_rows=2, max_step_tokens=64, speculation="on", **settings)
            runner = DeviceRunner(config)
        runner.load()
        assert runner.num_pages == 12
        (first,) = sampled(runner, Step(1, (greedy(1, prompt, 0),)))
        # on a device, the token that was sampled last need not be known
        is_pending = device != "cpu"
        row = greedy(1, [0 if is_pending else first], len(prompt), input_is_pending=is_pending)
        (second,) = sampled(runner, Step(2, (row,)))
        found = [first, second, *drafts(runner, second, len(prompt) + 1)]
        verified = sampled(runner, Step(3, (greedy(1, [second, *found[2:4]], len(prompt) + 1, num_draft_tokens=2),)))
        found += [verified[0], *drafts(runner, verified[0], len(prompt) + 2)]
        slots = torch.tensor([PAGES[at // PAGE] * PAGE + at % PAGE for at in range(len(prompt) + 2)])
        results.append((found, verified, runner.kv.k[-1].index_select(0, slots.to(runner.kv.device)).cpu()))
        if device != "cpu":
            assert runner.num_replayed == (3 if layout == EAGLE else 1)
        runner.close()
    assert results[0][:2] == results[1][:2]
    assert torch.allclose(results[0][2], results[1][2], atol=1e-4)
