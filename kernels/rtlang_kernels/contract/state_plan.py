"""The rows of one step as recurrent layers see them: where each row's state comes from, and where states are written.

A recurrent layer holds a fixed-size state for each sequence in a *state slot*. A row continues the state of its source slot token by token,
and writes the state after some of its tokens, its *marks*, to other slots. The last mark of a row need not be its last token: tokens after
it (drafts) give outputs and leave no trace.

Invariants: a slot is written at most once in a step, and a slot that is written is the source of no other row. A row may write its own
source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Int32s = NDArray[np.int32]
NO_SLOT = -1
"""The source of a row that begins a sequence: its state is zero."""


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The states of one step, for all recurrent layers. Created by `StatePlan.of`.

    Attributes:
        cu_seqlens: int32 [num_rows + 1], start of each row's tokens.
        sources: int32 [num_rows], slot that each row continues; NO_SLOT for zeros.
        cu_marks: int32 [num_rows + 1], start of each row's marks.
        mark_ends: int32 [num_marks], number of tokens of its row after which a state is written, ascending within a row.
        mark_slots: int32 [num_marks], the slots that are written.
        tensors: the five arrays on the device of the states, in this order.
    """

    cu_seqlens: Int32s
    sources: Int32s
    cu_marks: Int32s
    mark_ends: Int32s
    mark_slots: Int32s
    tensors: tuple[Tensor, ...]

    @property
    def num_rows(self) -> int:
        """Number of rows of the step."""
        return len(self.sources)

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the step."""
        return int(self.cu_seqlens[-1])

    @property
    def arrays(self) -> tuple[Int32s, ...]:
        """The arrays of `tensors`."""
        return self.cu_seqlens, self.sources, self.cu_marks, self.mark_ends, self.mark_slots

    @classmethod
    def of(
        cls,
        cu_seqlens: Int32s,
        sources: Sequence[int],
        marks: Sequence[Sequence[tuple[int, int]]],
        device: torch.device | str = "cpu",
    ) -> StatePlan:
        """Build the plan of a step.

        Args:
            cu_seqlens: int32 [num_rows + 1].
            sources: of each row.
            marks: of each row, as (number of tokens, slot).
        Raises:
            ValueError: an argument breaks an invariant of this module; names it.
        """
        starts = np.ascontiguousarray(cu_seqlens, dtype=np.int32)
        num_rows = len(starts) - 1
        if not len(sources) == len(marks) == num_rows:
            raise ValueError(f"{len(sources)} sources and marks of {len(marks)} rows: expected {num_rows} of each")
        flat = [mark for own in marks for mark in own]
        ends, slots = (np.array([mark[i] for mark in flat], dtype=np.int32) for i in (0, 1))
        counts = np.zeros(num_rows + 1, dtype=np.int32)
        np.cumsum([len(own) for own in marks], out=counts[1:])
        _check(starts, sources, marks, slots)
        arrays = starts, np.array(sources, dtype=np.int32), counts, ends, slots
        tensors = tuple(torch.from_numpy(each).to(device) for each in arrays)
        return cls(*arrays, tensors)

    def moved(self, device: torch.device | str) -> StatePlan:
        """The plan for states on another device."""
        return replace(self, tensors=tuple(each.to(device) for each in self.tensors))


def _check(starts: Int32s, sources: Sequence[int], marks: Sequence[Sequence[tuple[int, int]]], slots: Int32s) -> None:
    lengths = np.diff(starts).tolist()
    if any(length < 1 for length in lengths):
        raise ValueError("cu_seqlens: expected at least one token in every row")
    for row, own in enumerate(marks):
        ends = [end for end, _ in own]
        if ends != sorted(set(ends)) or any(not 0 < end <= lengths[row] for end in ends):
            raise ValueError(f"marks of row {row} end at {ends}: expected ascending numbers from 1 to {lengths[row]}")
    if len(set(slots.tolist())) != len(slots) or any(slot < 0 for slot in slots.tolist()):
        raise ValueError("marks: expected slots from 0, and none of them twice")
    writers = {slot: row for row, own in enumerate(marks) for _, slot in own}
    for row, source in enumerate(sources):
        if source != NO_SLOT and writers.get(source, row) != row:
            raise ValueError(f"sources: slot {source} of row {row} is written by row {writers[source]}")
