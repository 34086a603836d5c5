"""A matrix of a GGUF file as a weight of few bits."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.model.loading.gguf.block_types import BlockType
from rtlang.model.loading.gguf.unpacking import unpacked
from rtlang_kernels.contract.low_bit import GroupedRows, WeightFormat
from rtlang_kernels.reference.low_bit import exact_rows

_ELEMENTS = 1 << 20  # that are multiplied out at a time


class BlockWeight:
    """A `LowBitWeight` over the mapped bytes of a file, which it keeps mapped.

    Args:
        kind: the type of its blocks.
        data: uint8, all of its bytes.
        shape: numbers of outputs and inputs.
        order: int64 [out]: output i is row order[i] of the file; None where it is row i.
        row_scales: float32 [out], which multiply the weights of each output; None for ones.
    """

    input_order: Tensor | None = None

    def __init__(
        self,
        kind: BlockType,
        data: NDArray[np.uint8],
        shape: tuple[int, int],
        order: NDArray[np.int64] | None = None,
        row_scales: Tensor | None = None,
    ) -> None:
        assert kind.format is not None
        self.format: WeightFormat = kind.format
        self._num_rows, num_inputs = shape
        self.shape = (self._num_rows if order is None else len(order)), num_inputs
        self._kind, self._order, self._row_scales = kind, order, row_scales
        self._blocks = data.reshape(self._num_rows, num_inputs // kind.block, kind.block_bytes)

    def rows(self, first: int, last: int) -> GroupedRows:
        """See `LowBitWeight`."""
        found = self._blocks[first:last] if self._order is None else self._blocks[self._order[first:last]]
        rows = unpacked(self._kind, found)
        if self._row_scales is not None:
            rows.row_scales = self._row_scales[first:last].contiguous()
        return rows

    def multiplied_out(self) -> Tensor:
        """All weights: float32 [out, in], rounded once from their exact values."""
        num_outputs, num_inputs = self.shape
        found = torch.empty(num_outputs, num_inputs)
        step = max(1, _ELEMENTS // num_inputs)
        for first in range(0, num_outputs, step):
            last = min(first + step, num_outputs)
            found[first:last] = exact_rows(self.format, self.rows(first, last))
        return found
