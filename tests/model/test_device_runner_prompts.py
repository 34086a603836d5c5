"""Steps with prompts on the device: replayed from graphs, they have the logits of the same steps launched kernel by kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu.device_graphs import StepGraphs
from tests.support.models.tiny_models import make_checkpoint

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
PARAMS = SamplingParams()
PROMPT = [(7 * i) % 250 for i in range(25)]


def steps() -> list[Step]:
    """Of rows with 1, 2, 7, 12 and 25 tokens: chunks, a shared prefix, a copied page, scores, drafts, and inputs that are not known yet."""
    first = Row(0, PROMPT[:25], 0, (3, 5, 1, 11), 0, True, PARAMS)
    pending = Row(0, [0], 25, (3, 5, 1, 11), 0, True, PARAMS, input_is_pending=True)
    chunk = Row(1, PROMPT[:12], 0, (2, 4, 9), 0, False, PARAMS)
    rest = Row(1, PROMPT[12:19], 12, (2, 4, 9), 0, True, PARAMS)
    branch = Row(2, [9, 8], 24, (3, 5, 1, 6), 24, True, PARAMS)
    copied = Row(3, [31], 25, (3, 5, 1, 7), 24, True, PARAMS)
    later = pending._replace(num_computed_tokens=26)
    after = Row(1, [0], 19, (2, 4, 9), 0, True, PARAMS, input_is_pending=True)
    drafted = Row(2, [7, 6, 5], 26, (3, 5, 1, 6), 0, True, PARAMS, num_draft_tokens=2)
    scored = Row(4, PROMPT[:2], 0, (8,), 0, False, PARAMS, score_token_ids=[3, 4])
    return [
        Step(0, (first,)),
        Step(1, (pending, chunk)),
        Step(2, (later, branch, copied, rest), copies=((11, 7),)),
        Step(3, (drafted, scored, after)),
    ]


@pytest.mark.parametrize("kv_dtype", ["auto", pytest.param("float8", marks=pytest.mark.long)])
def test_replayed_steps_have_the_logits_of_launched_ones(
    kv_dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a window of 24, in graphs that are not full; every one of the steps is replayed."""
    path = make_checkpoint(tmp_path, "mistral", num_hidden_layers=1)
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    config = RuntimeConfig(
        str(path),
        device=DEVICE,
        dtype="float32",
        kv_dtype=kv_dtype,
        page_size=8,
        num_pages=12,
        num_threads=1,
        max_rows=4,
        max_step_tokens=26,
    )
    runner = DeviceRunner(config)
    with monkeypatch.context() as few:
        few.setattr("rtlang.model.gpu.device_graphs.GRAPH_TOKENS", (8, 13, 26))
        runner.load()
    assert list(runner._graphs.steps) == [8, 13, 26]
    graphs, found = runner._graphs, []
    for each in (graphs, StepGraphs({}, config.page_size)):
        runner._graphs, results = each, []
        for step in steps():
            flight = runner.launch(step)
            logits = None if flight.logits is None else flight.logits.clone()
            runner.sample(flight, step.rows, None)
            rows = runner.collect(flight).rows
            tokens = [[token.token_id for token in row.tokens] for row in rows]
            results.append((tokens, logits, [score.logprob for row in rows for score in row.scores]))
        found.append(results)
    assert (runner.num_replayed, runner.num_eager) == (4, 4)
    for (tokens, logits, scores), (other_tokens, other_logits, other_scores) in zip(*found, strict=True):
        assert tokens == other_tokens
        assert logits is not None
        torch.testing.assert_close(logits, other_logits, rtol=1e-5, atol=1e-5)
        assert scores == pytest.approx(other_scores, abs=1e-5)
    assert [[len(row) for row in tokens] for tokens, *_ in found[0]] == [[1], [1, 0], [1, 1, 1, 1], [3, 0, 1]]
    runner.close()
