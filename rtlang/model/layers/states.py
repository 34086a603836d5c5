"""The memory of recurrent states, and the states of one step.

A recurrent layer keeps, for each sequence, tensors of a fixed shape: the last inputs of a short convolution, a matrix in float32, or both.
One *state slot* holds them for all layers. Slots are numbers to the engine, which decides whose state each one is (`rtlang.cache.states`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.cache import system_memory
from rtlang.cache.pool import lazy_zeros
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.host.huge_pages import zeros_in_huge_pages


@dataclass(frozen=True, slots=True)
class StateShape:
    """One tensor of a state: of which layer, its name there, its shape for one sequence, and its dtype."""

    layer: int
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def num_bytes(self) -> int:
        """Bytes for one sequence."""
        return math.prod(self.shape) * self.dtype.itemsize


def state_bytes(shapes: Sequence[StateShape]) -> int:
    """Bytes of the state of one sequence in all layers; 0 for a model without recurrent layers."""
    return sum(shape.num_bytes for shape in shapes)


NUM_SPARE_SLOTS = 2


class StateMemory:
    """`num_slots` states on one device. Owned by the model runner; kernels write into its tensors.

    On a host, memory is committed when a slot is first written, and NUM_SPARE_SLOTS further slots follow: a decoder that cuts a step into
    parts passes a state on in them (fixed_tiles.py).
    """

    def __init__(self, shapes: Sequence[StateShape], num_slots: int, device: torch.device | str = "cpu") -> None:
        """Allocate zeros."""
        self.shapes, self.num_slots = tuple(shapes), num_slots
        place = torch.device(device)
        num_allocated = num_slots + (NUM_SPARE_SLOTS if place.type == "cpu" else 0)
        self._tensors = {
            (each.layer, each.name): _zeros((num_allocated, *each.shape), each.dtype, place) for each in self.shapes
        }

    def of(self, layer: int, name: str) -> Tensor:
        """One tensor of all states: [num_slots, *shape], on a host with the spare slots behind them."""
        return self._tensors[layer, name]

    @property
    def spare_slots(self) -> tuple[int, ...]:
        """The spare slots on a host. Their states have no meaning between steps."""
        return tuple(range(self.num_slots, self.num_slots + NUM_SPARE_SLOTS))

    @property
    def state_bytes(self) -> int:
        """Bytes of one state."""
        return state_bytes(self.shapes)

    @property
    def state_format(self) -> str:
        """Determines how the bytes of a state are laid out."""
        return ", ".join(f"{each.layer}.{each.name} {each.dtype} {list(each.shape)}" for each in self.shapes)

    def release_states(self, slots: Sequence[int]) -> None:
        """Give the memory of unused slots back to the system; their states have no meaning afterwards.

        Does nothing on a device, and where the system has no such call.
        """
        for shape, tensor in zip(self.shapes, self._tensors.values(), strict=True):
            if tensor.device.type == "cpu":
                for slot in slots:
                    system_memory.release(tensor[slot].data_ptr(), shape.num_bytes)

    @property
    def tensors(self) -> list[Tensor]:
        """The memory: [1, num_slots, *shape] each, contiguous. A state is its part of all of them, in this order."""
        return [tensor[None] for tensor in self._tensors.values()]

    def read_states(self, slots: Sequence[int]) -> NDArray[np.uint8]:
        """The content of states on the host: uint8 [len(slots), state_bytes]."""
        found = np.empty((len(slots), self.state_bytes), dtype=np.uint8)
        start = 0
        for shape, tensor in zip(self.shapes, self._tensors.values(), strict=True):
            for slot, content in zip(slots, found, strict=True):
                content[start : start + shape.num_bytes] = tensor[slot].reshape(-1).view(torch.uint8).numpy()
            start += shape.num_bytes
        return found

    def write_states(self, states: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        """Write the content from `read_states` into slots on the host."""
        for slot, content in states:
            start = 0
            for shape, tensor in zip(self.shapes, self._tensors.values(), strict=True):
                part = torch.from_numpy(content[start : start + shape.num_bytes].copy())
                tensor[slot].copy_(part.view(shape.dtype).view(shape.shape))
                start += shape.num_bytes

    def abandon_writes(self) -> None:
        """See `StateContent`: on the host, a state is written when its iterable gives it."""


@dataclass(frozen=True, slots=True)
class StepStates:
    """The states of one step: the memory, and which of its slots the rows read and write."""

    memory: StateMemory
    plan: StatePlan


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros, on a host in huge pages: a step reads and writes whole states, which took 1.4 times as long in small pages."""
    return zeros_in_huge_pages(shape, dtype) if device.type == "cpu" else lazy_zeros(shape, dtype, device)
