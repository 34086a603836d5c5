"""The device's runner on two ranks, in triton's interpreter: replayed and other steps, and tokens that only a device knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import Words
from tests.support.models.tiny_models import make_checkpoint

pytestmark = pytest.mark.long

PROMPT, NUM_TOKENS = [5, 80, 33, 7, 120, 9], 5
PARAMS = SamplingParams()


def tokens_and_scores(path: Path, **settings: Any) -> tuple[list[int | None], list[float], int, int]:
    """Scores of a prompt, then tokens after it, each step launched before the results of the one before are known."""
    config = RuntimeConfig(
        model=str(path), device="interpreter", dtype="float32", num_pages=4, num_threads=1, max_rows=1, **settings
    )
    runner = DeviceRunner(config)
    runner.load()
    try:
        scored = Row(3, PROMPT, 0, (1,), 0, False, PARAMS, score_token_ids=PROMPT[1:])
        flight = runner.launch(Step(0, (scored,)))
        runner.sample(flight, (scored,), None)
        scores = [each.logprob for each in runner.collect(flight).rows[0].scores]
        rows = [Row(7, PROMPT, 0, (0,), 0, True, PARAMS)]
        rows += [
            Row(7, (0,), len(PROMPT) + index, (0,), 0, True, PARAMS, num_output_tokens=index + 1, input_is_pending=True)
            for index in range(NUM_TOKENS - 1)
        ]
        flights = []
        for index, row in enumerate(rows):
            flights.append(runner.launch(Step(index + 1, (row,))))
            runner.sample(flights[-1], (row,), None)
        tokens = [runner.collect(flight).rows[0].token_id for flight in flights]
        return tokens, scores, runner.num_replayed, runner.num_eager
    finally:
        runner.close()


def test_two_ranks_give_the_tokens_of_one_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    path = make_checkpoint(tmp_path, "llama", num_hidden_layers=1)
    tokens, scores, num_replayed, num_eager = tokens_and_scores(path)
    found = tokens_and_scores(path, tensor_parallel=2)
    assert found[0] == tokens
    assert found[1] == pytest.approx(scores, abs=1e-4)
    assert found[2:] == (num_replayed, num_eager) == (NUM_TOKENS, 1)


class Doubting(RankGroup):
    """A rank 0 whose other rank cannot capture graphs."""

    def smallest(self, number: int) -> int:
        return number if number > 1 else 0

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def broadcast(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def send(self, message: Words) -> None:
        """There is nobody."""


def test_no_rank_has_graphs_that_another_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    path = make_checkpoint(tmp_path, "llama", num_hidden_layers=1)
    runner = DeviceRunner(
        RuntimeConfig(
            model=str(path),
            device="interpreter",
            dtype="float32",
            num_pages=4,
            num_threads=1,
            max_rows=1,
            tensor_parallel=2,
        ),
        group=Doubting(0, 2, None, None),
    )
    with caplog.at_level("WARNING"):
        runner.load()
    assert runner._graphs.steps == {}
    assert "another rank cannot do it" in caplog.text
    runner.close()
