"""Steps with drafts on the device: each sampled token is the one that the CPU samples, from a graph and kernel by kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step, StepOutput
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu import device_graphs
from rtlang.model.gpu.accelerator import Accelerator, accelerator_for
from rtlang.model.host_runner import HostRunner
from tests.support.kernels.recorded_graphs import RecordedGraphs
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
PROMPT = [(7 * i) % 250 for i in range(35)]
GREEDY = SamplingParams(logprobs=2)
SEEDED = SamplingParams(temperature=0.9, top_k=40, top_p=0.95, logprobs=0)
CHANGED = SamplingParams(repetition_penalty=1.4, presence_penalty=0.6, frequency_penalty=0.5, logprobs=1)


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DeviceRunner, HostRunner]]:
    path: Path = make_checkpoint(tmp_path_factory.mktemp("llama"), "llama", num_hidden_layers=1)
    settings = {"model": str(path), "dtype": "float32", "num_pages": 12, "page_size": 16, "num_threads": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RTLANG_KERNELS", raising=False)
        host = HostRunner(RuntimeConfig(**settings))
        host.load()
        if DEVICE == "interpreter":
            patch.setenv("RTLANG_KERNELS", "triton")
        accelerator: Accelerator = RecordedGraphs() if DEVICE == "interpreter" else accelerator_for("cuda")
        config = RuntimeConfig(device=DEVICE, max_rows=2, max_step_tokens=64, speculation="on", **settings)
        runner = DeviceRunner(config, accelerator)
        with pytest.MonkeyPatch.context() as few:
            few.setattr(device_graphs, "GRAPH_TOKENS", (4, 8))
            runner.load()
        yield runner, host
    runner.close()
    host.close()


def outputs(runner: DeviceRunner | HostRunner, steps: list[Step], masks: list[np.ndarray | None]) -> list[StepOutput]:
    found = []
    for step, bitmask in zip(steps, masks, strict=True):
        flight = runner.launch(step)
        runner.sample(flight, step.rows, bitmask)
        found.append(runner.collect(flight))
    return found


def both(
    runners: tuple[DeviceRunner, HostRunner], monkeypatch: pytest.MonkeyPatch, steps: list[Step], masks: list[object]
) -> list[StepOutput]:
    """The results on the device, which must be those of the CPU."""
    runner, host = runners
    monkeypatch.delenv("RTLANG_KERNELS", raising=False)
    want = outputs(host, steps, masks)  # type: ignore[arg-type]
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    got = outputs(runner, steps, masks)  # type: ignore[arg-type]
    for mine, theirs in zip(got, want, strict=True):
        for a, b in zip(mine.rows, theirs.rows, strict=True):
            assert a.is_finite == b.is_finite
            assert [token.token_id for token in a.tokens] == [token.token_id for token in b.tokens]
            for x, y in zip(a.tokens, b.tokens, strict=True):
                assert (x.logprob is None) == (y.logprob is None)
                if x.logprob is not None and y.logprob is not None:
                    assert x.logprob.logprob == pytest.approx(y.logprob.logprob, abs=2e-4)
                    assert [token for token, _ in x.logprob.top] == [token for token, _ in y.logprob.top]
    return got


def drafting(row: Row, *drafts: int, **rest: object) -> Row:
    return row._replace(token_ids=[*row.token_ids, *drafts], num_draft_tokens=len(drafts), **rest)  # type: ignore[arg-type]


def prefill(params: SamplingParams = GREEDY) -> Step:
    rows = tuple(Row(index, PROMPT[index:], 0, pages, 0, True, params) for index, pages in enumerate(PAGES))
    return Step(0, rows)


PAGES = ((3, 5, 1), (2, 8, 4))


@pytest.mark.parametrize(("params", "lengths"), [(GREEDY, (2, 4)), (SEEDED, (3, 0))], ids=["greedy", "seeded"])
def test_every_draft_has_the_token_of_the_cpu_after_it(
    runners: tuple[DeviceRunner, HostRunner],
    monkeypatch: pytest.MonkeyPatch,
    params: SamplingParams,
    lengths: tuple[int, int],
) -> None:
    """Behind a prompt kernel by kernel, then from the graph for as many tokens, then one token each over what the drafts have left."""
    drafts = [9, 65, 14, 200, 31]
    first = [drafting(row, *drafts[: lengths[row.request_id]], seed=7) for row in prefill(params).rows]
    later = [
        drafting(
            Row(index, [40 + index], len(PROMPT) - index, pages, 0, True, params, seed=7, num_output_tokens=1),
            *drafts[: lengths[index]],
        )
        for index, pages in enumerate(PAGES)
    ]
    plain = [
        Row(index, [90], len(PROMPT) - index + 1, pages, 0, True, params, seed=7, num_output_tokens=2)
        for index, pages in enumerate(PAGES)
    ]
    runner = runners[0]
    before = runner.num_replayed, runner.num_eager
    got = both(runners, monkeypatch, [Step(0, tuple(first)), Step(1, tuple(later)), Step(2, tuple(plain))], [None] * 3)
    assert [len(row.tokens) for row in got[1].rows] == [length + 1 for length in lengths]
    assert (runner.num_replayed - before[0], runner.num_eager - before[1]) == (2, 1)


def test_masks_bans_and_penalties_are_those_of_each_draft(
    runners: tuple[DeviceRunner, HostRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = -(-VOCAB_SIZE // 32)
    rng = np.random.default_rng(3)
    bitmask = rng.integers(-(1 << 31), 1 << 31, (5, words)).astype(np.int32)
    bitmask[2] = 0  # no token is allowed after the second draft: what follows is left out
    free = Row(0, [41], len(PROMPT), PAGES[0], 0, True, CHANGED, prompt_token_ids=PROMPT, output_token_ids=[41, 6])
    free = drafting(free, 6, 6, 41, banned_token_ids=(77, 78), draft_bans=((5,), (), (6, 9)))
    masked = Row(1, [42], len(PROMPT) - 1, PAGES[1], 0, True, SEEDED, seed=3, num_output_tokens=2, mask_row=0)
    masked = drafting(masked, 50, 51, 52)
    got = both(runners, monkeypatch, [prefill(), Step(1, (free, masked), num_mask_rows=4)], [None, bitmask])
    assert [len(row.tokens) for row in got[1].rows] == [4, 2]
    for index, token in enumerate(got[1].rows[1].tokens):
        assert bitmask[index, token.token_id // 32] >> (token.token_id % 32) & 1


@pytest.mark.parametrize(
    ("max_rows", "speculation", "max_step_tokens", "largest"),
    [
        (2, "on", 64, (16, 64)),
        (2, "auto", 24, (2, 24)),
        (48, "on", 1024, (256, 1024)),
        (300, "on", 8192, (320, 2048)),
        (64, "auto", 8192, (64, 1024)),
        (64, "auto", 10, (64, 64)),
    ],
    ids=str,
)
def test_graphs_hold_eight_tokens_per_row_and_prompts_within_bounds(
    max_rows: int, speculation: str, max_step_tokens: int, largest: tuple[int, int]
) -> None:
    config = RuntimeConfig(device=DEVICE, max_rows=max_rows, speculation=speculation, max_step_tokens=max_step_tokens)
    graphs = DeviceRunner(config)._graph_sizes()
    sizes = list(graphs)
    assert sizes == sorted(set(sizes))
    assert (sizes[0], graphs.num_decoded, sizes[-1]) == (1, *largest)
    assert all(b - a - 1 <= b / 3 for a, b in pairwise(sizes) if b >= 24), "a third is padding at most"


def test_a_step_of_more_tokens_than_any_graph_is_launched_kernel_by_kernel(
    runners: tuple[DeviceRunner, HostRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runners[0]
    row = drafting(Row(0, [41], len(PROMPT), (*PAGES[0], 9), 0, True, GREEDY), *range(100, 116))
    before = runner.num_eager
    got = both(runners, monkeypatch, [prefill(), Step(1, (row,))], [None, None])
    assert runner.num_eager == before + 2
    assert len(got[1].rows[0].tokens) == 17
