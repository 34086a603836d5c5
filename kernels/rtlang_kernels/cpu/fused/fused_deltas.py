"""The gated delta layers of a fused step: one table of their layouts, and working memory that they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray

from rtlang_kernels.contract.delta_layer import DeltaLayer
from rtlang_kernels.contract.fused_step import FusedStates
from rtlang_kernels.cpu.codegen.linear_vectors import LINE
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of
from rtlang_kernels.cpu.recurrence.delta_layer import DELTA_TYPES, CpuDeltaLayer, DeltaLayouts, delta_kernel
from rtlang_kernels.cpu.recurrence.state_work import PLAN_TYPES, plan_arrays

COUNTERS = 3 * LINE  # bytes of a layer, see `delta_kernel`
_TABLE, _FLOAT = types.Array(types.int64, 2, "C"), types.float32
FUSED_DELTA_TYPES = (*(_TABLE,) * 3, *(_FLOAT,) * 2, *PLAN_TYPES)
"""numba types of `FusedDeltas.arguments`."""
_NO_TABLE = np.zeros((0, 1), np.int64)
_NO_PLAN = (np.zeros(0, np.int32),) * len(PLAN_TYPES)


def are_supported(layers: Sequence[DeltaLayer]) -> bool:
    """Whether layers are those of the CPU, with the same sizes."""
    found = [each.weights for each in layers if isinstance(each, CpuDeltaLayer)]
    sizes = {(each.conv.shape, each.num_k_heads, each.k_dim, each.v_dim, each.eps) for each in found}
    return len(found) == len(layers) and len(sizes) <= 1 and all(each.v_size % 2 == 0 for each in found)


class FusedDeltas:
    """The gated delta layers of a model, for which `are_supported` is true; there may be none.

    Attributes:
        address: of the machine code; 0 without layers.
        v_size: inputs of the output projections.
        num_inputs: results of the input projections.
        counters: address of the counters of all layers.
    """

    def __init__(self, layers: Sequence[DeltaLayer]) -> None:
        self._owned = [each.weights for each in layers if isinstance(each, CpuDeltaLayer)]
        # of its own: separate calls of a layer place its layouts elsewhere
        self._layouts = [DeltaLayouts(weights) for weights in self._owned]
        self._memory: list[torch.Tensor] = []
        self._states: FusedStates | None = None
        self._scratch = np.empty(0, np.uint8)
        self._tables: tuple[NDArray[np.int64], ...] = (_NO_TABLE,) * 3
        self._factors, self._scratch_size = (np.float32(0.0), np.float32(0.0)), 0
        self.address = self.v_size = self.num_inputs = 0
        self._counts = np.zeros((COUNTERS * len(self._layouts) + LINE) // 8, np.int64)
        self.counters = -(-self._counts.ctypes.data // LINE) * LINE
        if self._layouts:
            weights, layouts = self._owned[0], self._layouts[0]
            self.address = address_of(delta_kernel(layouts.is_bf16, weights.v_dim), DELTA_TYPES)
            self.v_size, self.num_inputs = weights.v_size, weights.num_inputs
            self._factors = np.float32(weights.scale), np.float32(weights.eps)
            self._scratch_size = -(-layouts.scratch_bytes // LINE) * LINE
            self._tables = tuple(np.stack([each.arrays[i] for each in self._layouts]) for i in range(3))

    def reserve(self, num_rows: int, projected: int, attended: int, item: int) -> None:
        """Allocate memory for steps of `num_rows` tokens.

        Args:
            projected, attended: addresses of the inputs and of the results of layers.  item: bytes of an element.
        """
        if not self._layouts:
            return
        weights = self._owned[0]
        mixed = torch.zeros((num_rows, weights.num_channels), dtype=weights.conv.dtype)
        gates = torch.zeros((num_rows, 2 * weights.num_v_heads), dtype=torch.float32)
        self._memory = [mixed, gates]
        for layouts in self._layouts:
            layouts.place(projected, self.num_inputs * item, mixed.data_ptr(), gates.data_ptr(), attended)
        self._fill()

    def arguments(self, states: FusedStates | None) -> tuple[object, ...]:
        """Arguments of the kernel, see FUSED_DELTA_TYPES, for the states of a step."""
        if states is None:
            return *self._tables, *self._factors, *_NO_PLAN
        before = self._states
        if before is None or before.conv is not states.conv or before.matrices is not states.matrices:
            for layouts, conv, matrices in zip(self._layouts, states.conv, states.matrices, strict=True):
                layouts.place_states(conv, matrices)
            self._fill()
        self._states = states
        return *self._tables, *self._factors, *plan_arrays(states.plan)

    def scratch(self, num_threads: int) -> list[int]:
        """Addresses of the working memory of threads."""
        size = num_threads * self._scratch_size + LINE
        if len(self._scratch) < size:
            self._scratch = np.empty(size, np.uint8)
        start = -(-self._scratch.ctypes.data // LINE) * LINE
        return [start + thread * self._scratch_size for thread in range(num_threads)]

    def set_counters(self, value: int) -> None:
        """Set all counters: to 0 before a call, or beyond all arrivals to release threads from their barriers."""
        self._counts[:] = value

    def _fill(self) -> None:
        """Copy the layouts into the tables."""
        for kind, table in enumerate(self._tables):
            table[:] = [layouts.arrays[kind] for layouts in self._layouts]
