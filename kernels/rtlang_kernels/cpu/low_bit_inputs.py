"""Inputs of layers over weights of few bits, as bytes in groups of 32: quantized once for all layers that have the same inputs.

Bytes lie as [tiles of rows, groups, rows of a tile, 32], so that a tile of rows is read in order and a group of it is a matrix tile.
Behind them are the scales of the groups and, where a layer asks for it, planes of values that depend on the sums of the bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.low_bit import INPUT_GROUP
from rtlang_kernels.cpu.codegen.input_quantizing import gathered_group, quantized_group, read_float, write_float
from rtlang_kernels.cpu.codegen.linear_vectors import stack_sums
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import MAGIC, NO_EXTRA, OFFSETS
from rtlang_kernels.cpu.low_bit_layout import LowBitLayout
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel

_WORTH_THREADS = 1 << 18  # inputs that take some 100 us
QUANTIZE_TYPES = (types.int64,) * 14  # of the arguments of `quantize_kernel`, for `address_of`
SCALES_AT, _PLANES_AT = INPUT_GROUP, INPUT_GROUP + 4  # bytes before the scales and the planes, for each group of a row


class Plane(NamedTuple):
    """Values of groups: start + factor * sum of the bytes, or scale * sum of the bytes; of each half of a group if `halves` is 2."""

    start: float
    factor: float
    is_scaled: bool
    halves: int


class QuantizedInputs(NamedTuple):
    """Rows as bytes.

    Attributes:
        memory: int8 [num_groups * INPUT_GROUP]: the bytes, then the scales (float32 [tiles, groups, rows]), then each plane
            (float32 [tiles, groups, halves, rows]). Rows missing in the last tile are copies of the last row.
        num_groups: of all tiles and rows of a tile.
    """

    memory: NDArray[np.int8]
    num_groups: int


class InputPlan:
    """How the inputs of some layers are quantized.

    Attributes:
        layouts: of the weights, with one number of inputs.
        order: int64 [groups * INPUT_GROUP], which input is at each place, or None; padding is the input after the last one.
        num_groups: of a row.
        num_bytes: of the result, for each group of a row.
        kinds: the planes as float32 [planes, fields of `Plane`].
    """

    def __init__(self, layouts: Sequence[LowBitLayout], order: Tensor | None = None) -> None:
        """Plan for weights whose inputs are in `order`, int64 [in]; by default as they come.

        Raises:
            ValueError: the order has another length, or places that are no inputs.
        """
        self.layouts, self.num_groups = tuple(layouts), layouts[0].num_chunks
        num_inputs = layouts[0].num_inputs
        if order is not None and (order.shape != (num_inputs,) or bool(((order < 0) | (order >= num_inputs)).any())):
            raise ValueError(f"order = {list(order.shape)} places: expected {num_inputs}, from 0 to {num_inputs - 1}")
        padding = self.num_groups * INPUT_GROUP - num_inputs
        self.order = None if order is None else functional.pad(order.long(), (0, padding), value=num_inputs)
        asked = itertools.chain.from_iterable(planes_of(layout) for layout in layouts)
        planes = [plane for plane in dict.fromkeys(asked) if plane is not None]
        ends = list(itertools.accumulate((4 * plane.halves for plane in planes), initial=_PLANES_AT))
        self._places = dict(zip(planes, ends, strict=False))
        self.num_bytes = ends[-1]
        self.kinds = np.array(planes, np.float32).reshape(-1, len(Plane._fields))

    def place(self, plane: Plane | None) -> int:
        """Where a plane begins, in bytes for each group of a row; None begins anywhere."""
        return SCALES_AT if plane is None else self._places[plane]

    def quantized(self, x: Tensor, rows: int) -> QuantizedInputs:
        """Quantize x [num_rows, inputs], float32 or bfloat16, contiguous in its rows, in tiles of `rows` rows.

        A row with an input that is not finite has scales of NaN.
        """
        num_rows, num_inputs = x.shape
        if padding := self.num_groups * INPUT_GROUP - num_inputs:
            x = functional.pad(x, (0, padding))
        num_tiles = -(-num_rows // rows)
        size = num_tiles * self.num_groups * rows
        memory = np.empty(size * self.num_bytes, np.int8)
        run, item = quantize_kernel(int(x.dtype == torch.bfloat16)), x.itemsize
        order = 0 if self.order is None else self.order.data_ptr()
        kinds = self.kinds.ctypes.data, len(self.kinds)
        places = x.data_ptr(), x.stride(0) * item, order, memory.ctypes.data, size
        call = *places, *kinds, num_rows, self.num_groups, rows, 0, self.num_groups
        if num_tiles == 1 or num_rows * num_inputs < _WORTH_THREADS or (threads := torch.get_num_threads()) == 1:
            run(*call, 0, num_tiles * rows)
        else:
            cuts = [num_tiles * i // threads * rows for i in range(threads + 1)]
            run_chunks(run, [(*call, a, b) for a, b in itertools.pairwise(cuts) if a < b])
        return QuantizedInputs(memory, size)


def planes_of(layout: LowBitLayout) -> tuple[Plane | None, Plane | None]:
    """What a layer needs beside bytes and scales: the starts of its integer sums, and what offsets or zero points are multiplied with."""
    code, halves = layout.code, layout.code.halves
    start = Plane(MAGIC, -layout.zero, False, halves) if code.has_start else None
    extra = None if code.extra == NO_EXTRA else Plane(0.0, 1.0, code.extra == OFFSETS, halves)
    return start, extra


@cache
def quantize_kernel(is_bf16: int) -> Callable[..., None]:
    """Compile the quantization of rows.

    Args of the kernel: address of the rows, bytes from one to the next; address of the order or 0, see `InputPlan`; address of the results,
    groups of all tiles; address of the fields of planes, and their number; num_rows, num_groups, rows of a tile; the range of groups; the
    range of rows, which includes those missing in the last tile.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4

    @kernel(is_exact=True)
    def quantize(
        x: Any,
        x_stride: Any,
        order: Any,
        target: Any,
        size: Any,
        kinds: Any,
        num_planes: Any,
        num_rows: Any,
        num_groups: Any,
        rows: Any,
        first_group: Any,
        last_group: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        gathered = stack_sums(1)
        for number in range(first, last):
            tile, row = number // rows, number % rows
            source = x + min(number, num_rows - 1) * x_stride
            for group in range(first_group, last_group):
                index = tile * num_groups + group
                place = index * rows + row
                line = source + group * INPUT_GROUP * item
                if order != 0:
                    gathered_group(source, order + group * INPUT_GROUP * 8, gathered, is_bf16)
                    line = gathered
                scale, low, high = quantized_group(line, target + place * INPUT_GROUP, is_bf16)
                write_float(target + size * SCALES_AT + place * 4, scale)
                plane_at = target + size * _PLANES_AT
                for plane in range(num_planes):
                    kind = kinds + plane * 16
                    start, factor = read_float(kind), read_float(kind + 4)
                    if read_float(kind + 8) != 0:
                        factor = scale
                    if read_float(kind + 12) == 1:
                        write_float(plane_at + place * 4, start + factor * (low + high))
                        plane_at += size * 4
                    else:
                        half_at = plane_at + (index * 2 * rows + row) * 4
                        write_float(half_at, start + factor * low)
                        write_float(half_at + rows * 4, start + factor * high)
                        plane_at += size * 8

    return quantize
