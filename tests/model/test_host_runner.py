"""Steps through the whole model layer: published weights, copies, scores, failing rows, sizes."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model import host_runner as runner_module
from rtlang.model import system_resources
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import PagedKV
from tests.support.models.model_steps import STORIES, Pages, TrackedSequence, greedy_tokens, next_row, run_step
from tests.support.models.tiny_models import make_checkpoint, make_model

PARAMS = SamplingParams()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("llama"), "llama")


def load_runner(path: Path, **settings: Any) -> HostRunner:
    defaults = {"model": str(path), "dtype": "float32", "num_pages": 64, "page_size": 4, "num_threads": 1}
    runner = HostRunner(RuntimeConfig(**{**defaults, **settings}))
    runner.load()
    return runner


def expected_logprobs(token_ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return torch.log_softmax(make_model("llama")(torch.tensor([token_ids])).logits[0].double(), -1)


@pytest.mark.skipif(not STORIES.is_dir(), reason="needs the published stories260k weights")
@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_the_published_story_comes_out_token_for_token(decoder: str) -> None:
    expected = json.loads((STORIES / "greedy_reference.json").read_text())["greedy_ids"]
    runner = load_runner(STORIES, decoder=decoder, num_pages=80)
    assert len(expected) >= 256
    assert greedy_tokens(runner, expected[:1], 256) == expected[1:257]


@pytest.mark.skipif(not STORIES.is_dir(), reason="needs the published stories260k weights")
def test_the_story_is_the_same_in_a_batch_over_shared_pages() -> None:
    expected = json.loads((STORIES / "greedy_reference.json").read_text())["greedy_ids"]
    runner = load_runner(STORIES, num_pages=80)
    pages, whole = Pages(80), TrackedSequence(expected[:200])
    runner.launch(Step(0, (next_row(whole, 100, pages, 4),)))
    runner.launch(Step(1, (next_row(whole, 100, pages, 4),)))
    starts = (40, 80, 120, 199)
    sharers = [
        TrackedSequence(expected[:start], start // 4 * 4 - 4, whole.page_ids[: start // 4 - 1]) for start in starts
    ]
    rows = []
    for index, sharer in enumerate(sharers):
        sharer.num_shared = len(sharers[index - 1].page_ids) * 4 - 8 if index else 0
        rows.append(next_row(sharer, len(sharer.token_ids) - sharer.num_computed, pages, 4, needs_sample=True))
    rows = [row._replace(num_shared_tokens=_common(rows, index)) for index, row in enumerate(rows)]
    output = run_step(runner, Step(2, tuple(rows)))
    assert [row.token_id for row in output.rows] == [expected[start] for start in starts]


def _common(rows: list[Row], index: int) -> int:
    """Tokens in leading pages that a row has in common with the row before."""
    if index == 0:
        return 0
    count = 0
    for mine, theirs in zip(rows[index].page_ids, rows[index - 1].page_ids, strict=False):
        if mine != theirs:
            break
        count += 4
    return count


def test_copies_are_done_before_the_rows_are_computed(checkpoint: Path) -> None:
    runner = load_runner(checkpoint)
    prompt = list(range(30, 44))
    expected = greedy_tokens(load_runner(checkpoint), prompt, 1)[0]
    runner.launch(Step(0, (Row(0, prompt[:10], 0, (0, 1, 2), 0, False, PARAMS),)))
    # the third page is half full: its two tokens go on in a copy, whose original keeps its content
    row = Row(1, prompt[10:], 10, (0, 1, 7, 8), 0, True, PARAMS)
    output = run_step(runner, Step(1, (row,), copies=((2, 7),)))
    assert output.step_id == 1
    assert output.rows[0].token_id == expected
    for tensor in (*runner.kv.k, *runner.kv.v):
        assert torch.equal(tensor[8:10], tensor[28:30])
        assert bool((tensor[10:12] == 0).all())


def test_scores_equal_the_log_probabilities_of_transformers(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_SCORE_CHUNK_BYTES", 3 * 4 * 259)  # three tokens at a time
    runner = load_runner(checkpoint)
    first, second = list(range(10, 24)), list(range(60, 67))
    rows = (
        Row(0, first, 0, (0, 1, 2, 3), 0, True, PARAMS, score_offset=2, score_token_ids=first[3:], num_score_top=2),
        Row(1, [9], 0, (9,), 0, True, PARAMS),
        Row(2, second, 0, (5, 6), 0, False, PARAMS, score_token_ids=second[1:]),
    )
    output = run_step(runner, Step(0, rows))
    table = expected_logprobs(first)
    assert output.rows[0].token_id == int(table[-1].argmax())
    assert output.rows[1].scores == ()
    assert output.rows[2].token_id is None
    assert len(output.rows[0].scores) == 11
    for position, score in enumerate(output.rows[0].scores, start=2):
        assert score.token_id == first[position + 1]
        assert score.logprob == pytest.approx(float(table[position, score.token_id]), abs=2e-4)
        best = table[position].topk(2)
        assert [token_id for token_id, _ in score.top] == best.indices.tolist()
        assert [value for _, value in score.top] == pytest.approx(best.values.tolist(), abs=2e-4)
    table = expected_logprobs(second)
    assert [score.logprob for score in output.rows[2].scores] == pytest.approx(
        [float(table[position, token_id]) for position, token_id in enumerate(second[1:])], abs=2e-4
    )


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_a_scoring_row_before_a_sampling_one_keeps_its_logits(checkpoint: Path, decoder: str) -> None:
    runner = load_runner(checkpoint, decoder=decoder)
    scored, sampled = [30, 31, 32], [40, 41, 42, 43]
    runner.launch(
        Step(0, (Row(0, scored[:2], 0, (0,), 0, False, PARAMS), Row(1, sampled[:3], 0, (1,), 0, False, PARAMS)))
    )
    rows = (  # as many logits as tokens, in another order
        Row(0, scored[2:], 2, (0,), 0, False, PARAMS, score_token_ids=[77]),
        Row(1, sampled[3:], 3, (1,), 0, True, PARAMS),
    )
    output = run_step(runner, Step(1, rows))
    assert output.rows[0].scores[0].logprob == pytest.approx(float(expected_logprobs(scored)[-1, 77]), abs=2e-4)
    assert output.rows[1].token_id == int(expected_logprobs(sampled)[-1].argmax())


def test_rows_that_neither_sample_nor_score_cost_no_logits(checkpoint: Path) -> None:
    runner = load_runner(checkpoint)
    projected: list[int] = []
    project = runner.decoder.project
    runner.decoder.project = lambda states: (projected.append(len(states)), project(states))[1]  # type: ignore[method-assign]
    silent = Row(0, [1, 2, 3], 0, (0,), 0, False, PARAMS)
    output = run_step(runner, Step(0, (silent,)))
    assert output.rows[0].token_id is None
    assert output.rows[0].is_finite
    assert projected == []
    run_step(runner, Step(1, (silent, Row(1, [4, 5], 0, (1,), 0, True, PARAMS))))
    assert projected == [1]


def test_a_row_with_poisoned_pages_fails_alone(checkpoint: Path) -> None:
    runner = load_runner(checkpoint)
    rows = tuple(Row(index, [5, 6, 7], 0, (index,), 0, False, PARAMS) for index in range(3))
    runner.launch(Step(0, rows))
    runner.kv.v[0][4] = torch.nan
    step = Step(1, tuple(Row(index, [8], 3, (index,), 0, True, PARAMS) for index in range(3)))
    output = run_step(runner, step)
    assert [row.is_finite for row in output.rows] == [True, False, True]
    assert output.rows[1].token_id is None
    assert output.rows[0].token_id == output.rows[2].token_id is not None
    scoring = Row(1, [8], 3, (1,), 0, False, PARAMS, score_token_ids=[9])
    assert not run_step(runner, Step(2, (scoring,))).rows[0].is_finite


def test_a_mask_given_at_collect_is_obeyed(checkpoint: Path) -> None:
    import numpy as np

    runner = load_runner(checkpoint)
    rows = (Row(0, [1], 0, (0,), 0, True, PARAMS, mask_row=1), Row(1, [1], 0, (1,), 0, True, PARAMS))
    bitmask = np.zeros((2, 9), dtype=np.int32)
    bitmask[1, 2] = 1 << 7
    output = run_step(runner, Step(0, rows, num_mask_rows=2), bitmask)
    assert output.rows[0].token_id == 71
    assert output.rows[1].token_id == greedy_tokens(load_runner(checkpoint), [1], 1)[0]


def test_penalties_reach_the_draw(checkpoint: Path) -> None:
    runner = load_runner(checkpoint)
    plain = greedy_tokens(runner, [1, 2, 3], 1)[0]
    params = SamplingParams(presence_penalty=50.0)
    assert greedy_tokens(runner, [1, 2, 3], 1, params=params, output_token_ids=(plain,))[0] != plain


def test_the_pool_is_sized_by_pages_or_bytes(checkpoint: Path) -> None:
    page_bytes = PagedKV.bytes_per_page(load_runner(checkpoint).decoder.geometries, 4, torch.float32)
    assert page_bytes == 2 * 4 * 2 * (16 + 16) * 4
    assert load_runner(checkpoint, num_pages=9).num_pages == 9
    assert load_runner(checkpoint, num_pages=None, cache_bytes=10 * page_bytes + 5).num_pages == 10
    with pytest.raises(ConfigError, match="at least two pages are needed"):
        load_runner(checkpoint, num_pages=None, cache_bytes=page_bytes)


def test_without_a_setting_the_pool_has_room_for_usual_sequences(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(system_resources.SHARED_BY, raising=False)
    runner = load_runner(checkpoint, num_pages=None, max_model_len=512)
    page_bytes, longest = 4096, 512 // runner.config.page_size
    usual = 65 * longest
    for total, free, expected in (
        (1 << 40, 1 << 40, usual),
        (1 << 40, 40 * page_bytes, 20),  # half of what is free
        (400 * page_bytes, 1 << 40, max(100, longest)),  # a quarter of memory
        (8 * page_bytes, 1 << 40, longest),  # the longest sequence
    ):
        monkeypatch.setattr(system_resources, "total_bytes", lambda total=total: total)
        monkeypatch.setattr(system_resources, "free_bytes", lambda free=free: free)
        assert runner._pick_sizes(page_bytes, 0) == (expected, 0)
    monkeypatch.undo()
    assert runner.num_pages == usual


def test_a_pool_that_does_not_fit_is_refused_with_the_numbers(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_resources, "free_bytes", lambda: 1 << 20)
    with pytest.raises(ConfigError, match="only 1,048,576 are free"):
        load_runner(checkpoint, num_pages=1 << 20)
    with pytest.raises(ConfigError, match="only 1,048,576 bytes of memory are free"):
        load_runner(checkpoint, num_pages=None, cache_bytes=1 << 21)


def test_states_share_the_cache_with_pages_and_their_sizes_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = make_checkpoint(tmp_path, "mamba")
    with caplog.at_level(logging.INFO, logger="rtlang.model.host_runner"):
        runner = load_runner(path, num_pages=None, cache_bytes=200_000, page_size=16)
    assert runner.state_memory is not None
    state_bytes = runner.state_memory.state_bytes
    assert (runner.num_states, runner.page_memory.page_bytes) == (200_000 // state_bytes, 0)
    assert f"state pool of {runner.num_states} states of {state_bytes / 1024:.3g} KiB" in caplog.text
    with pytest.raises(ConfigError, match=r"cache_bytes.*a state takes [\d,]+ bytes .* there is room for 1 and"):
        load_runner(path, num_pages=None, cache_bytes=state_bytes + 5)


def test_models_without_recurrent_layers_have_no_states(checkpoint: Path) -> None:
    runner = load_runner(checkpoint)
    assert (runner.num_states, runner.state_memory) == (0, None)


def test_the_longest_sequence_is_the_setting_or_the_checkpoints(checkpoint: Path) -> None:
    assert load_runner(checkpoint).max_model_len == 512
    assert load_runner(checkpoint, max_model_len=100).max_model_len == 100
    with pytest.raises(ConfigError, match="at most 512"):
        load_runner(checkpoint, max_model_len=513)
