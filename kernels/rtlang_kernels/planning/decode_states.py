"""A reusable plan of the states of steps, at fixed device addresses, so that captured graphs can be replayed.

Rows have any number of tokens. Surplus rows begin a sequence and keep no state; the surplus tokens are spread evenly over them, so layers
give these tokens finite outputs and write nothing.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from rtlang_kernels.host.transfer import FixedBuffer


class DecodeStates:
    """The states of a step of up to `num_tokens` tokens. Owned by one thread.

    A step has up to `num_rows` rows, or one fewer if it has fewer tokens than `num_tokens`: the surplus tokens need a row.

    Attributes:
        plan: for the layers; its device arrays hold the step uploaded last. Its host arrays tell the largest numbers of rows and tokens,
            and no slots: what reads these on the host fails, as a graph would go on with old ones.
    """

    def __init__(self, num_tokens: int, device: torch.device, num_rows: int | None = None) -> None:
        """Lay out the device arrays; `num_rows` defaults to `num_tokens`."""
        num_rows = min(num_tokens, num_rows or num_tokens)
        self.num_tokens, self.num_rows = num_tokens, num_rows
        rows, starts, marks = (num_rows,), (num_rows + 1,), (num_tokens,)
        shapes = {"cu_seqlens": starts, "sources": rows, "cu_marks": starts, "mark_ends": marks, "mark_slots": marks}
        self._buffer = FixedBuffer(device, {name: (np.int32, shape) for name, shape in shapes.items()})
        arrays = [np.zeros(shape, np.int32) for shape in shapes.values()]
        arrays[0][:], arrays[1][:] = _spread(num_tokens, num_rows), np.iinfo(np.int32).min
        starts_of_rows, sources, cu_marks, ends, slots = arrays
        tensors = tuple(self._buffer.there[name] for name in shapes)
        self.plan = StatePlan(starts_of_rows, sources, cu_marks, ends, slots, tensors)

    def set(self, step: StatePlan) -> bool:
        """Write a step on the host. Returns False if it has too many tokens or rows."""
        tokens, rows = step.num_tokens, step.num_rows
        surplus, num_spare = self.num_tokens - tokens, self.num_rows - rows
        if surplus < 0 or num_spare < min(surplus, 1):
            return False
        count = len(step.mark_ends)  # at most a mark per token
        host = self._buffer.host
        starts = host["cu_seqlens"]
        starts[: rows + 1] = step.cu_seqlens
        starts[rows:] = tokens + _spread(surplus, num_spare)
        host["sources"][:rows], host["sources"][rows:] = step.sources, NO_SLOT
        host["cu_marks"][: rows + 1], host["cu_marks"][rows:] = step.cu_marks, count
        host["mark_ends"][:count], host["mark_slots"][:count] = step.mark_ends, step.mark_slots
        return True

    def upload(self) -> None:
        """Copy the step to the device, after `set` has returned True. Does not wait."""
        self._buffer.upload(len(self._buffer.host["mark_slots"]))


def _spread(num_tokens: int, num_rows: int) -> NDArray[np.int64]:
    """Starts of rows that have about as many tokens each: int64 [num_rows + 1]."""
    starts: NDArray[np.int64] = np.arange(num_rows + 1) * num_tokens // max(1, num_rows)
    return starts
