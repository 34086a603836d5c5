"""Cuts a step into tiles of fixed size, so that operations of a library always see tensors of the same shape.

The order of a sum, or the instructions for an element, may depend on the number of rows of a tensor. If every tensor has one of two
shapes, they can only depend on the place within the tile, which a check at load time covers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rtlang.model.batch import Batch

SMALL_TILE, LARGE_TILE = 8, 64
"""Tokens of a tile: few for decoding, where a tile costs little more than a token; more for prompts, which read all weights per tile."""
_LEAST_OF_LARGE = 32  # tokens for which one large tile is computed instead of small ones


@dataclass(frozen=True, slots=True)
class TokenTile:
    """Consecutive tokens of a step.

    Attributes:
        batch: the tokens [start, start + batch.num_tokens) of the step as a batch of their own.
        size: tokens to compute, with the ones that fill the tile.
    """

    batch: Batch
    start: int
    size: int


def tiles_of(batch: Batch) -> Iterator[TokenTile]:
    """The tiles of a step, in order: later ones read keys and values that earlier ones have written."""
    start = 0
    while start < batch.num_tokens:
        size = LARGE_TILE if batch.num_tokens - start >= _LEAST_OF_LARGE else SMALL_TILE
        stop = min(start + size, batch.num_tokens)
        yield TokenTile(_part(batch, start, stop), start, size)
        start = stop


def _part(batch: Batch, start: int, stop: int) -> Batch:
    """The tokens [start, stop) of a batch; those of its logits that belong to them, in the order of the batch."""
    starts = batch.cu_seqlens_q
    first = int(np.searchsorted(starts, start, side="right")) - 1
    last = int(np.searchsorted(starts, stop, side="left"))
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
