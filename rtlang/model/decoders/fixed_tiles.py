"""Cuts a step into tiles of fixed size, so that operations of a library always see tensors of the same shape.

The order of a sum, or the instructions for an element, may depend on the number of rows of a tensor. If every tensor has one of two
shape, they can only depend on the place within the tile, which a check at load time covers (bit_check.py).

A row that goes on in the next tile passes its recurrent state on in a spare slot. Tokens that fill a tile are a row of their own there,
which begins without a state and keeps none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtlang.model.batch import Batch
from rtlang_kernels.contract.state_plan import NO_SLOT, Int32s, StatePlan


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Sizes of tiles in tokens.

    Attributes:
        small: for decoding, where a tile should cost little more than a token.
        large: for prompts, which read all weights per tile.
    """

    small: int
    large: int


TILE_SIZES = TileSizes(8, 64), TileSizes(64, 64)
"""In the order of preference. A vector loop over one number a token (a gate) has whole vectors in the large tile only."""
_LEAST_OF_LARGE = 32  # tokens for which one large tile is computed instead of small ones


@dataclass(frozen=True, slots=True)
class TokenTile:
    """Consecutive tokens of a step.

    Attributes:
        batch: the tokens [start, start + batch.num_tokens) of the step as a batch of their own. Its states are planned for `size` tokens.
        size: tokens to compute, with the ones that fill the tile.
    """

    batch: Batch
    start: int
    size: int


def tiles_of(batch: Batch, sizes: TileSizes, spare_slots: Sequence[int] = ()) -> Iterator[TokenTile]:
    """The tiles of a step, in order: later ones read keys, values and states that earlier ones have written.

    Args:
        spare_slots: two state slots that no row of the step uses, for a batch with states.
    """
    states = None if batch.states is None else _StateParts(batch.states, spare_slots)
    start = 0
    while start < batch.num_tokens:
        size = sizes.large if batch.num_tokens - start >= _LEAST_OF_LARGE else sizes.small
        stop = min(start + size, batch.num_tokens)
        part = _part(batch, start, stop)
        if states is not None:
            part = replace(part, states=states.next(start, stop, size))
        yield TokenTile(part, start, size)
        start = stop


class _StateParts:
    """Cuts the states of a step into those of its tiles, from the first to the last."""

    def __init__(self, plan: StatePlan, spare_slots: Sequence[int]) -> None:
        self._plan = plan
        self._spare = list(spare_slots)  # the first of them is free, the other one may hold `_entering`
        self._entering = NO_SLOT  # the state of the row that the last tile has cut

    def next(self, start: int, stop: int, size: int) -> StatePlan:
        """The states of the tokens [start, stop), which follow those of the last call, in a tile of `size` tokens."""
        starts, bounds = self._plan.cu_seqlens, self._plan.cu_marks
        first, last = _rows(starts, start, stop)
        sources: list[int] = []
        marks: list[list[tuple[int, int]]] = []
        for row in range(first, last):
            begin, end = int(starts[row]), int(starts[row + 1])
            own = slice(int(bounds[row]), int(bounds[row + 1]))
            skipped, reached = max(start - begin, 0), min(stop, end) - begin
            sources.append(self._entering if begin < start else int(self._plan.sources[row]))
            ends, slots = self._plan.mark_ends[own].tolist(), self._plan.mark_slots[own].tolist()
            inside = [(at - skipped, slot) for at, slot in zip(ends, slots, strict=True) if skipped < at <= reached]
            if end > stop:
                self._pass_on(inside, reached - skipped)
            marks.append(inside)
        cuts = np.clip(starts[first : last + 1], start, stop) - start
        if size > stop - start:
            cuts = np.append(cuts, size)
            sources.append(NO_SLOT)
            marks.append([])
        return StatePlan.of(cuts, sources, marks)

    def _pass_on(self, marks: list[tuple[int, int]], num_tokens: int) -> None:
        """Keep the state after the tokens that a row has in this tile; one that is kept there already is read by the next tile."""
        if not marks or marks[-1][0] != num_tokens:
            marks.append((num_tokens, self._spare[0]))
            self._spare.reverse()
        self._entering = marks[-1][1]


def _rows(starts: Int32s, start: int, stop: int) -> tuple[int, int]:
    """The rows [first, last) with tokens in [start, stop)."""
    return int(np.searchsorted(starts, start, side="right")) - 1, int(np.searchsorted(starts, stop, side="left"))


def _part(batch: Batch, start: int, stop: int) -> Batch:
    """The tokens [start, stop) of a batch; those of its logits that belong to them, in the order of the batch."""
    starts = batch.cu_seqlens_q
    first, last = _rows(starts, start, stop)
    rows = slice(first, last)
    seq_lens = batch.seq_lens[rows].copy()
    seq_lens[-1] -= starts[last] - min(int(starts[last]), stop)
    shared = batch.shared_lens[rows].copy()
    shared[0] = 0
    is_own = (batch.logit_indices >= start) & (batch.logit_indices < stop)
    return replace(
        batch,
        input_ids=batch.input_ids[start:stop],
        positions=batch.positions[start:stop],
        slot_mapping=batch.slot_mapping[start:stop],
        cu_seqlens_q=(np.clip(starts[first : last + 1], start, stop) - start).astype(np.int32),
        seq_lens=seq_lens,
        page_table=batch.page_table[rows],
        shared_lens=shared,
        logit_indices=batch.logit_indices[is_own] - start,
    )
