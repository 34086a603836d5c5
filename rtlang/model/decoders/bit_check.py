"""Checks that a decoder gives the tokens of one sequence the same bits however steps are cut, and whatever is computed beside it.

A sequence that fills most of a large tile is computed alone, and then in chunks behind another one, so that every place of both sizes of
tiles is compared (fixed_tiles.py). With states, rows cross the borders of tiles, states are kept inside of tiles, and the sequence is
computed again from each kept state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.batch import Batch
from rtlang.model.layers.attention import HeadGeometry, PagedKV, StepAttention
from rtlang.model.layers.states import StateMemory, StateShape, StepStates

_PAGE_SIZE = 4
_LENGTHS = 34, 40  # tokens of the sequence that is compared, which has a large tile, and of the one before it in a step
# In each way, so many tokens of the other sequence come first in the step, and the sequence is computed up to these tokens in turn.
_CUTS = (0, (0, 1, 2, 3, 4, 34)), (3, (0, 5, 34)), (30, (0, 34))
# With states, also across the borders of small tiles and of a large one.
_STATE_CUTS = (3, (0, 20, 34)), (40, (0, 34))
_KEPT = 3, 8, 13, 19  # tokens after which states are kept
_KEPT_SLOTS = dict(zip(_KEPT, itertools.count(2), strict=False))  # after the running slots of both sequences


@dataclass(frozen=True, slots=True)
class _Part:
    """Tokens [start, stop) of one of the sequences, from a state slot; `replayed` of them have their keys and values already."""

    which: int
    start: int
    stop: int
    source: int | None = None
    replayed: int = 0


def has_equal_bits(
    forward: Callable[[StepAttention], Tensor],
    vocab_size: int,
    geometries: Sequence[HeadGeometry],
    shapes: Sequence[StateShape],
    dtype: torch.dtype,
) -> bool:
    """Whether `forward`, which gives the logits of a step on the CPU, passes the check.

    Args:
        shapes: of the states of recurrent layers; empty without any.
        dtype: of keys and values.
    """
    steps = _Steps(forward, vocab_size, geometries, shapes, dtype)
    expected = steps.logits(_Part(0, 0, _LENGTHS[0]))
    for shift, cuts in (*_CUTS, *(_STATE_CUTS if shapes else ())):
        beside = [_Part(1, 0, shift)] if shift else []
        parts = [
            steps.logits(*beside, _Part(0, start, stop, 0 if start else None))
            for start, stop in itertools.pairwise(cuts)
        ]
        if not torch.equal(torch.cat(parts), expected):
            return False
        for kept in _KEPT if shapes else ():
            again = _Part(0, kept, _LENGTHS[0], _KEPT_SLOTS[kept], _LENGTHS[0] - kept)
            if not torch.equal(steps.logits(*beside, again), expected[kept:]):
                return False
    return True


class _Steps:
    """Computes parts of two sequences, which have pages and a running state each, in steps."""

    def __init__(
        self,
        forward: Callable[[StepAttention], Tensor],
        vocab_size: int,
        geometries: Sequence[HeadGeometry],
        shapes: Sequence[StateShape],
        dtype: torch.dtype,
    ) -> None:
        self._forward = forward
        generator = torch.Generator().manual_seed(1)
        self._tokens = [torch.randint(0, vocab_size, (length,), generator=generator).tolist() for length in _LENGTHS]
        num_pages = -(-max(_LENGTHS) // _PAGE_SIZE)
        self._kv = PagedKV(geometries, 2 * num_pages, _PAGE_SIZE, dtype)
        self._pages = tuple(range(num_pages)), tuple(range(num_pages, 2 * num_pages))
        self._memory = StateMemory(shapes, 2 + len(_KEPT)) if shapes else None

    def logits(self, *parts: _Part) -> Tensor:
        """Compute one step; the logits of its last part: [num_tokens, vocab_size]."""
        batch = Batch.from_step(Step(0, tuple(map(self._row, parts))), _PAGE_SIZE)
        states = None
        if self._memory is not None:
            assert batch.states is not None
            states = StepStates(self._memory, batch.states)
        found = self._forward(StepAttention(batch, self._kv, states=states))
        return found[parts[-1].start - parts[-1].stop :]

    def _row(self, part: _Part) -> Row:
        tokens = self._tokens[part.which][part.start : part.stop]
        return Row(
            part.which,
            tokens,
            part.start,
            self._pages[part.which],
            0,
            False,
            SamplingParams(),
            score_token_ids=tokens,
            states=self._states(part) if self._memory is not None else None,
            num_replayed_tokens=part.replayed,
        )

    def _states(self, part: _Part) -> RowStates:
        last = (part.stop - part.start, part.which)
        if part.which or part.replayed:
            return RowStates(part.source, (last,))
        kept = [(end - part.start, slot) for end, slot in _KEPT_SLOTS.items() if part.start < end < part.stop]
        return RowStates(part.source, (*kept, last))
