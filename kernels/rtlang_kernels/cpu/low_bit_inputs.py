"""Inputs of layers over weights of few bits, as bytes in groups of 32: quantized once for all layers that have the same inputs.

Bytes lie as [tiles of rows, groups, rows of a tile, 32], so that a tile of rows is read in order and a group of it is a matrix tile.
Beside them are the scales of the groups and, where a layer asks for it, a plane of values that depend on the sums of the bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.low_bit import INPUT_GROUP
from rtlang_kernels.cpu.codegen.input_quantizing import quantized_group
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import MAGIC, NO_EXTRA, OFFSETS
from rtlang_kernels.cpu.low_bit_layout import LowBitLayout
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel

_WORTH_THREADS = 1 << 18  # inputs that take some 100 us


class Plane(NamedTuple):
    """Values of groups: start + factor * sum of the bytes, or scale * sum of the bytes; of each half of a group if `halves` is 2."""

    start: float
    factor: float
    is_scaled: bool
    halves: int


def planes_of(layout: LowBitLayout) -> tuple[Plane | None, Plane | None]:
    """What a layer needs beside bytes and scales: the starts of its integer sums, and what offsets or zero points are multiplied with."""
    code, halves = layout.code, layout.code.halves
    start = Plane(MAGIC, -layout.zero, False, halves) if code.has_start else None
    extra = None if code.extra == NO_EXTRA else Plane(0.0, 1.0, code.extra == OFFSETS, halves)
    return start, extra


@dataclass(frozen=True, slots=True)
class QuantizedInputs:
    """Rows as bytes.

    Attributes:
        rows: of a tile; missing ones of the last tile are zeros.
        values: int8 [tiles, groups, rows, INPUT_GROUP].
        scales: float32 [tiles, groups, rows].
        planes: float32 [tiles, groups, halves, rows] each.
    """

    rows: int
    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    planes: dict[Plane | None, NDArray[np.float32]]


def quantize_inputs(x: Tensor, num_groups: int, rows: int, planes: Sequence[Plane | None]) -> QuantizedInputs:
    """Quantize x [num_rows, inputs], float32 or bfloat16, contiguous in its rows.

    A row with an input that is not finite has scales of NaN.

    Args:
        num_groups: of inputs; the missing ones of the last groups are zeros.  rows: of a tile.  planes: None is left out.
    """
    num_rows, num_inputs = x.shape
    if padding := num_groups * INPUT_GROUP - num_inputs:
        x = functional.pad(x, (0, padding))
    num_tiles = -(-num_rows // rows)
    wanted = [plane for plane in dict.fromkeys(planes) if plane is not None]
    size = num_tiles * num_groups * rows
    values, scales = np.empty(size * INPUT_GROUP, np.int8), np.empty(size, np.float32)
    ends = np.cumsum([0, *(size * plane.halves for plane in wanted)])
    filled = np.empty(ends[-1], np.float32)
    kinds = np.array(wanted, np.float32).reshape(-1, len(Plane._fields))
    run = quantize_kernel(int(x.dtype == torch.bfloat16))
    call = (
        x.data_ptr(),
        x.stride(0) * x.itemsize,
        values.ctypes.data,
        scales,
        filled,
        ends,
        kinds,
        num_rows,
        num_groups,
        rows,
    )
    num_threads = min(torch.get_num_threads(), num_tiles) if num_rows * num_inputs >= _WORTH_THREADS else 1
    cuts = [num_tiles * i // num_threads for i in range(num_threads + 1)]
    run_chunks(run, [(*call, a, b) for a, b in itertools.pairwise(cuts)])
    found: dict[Plane | None, NDArray[np.float32]] = {
        plane: filled[a:b] for plane, (a, b) in zip(wanted, itertools.pairwise(ends), strict=True)
    }
    return QuantizedInputs(rows, values, scales, found)


@cache
def quantize_kernel(is_bf16: int) -> Callable[..., None]:
    """Compile the quantization of rows.

    Args of the kernel: addresses of the rows, bytes from one to the next, address of the bytes; scales; planes, one after another, their
    ends from 0 on, and their fields; num_rows, num_groups, rows of a tile; the range of tiles.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4

    @kernel(is_exact=True)
    def quantize(
        x: Any,
        x_stride: Any,
        values: Any,
        scales: Any,
        planes: Any,
        ends: Any,
        kinds: Any,
        num_rows: Any,
        num_groups: Any,
        rows: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        zeros = np.zeros(INPUT_GROUP * item, np.uint8)
        for tile in range(first, last):
            for row in range(rows):
                token = tile * rows + row
                for group in range(num_groups):
                    source = zeros.ctypes.data
                    if token < num_rows:
                        source = x + token * x_stride + group * INPUT_GROUP * item
                    index = tile * num_groups + group
                    place = index * rows + row
                    scale, low, high = quantized_group(source, values + place * INPUT_GROUP, is_bf16)
                    scales[place] = scale
                    for plane in range(len(kinds)):
                        start, factor = kinds[plane, 0], kinds[plane, 1]
                        if kinds[plane, 2] != 0:
                            factor = scale
                        if kinds[plane, 3] == 1:
                            planes[ends[plane] + place] = start + factor * (low + high)
                        else:
                            half = ends[plane] + index * 2 * rows + row
                            planes[half] = start + factor * low
                            planes[half + rows] = start + factor * high

    return quantize
