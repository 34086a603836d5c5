"""Weights of few bits as they lie on the device: the bytes of the file, in an order that kernels read in whole lines.

Codes of 5, 6 and 3 bits are two planes: 4 + 1, 4 + 2 and 2 + 1 bits. A slice is 32 consecutive inputs (16, where groups or the number of
inputs ask for it). A word of a plane has 16 bits (8 in a plane of 1 bit) and holds codes of one output, one of each of several slices: word
`lane` has input `lane` of the first slice in its lowest bits. So one load gives several operands of matrix products, and a code takes one
shift, one `and` and one multiply-add. 16 bits are the unit in which matrix instructions take their operands from shared memory. A plane is
[tiles of inputs, outputs, lanes]: a program, which has 64 or 128 outputs, reads 2 to 8 KB that are contiguous, 16 bytes a thread.

Scales, offsets and zero points are words of 32 bits [words, outputs] with values of consecutive groups: 32 bits are the least that a
program loads ahead of its use. Weights that are floats stay as they are, [outputs, inputs]. Scales stay as the file has them: super-
scales beside integers, and one byte for powers of two and for float8, which a reader widens. Small integers that all fit in 4 bits take
4, and equal zero points none. All of this is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.low_bit import (
    SUPER_GROUP,
    GroupedRows,
    LowBitWeight,
    ScaleType,
    WeightFormat,
    joined_rows,
)

E2M1_TWICE = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
_PLANES = {2: (2, 0), 3: (2, 1), 4: (4, 0), 5: (4, 1), 6: (4, 2), 8: (8, 0)}
_WORD_BITS, _SMALL_WORD_BITS, _GROUP_WORD_BITS = 16, 8, 32
_SCALE_BITS = {"none": 0, "e8m0": 8, "e4m3": 8, "float16": 16, "bfloat16": 16, "float32": 32}
_BLOCK = 1 << 22  # codes that are read at a time
_FLOAT_STEPS = {2: 64, 4: 16}  # inputs in a step, by the bytes of an element; 32 of 4 bytes spill registers on sm_80
_NAN = 127  # of float8, with either sign
_MANTISSA, _INFINITE, _LEAST_POWER = 0x7FFFFF, 0x7F800000, 0x400000  # bits of float32; the last is 2 ** -127


class StoredFormat(NamedTuple):
    """All that determines the code of a kernel for some weights; a constant of the kernel.

    Attributes:
        bits, low_bits, high_bits: of a code and of its planes; high_bits may be 0.
        lanes: inputs of a slice.
        step: inputs that all planes hold in whole words.
        group, super_group: inputs that share a scale, and a super-scale.
        code: what it is: "integer", "table", "e2m1" (twice the value), "float8", or "float": the elements are the weights.
        zero: the code of 0.
        table: 16 int8 as 4 int32, the first in the lowest bits.
        scales: "none", "super" (int8 or 4 bits, times a super-scale), or a type: "float16", "bfloat16", "float32", "e8m0", "e4m3".
        scale_bits: of a stored scale or super-scaled integer; 0 for "none".
        has_nibbles: whether the integers of groups are stored in 4 bits.
        has_nan: whether a code of float8 is NaN.
    """

    bits: int
    low_bits: int
    high_bits: int
    lanes: int
    step: int
    group: int
    super_group: int
    code: str
    zero: int
    table: tuple[int, int, int, int]
    scales: str
    scale_bits: int
    has_offsets: bool
    has_zero_points: bool
    has_row_scales: bool
    has_nibbles: bool
    has_nan: bool


@dataclass(frozen=True, slots=True)
class FloatWeight:
    """A weight [outputs, inputs] of floats, in the place of a `LowBitWeight`."""

    tensor: Tensor
    input_order: None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of outputs and inputs."""
        num_outputs, num_inputs = self.tensor.shape
        return num_outputs, num_inputs


class Held(NamedTuple):
    """Tensors of a weight on its device, in the order in which kernels take them; those that it lacks are None."""

    low: Tensor
    high: Tensor | None
    scales: Tensor | None
    offsets: Tensor | None
    zero_points: Tensor | None
    super_scales: Tensor | None
    super_offsets: Tensor | None
    row_scales: Tensor | None


@dataclass(frozen=True, slots=True)
class StoredCodes:
    """A weight on a device. `shape` is [outputs, inputs], `held` its tensors."""

    shape: tuple[int, int]
    format: StoredFormat
    held: Held

    @property
    def num_bytes(self) -> int:
        """Bytes on the device."""
        return sum(tensor.nbytes for tensor in self.held if tensor is not None)


def stored_format(
    fmt: WeightFormat,
    num_inputs: int,
    *,
    scales: str | None = None,
    has_row_scales: bool = False,
    has_nibbles: bool = False,
    has_nan: bool = False,
) -> StoredFormat:
    """How weights of a format are stored; `scales`: see `StoredFormat`, by default as the format has them.

    A slice has 32 lanes, unless groups are smaller or words would have unused bits.
    """
    low_bits, high_bits = _PLANES[fmt.bits]
    group = SUPER_GROUP if fmt.scales is ScaleType.NONE else fmt.group
    slots = _slots(high_bits or low_bits)
    lanes = 32 if group % 32 == 0 and num_inputs % (32 * slots) == 0 else 16
    scales = fmt.scales.value if scales is None else scales
    code = "float8" if fmt.is_float8 else "integer" if fmt.table is None else "table"
    if fmt.table == E2M1_TWICE:
        code = "e2m1"
    return StoredFormat(
        bits=fmt.bits,
        low_bits=low_bits,
        high_bits=high_bits,
        lanes=lanes,
        step=lanes * slots,
        group=group,
        super_group=SUPER_GROUP,
        code=code,
        zero=fmt.zero,
        table=_table_words(fmt.table) if fmt.table is not None and code == "table" else (0, 0, 0, 0),
        scales=scales,
        scale_bits=_SCALE_BITS.get(scales, 4 if has_nibbles else 8),
        has_offsets=fmt.has_offsets,
        has_zero_points=fmt.has_zero_points,
        has_row_scales=has_row_scales,
        has_nibbles=has_nibbles,
        has_nan=has_nan,
    )


def store(weight: LowBitWeight | FloatWeight, device: torch.device) -> StoredCodes:
    """Read a weight a few rows at a time, and copy it to a device.

    Raises:
        ValueError: the weight is empty.
    """
    if isinstance(weight, FloatWeight):
        return _stored_floats(weight.tensor, device)
    fmt, (num_outputs, num_inputs) = weight.format, weight.shape
    if num_outputs < 1 or num_inputs < 1:
        raise ValueError(f"weight = {list(weight.shape)}: expected at least one output and one input")
    plan = stored_format(fmt, num_inputs)
    low = _empty_plane(plan.low_bits, num_outputs, num_inputs, plan.lanes, device)
    high = _empty_plane(plan.high_bits, num_outputs, num_inputs, plan.lanes, device) if plan.high_bits else None
    others: list[GroupedRows] = []
    has_nan = False
    for first, rows in _blocks(weight):
        codes, last = rows.codes, first + len(rows.codes)
        has_nan |= fmt.is_float8 and bool(((codes & _NAN) == _NAN).any())
        low[:, first:last].copy_(_words(codes & ((1 << plan.low_bits) - 1), plan.low_bits, plan.lanes))
        if high is not None:
            high[:, first:last].copy_(_words(codes >> plan.low_bits, plan.high_bits, plan.lanes))
        others.append(replace(rows, codes=codes[:, :0]))
    rest, fmt = _without_equal_zero_points(joined_rows(others), fmt)
    scales, scale_type = _narrowed_scales(rest.scales, fmt.scales)
    integers = [rest.zero_points, *([scales, rest.offsets] if fmt.scales is ScaleType.SUPER else [])]
    stored = stored_format(
        fmt,
        num_inputs,
        scales=scale_type,
        has_row_scales=rest.row_scales is not None,
        has_nibbles=_fit_in_nibbles([each for each in integers if each is not None]),
        has_nan=has_nan,
    )
    small = 4 if stored.has_nibbles else 8

    def moved(values: Tensor | None, bits: int, covered: int = stored.group) -> Tensor | None:
        num_groups = math.ceil(-(-num_inputs // stored.step) * stored.step / covered)
        return None if values is None else _group_words(values, bits, num_groups).to(device)

    held = Held(
        low=low,
        high=high,
        scales=moved(scales, stored.scale_bits),
        offsets=moved(rest.offsets, small if fmt.scales is ScaleType.SUPER else 16),
        zero_points=moved(rest.zero_points, small),
        super_scales=moved(rest.super_scales, 16, SUPER_GROUP),
        super_offsets=moved(rest.super_offsets, 16, SUPER_GROUP),
        row_scales=None if rest.row_scales is None else rest.row_scales.to(device),
    )
    return StoredCodes((num_outputs, num_inputs), stored, held)


def _stored_floats(weight: Tensor, device: torch.device) -> StoredCodes:
    bits, lanes = 8 * weight.itemsize, _FLOAT_STEPS[weight.itemsize]
    codes = StoredFormat(
        bits=bits,
        low_bits=bits,
        high_bits=0,
        lanes=lanes,
        step=lanes,
        group=SUPER_GROUP,
        super_group=SUPER_GROUP,
        code="float",
        zero=0,
        table=(0, 0, 0, 0),
        scales="none",
        scale_bits=0,
        has_offsets=False,
        has_zero_points=False,
        has_row_scales=False,
        has_nibbles=False,
        has_nan=False,
    )
    held = Held(weight.to(device).contiguous(), *[None] * (len(Held._fields) - 1))
    return StoredCodes((len(weight), weight.shape[1]), codes, held)


def _blocks(weight: LowBitWeight) -> Iterator[tuple[int, GroupedRows]]:
    """Rows of a weight with the index of the first, some megabytes of codes at a time."""
    num_outputs, num_inputs = weight.shape
    count = max(1, _BLOCK // num_inputs)
    for first in range(0, num_outputs, count):
        yield first, weight.rows(first, min(first + count, num_outputs))


def _slots(plane_bits: int) -> int:
    """Codes in a word of a plane."""
    return (_SMALL_WORD_BITS if plane_bits == 1 else _WORD_BITS) // plane_bits


def _empty_plane(bits: int, num_outputs: int, num_inputs: int, lanes: int, device: torch.device) -> Tensor:
    num_tiles = -(-num_inputs // (lanes * _slots(bits)))
    return torch.empty(num_tiles, num_outputs, lanes, dtype=torch.uint8 if bits == 1 else torch.uint16, device=device)


def _words(codes: Tensor, bits: int, lanes: int) -> Tensor:
    """Words [tiles, n, lanes] of codes uint8 [n, inputs] that have `bits` bits."""
    slots = _slots(bits)
    missing = -codes.shape[1] % (lanes * slots)
    slices = functional.pad(codes, (0, missing)).view(len(codes), -1, slots, lanes)
    num_bytes = 1 if bits == 1 else 2
    per_byte = slots // num_bytes
    found = []
    for first in range(0, slots, per_byte):
        byte = slices[:, :, first].clone()
        for slot in range(1, per_byte):
            byte |= slices[:, :, first + slot] << (bits * slot)
        found.append(byte)
    words = found[0] if num_bytes == 1 else torch.stack(found, -1).view(torch.uint16).squeeze(-1)
    return words.transpose(0, 1)


def _table_words(table: Sequence[int]) -> tuple[int, int, int, int]:
    """The 16 int8 of a table as 4 int32."""
    a, b, c, d = np.array(table, np.int8).view("<i4").tolist()
    return a, b, c, d


def _narrowed_scales(scales: Tensor | None, scale_type: ScaleType) -> tuple[Tensor | None, str]:
    """Scales, in one byte if that is exact, and their type."""
    if scales is None or scale_type is ScaleType.SUPER:
        return scales, scale_type.value
    wide = scales.float()
    bits = wide.view(torch.int32)
    is_power = (bits & _MANTISSA == 0) & (bits > 0) & (bits < _INFINITE)
    if bool((is_power | (bits == _LEAST_POWER)).all()):
        return (bits >> 23).to(torch.uint8), "e8m0"
    small = wide.to(torch.float8_e4m3fn)
    if torch.equal(small.float().view(torch.int32), bits) and bool(wide.isfinite().all()):
        return small.view(torch.uint8), "e4m3"
    return scales, scale_type.value


def _without_equal_zero_points(rows: GroupedRows, fmt: WeightFormat) -> tuple[GroupedRows, WeightFormat]:
    """Rows whose groups have one zero point, as in files of symmetric codes, get it from their format."""
    if rows.zero_points is None or int(rows.zero_points.min()) != int(rows.zero_points.max()):
        return rows, fmt
    zero = int(rows.zero_points[0, 0])
    return replace(rows, zero_points=None), replace(fmt, has_zero_points=False, zero=zero)


def _fit_in_nibbles(integers: Sequence[Tensor]) -> bool:
    return bool(integers) and all(bool(((each >= 0) & (each <= 15)).all()) for each in integers)


def _group_words(values: Tensor, bits: int, num_groups: int) -> Tensor:
    """Words uint32 [words, outputs] of values [outputs, groups] of some bits, for `num_groups` groups or more; the rest is 0."""
    count = _GROUP_WORD_BITS // bits
    unsigned = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}[values.itemsize]
    codes = values.view(unsigned).numpy()
    words = np.zeros((-(-max(num_groups, codes.shape[1]) // count), len(codes)), np.uint32)
    for group in range(codes.shape[1]):
        words[group // count] |= codes[:, group].astype(np.uint32) << np.uint32(group % count * bits)
    return torch.from_numpy(words)
