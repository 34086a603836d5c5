"""Drives a model runner with hand-made steps, as an engine would: ragged, chunked, over shared pages, greedily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step, StepOutput
from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import PagedKV, StepAttention

STORIES = Path(__file__).resolve().parents[4] / "shared" / "models" / "stories260k"  # published weights; may be absent


@dataclass(frozen=True)
class StepRunner:
    """A decoder and its pages, without the rest of a runner: enough to compute logits."""

    decoder: Decoder
    kv: PagedKV


@dataclass
class TrackedSequence:
    """A sequence under computation: its tokens, how many are computed, and its pages."""

    token_ids: list[int]
    num_computed: int = 0
    page_ids: list[int] = field(default_factory=list)
    num_shared: int = 0  # with the sequence before it in the step


class Pages:
    """Hands out page ids in a scattered order, never twice."""

    def __init__(self, num_pages: int, seed: int = 0) -> None:
        self._free: list[int] = torch.randperm(num_pages, generator=torch.Generator().manual_seed(seed)).tolist()

    def grow(self, sequence: TrackedSequence, num_tokens: int, page_size: int) -> None:
        """Give `sequence` pages for num_tokens tokens."""
        while len(sequence.page_ids) * page_size < num_tokens:
            sequence.page_ids.append(self._free.pop())


def next_row(sequence: TrackedSequence, num_tokens: int, pages: Pages, page_size: int, **options: Any) -> Row:
    """The row that computes the next num_tokens tokens of `sequence`, which is moved on."""
    start, stop = sequence.num_computed, sequence.num_computed + num_tokens
    pages.grow(sequence, stop, page_size)
    sequence.num_computed = stop
    settings: dict[str, Any] = {"needs_sample": False, "params": SamplingParams(), **options}
    return Row(
        request_id=id(sequence),
        token_ids=tuple(sequence.token_ids[start:stop]),
        num_computed_tokens=start,
        page_ids=tuple(sequence.page_ids),
        num_shared_tokens=sequence.num_shared,
        **settings,
    )


def all_logits(runner: HostRunner | StepRunner, rows: Sequence[Row]) -> list[torch.Tensor]:
    """Logits of every token of every row, float32 [q_len, vocab_size] per row."""
    scored = [
        Row(
            row.request_id,
            row.token_ids,
            row.num_computed_tokens,
            row.page_ids,
            row.num_shared_tokens,
            False,
            row.params,
            score_token_ids=row.token_ids,
        )
        for row in rows
    ]
    batch = Batch.from_step(Step(0, tuple(scored)), runner.kv.page_size)
    with torch.inference_mode():
        logits = runner.decoder.project(runner.decoder.forward(StepAttention(batch, runner.kv)))
    return list(logits.float().split([len(row.token_ids) for row in rows]))


def ragged_logits(
    runner: HostRunner | StepRunner, vocab_size: int, seed: int = 0
) -> list[tuple[list[int], torch.Tensor]]:
    """Four sequences through the runner in ragged chunks; the last shares pages with the third, some of them within one step.

    Returns:
        Each sequence's token ids and the logits of all its tokens that were computed for it, float32 [num, vocab_size];
        of the last one only those after the shared part.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> list[int]:
        return torch.randint(0, vocab_size, (count,), generator=generator).tolist()

    page_size = runner.kv.page_size
    shared = 5 * page_size  # 20 tokens at a page size of 4
    a, b, c = TrackedSequence(draw(13)), TrackedSequence(draw(31)), TrackedSequence(draw(shared + 24))
    d = TrackedSequence(c.token_ids[:shared] + draw(9))
    pages = Pages(runner.kv.num_pages, seed)
    parts: dict[int, list[torch.Tensor]] = {id(item): [] for item in (a, b, c, d)}
    # tokens of a, b, c, d per step; d starts in the very step in which c computes the part they share
    plan = [(5, 9, 7, 0), (1, 1, shared - 7 + 4, 5), (3, 20, 1, 1), (1, 1, 10, 2), *[(1, 1, 1, 1)] * 12]
    for counts in plan:
        rows, order = [], []
        for item, count in zip((a, b, c, d), counts, strict=True):
            count = min(count, len(item.token_ids) - item.num_computed)
            if count <= 0:
                continue
            if item is d:
                if not d.page_ids:
                    d.page_ids, d.num_computed = c.page_ids[:5], shared
                d.num_shared = shared if order and order[-1] is c else 0
            rows.append(next_row(item, count, pages, page_size))
            order.append(item)
        if rows:
            for item, logits in zip(order, all_logits(runner, rows), strict=True):
                parts[id(item)].append(logits)
    return [(item.token_ids, torch.cat(parts[id(item)])) for item in (a, b, c, d)]


def run_step(runner: HostRunner, step: Step, bitmask: NDArray[np.int32] | None = None) -> StepOutput:
    """Launch, sample and collect one step."""
    flight = runner.launch(step)
    runner.sample(flight, step.rows, bitmask)
    return runner.collect(flight)


def greedy_tokens(runner: HostRunner, prompt: Sequence[int], num_tokens: int, **options: Any) -> list[int]:
    """Generate alone, one token per step after the prompt; `options` go to every row."""
    sequence, pages = TrackedSequence(list(prompt)), Pages(runner.num_pages)
    drawn: list[int] = []
    while len(drawn) < num_tokens:
        count = len(sequence.token_ids) - sequence.num_computed
        row = next_row(
            sequence,
            count,
            pages,
            runner.config.page_size,
            **{"needs_sample": True, "num_output_tokens": len(drawn), **options},
        )
        output = run_step(runner, Step(len(drawn), (row,))).rows[0]
        assert output.token_id is not None
        drawn.append(output.token_id)
        sequence.token_ids.append(output.token_id)
    return drawn
