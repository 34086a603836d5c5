"""A reusable plan of the states of decoding steps, at fixed device addresses, so that captured graphs can be replayed.

The number of rows is that of tokens, however a step spreads its tokens over rows. Surplus tokens are rows that begin a sequence and keep no
state: layers give them finite outputs and write nothing. Surplus rows have no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from rtlang_kernels.host.transfer import FixedBuffer


class DecodeStates:
    """The states of a step of up to `num_tokens` tokens, of as many rows or fewer. Owned by one thread.

    Attributes:
        plan: for the layers; its device arrays hold the step uploaded last. Its host arrays tell the largest numbers of rows and tokens,
            and no slots: what reads these on the host fails, as a graph would go on with old ones.
    """

    def __init__(self, num_tokens: int, device: torch.device) -> None:
        """Lay out the device arrays."""
        self.num_tokens = num_tokens
        each, starts = (num_tokens,), (num_tokens + 1,)
        shapes = {"cu_seqlens": starts, "sources": each, "cu_marks": starts, "mark_ends": each, "mark_slots": each}
        self._buffer = FixedBuffer(device, {name: (np.int32, shape) for name, shape in shapes.items()})
        arrays = [np.zeros(shape, np.int32) for shape in shapes.values()]
        arrays[0][:], arrays[1][:] = np.arange(num_tokens + 1), np.iinfo(np.int32).min
        starts_of_rows, sources, cu_marks, ends, slots = arrays
        tensors = tuple(self._buffer.there[name] for name in shapes)
        self.plan = StatePlan(starts_of_rows, sources, cu_marks, ends, slots, tensors)

    def set(
        self, cu_seqlens: NDArray[np.int32], sources: Sequence[int], marks: Sequence[Sequence[tuple[int, int]]]
    ) -> bool:
        """Write a step on the host; arguments as for `StatePlan.of`. Returns False if it has too many tokens.

        Raises:
            ValueError: as `StatePlan.of`.
        """
        step = StatePlan.of(cu_seqlens, sources, marks)
        tokens, rows = step.num_tokens, step.num_rows
        count = len(step.mark_ends)  # at most a mark per token
        host = self._buffer.host
        if tokens > self.num_tokens:
            return False
        starts = host["cu_seqlens"]
        starts[: rows + 1] = step.cu_seqlens
        starts[rows:] = np.minimum(tokens + np.arange(self.num_tokens + 1 - rows), self.num_tokens)
        host["sources"][:rows], host["sources"][rows:] = step.sources, NO_SLOT
        host["cu_marks"][: rows + 1], host["cu_marks"][rows:] = step.cu_marks, count
        host["mark_ends"][:count], host["mark_slots"][:count] = step.mark_ends, step.mark_slots
        return True

    def upload(self) -> None:
        """Copy the step to the device, after `set` has returned True. Does not wait."""
        self._buffer.upload(len(self._buffer.host["mark_slots"]))
