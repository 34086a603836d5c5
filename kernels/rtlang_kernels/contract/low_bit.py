"""Weights of few bits: what their codes mean, and the interface between readers of files and the layers of a backend.

A weight [out, in] has a code per element; groups of inputs of an output share a scale. With u a code, s the scale of its group and r the
scale of its output (1 unless given), the weight is

    r * (s * (u - zero))            integers around a zero point, of the format or of the group
    r * (s * u + b)                 integers with an offset b of the group
    r * (s * table[u])              integers from a table of 16
    r * (s * float8(u))             e4m3

exactly: no reader and no layout rounds it. A scale may itself be the product of a float16 scale of `SUPER_GROUP` inputs and an integer of
the group, and so may an offset.

A reader hands out rows of codes, a few at a time, and a backend packs them into its own layout; neither knows the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Protocol

import torch
from torch import Tensor

SUPER_GROUP = 256
"""Inputs that share a super-scale."""
INPUT_GROUP = 32
"""Inputs that are quantized to int8 together in definition A."""
FLOAT8_BLOCK = 16
"""Numbers of inputs and of outputs of a float8 product are multiples of this."""
_MAX_TABLE = 16


class LinearInputs(Enum):
    """The type to which layers over weights of few bits round their inputs."""

    INT8 = "int8"
    """To int8 with a scale for `INPUT_GROUP` inputs, where a backend has such layers (definition A); else not."""
    FLOAT = "float"
    """Not rounded (definition B)."""
    FLOAT8 = "float8"
    """To float8 with a scale per row, for weights that `takes_float8_inputs`; else not. Bits depend on the number of rows."""


class ScaleType(Enum):
    """How the scales of groups are stored."""

    NONE = "none"
    """There are only scales of outputs."""
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    SUPER = "super"
    """int8, times the float16 scale of the super-group."""


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """The format of a weight's codes.

    Attributes:
        bits: of a code: 2, 3, 4, 5, 6 or 8.
        group: inputs that share a scale: 16, or a multiple of 32; not used without scales.
        scales: how scales are stored.
        zero: the code of 0, if no group has one of its own.
        table: the values of codes of 4 bits, from -128 to 127, instead of u - zero; or None.
        has_offsets: whether a group has an offset: float16, or uint8 times minus the float16 offset of the super-group.
        has_zero_points: whether a group has a zero point of its own, a uint8.
        is_float8: whether codes are float8_e4m3fn.
    """

    bits: int
    group: int = INPUT_GROUP
    scales: ScaleType = ScaleType.FLOAT16
    zero: int = 0
    table: tuple[int, ...] | None = None
    has_offsets: bool = False
    has_zero_points: bool = False
    is_float8: bool = False

    def __post_init__(self) -> None:
        if self.bits not in (2, 3, 4, 5, 6, 8):
            raise ValueError(f"bits = {self.bits}: expected 2, 3, 4, 5, 6 or 8")
        if self.group != INPUT_GROUP // 2 and (self.group < INPUT_GROUP or self.group % INPUT_GROUP):
            raise ValueError(f"group = {self.group}: expected 16 or a multiple of {INPUT_GROUP}")
        if self.scales is ScaleType.SUPER and SUPER_GROUP % self.group:
            raise ValueError(f"group = {self.group}: expected a divisor of {SUPER_GROUP} for super-scales")
        if self.table is not None and (self.bits != 4 or len(self.table) != _MAX_TABLE):
            raise ValueError(f"table = {len(self.table)} values of {self.bits} bits: expected 16 of 4 bits")
        kinds = self.table is not None, self.has_offsets, self.has_zero_points, self.is_float8
        if sum(kinds) > 1 or (any(kinds) and self.zero):
            raise ValueError(f"{self}: expected one of zero, table, offsets, zero points and float8")
        if self.is_float8 and self.bits != 8:
            raise ValueError(f"bits = {self.bits}: expected 8 for float8")
        if (self.has_offsets or self.has_zero_points) and self.scales is ScaleType.NONE:
            raise ValueError(f"{self}: expected scales where groups have offsets or zero points")


@dataclass(slots=True)
class GroupedRows:
    """Consecutive outputs of a weight, on the CPU, contiguous.

    Attributes:
        codes: uint8 [n, in], each less than 2 ** bits.
        scales: [n, in / group], of the format's type (SUPER: int8); None without scales.
        offsets: float16 [n, in / group] (SUPER: uint8), or None.
        zero_points: uint8 [n, in / group], or None.
        super_scales, super_offsets: float16 [n, in / SUPER_GROUP], or None.
        row_scales: float32 [n], or None for ones.
    """

    codes: Tensor
    scales: Tensor | None = None
    offsets: Tensor | None = None
    zero_points: Tensor | None = None
    super_scales: Tensor | None = None
    super_offsets: Tensor | None = None
    row_scales: Tensor | None = None


class LowBitWeight(Protocol):
    """A weight as a reader hands it out."""

    @property
    def format(self) -> WeightFormat:
        """The format of its codes."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of outputs and inputs."""

    @property
    def input_order(self) -> Tensor | None:
        """int64 [in]: column i of the codes belongs to input input_order[i]; None where it is i."""

    def rows(self, first: int, last: int) -> GroupedRows:
        """Outputs `first` to `last` - 1. Calls from several threads are safe."""


@dataclass(frozen=True, slots=True)
class HeldWeight:
    """A weight whose rows are in memory already."""

    format: WeightFormat
    held: GroupedRows
    input_order: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """See `LowBitWeight`."""
        num_outputs, num_inputs = self.held.codes.shape
        return num_outputs, num_inputs

    def rows(self, first: int, last: int) -> GroupedRows:
        """See `LowBitWeight`."""
        return _mapped(self.held, lambda each: each[first:last].contiguous())


class StackedWeight:
    """Weights of one format and one order of inputs as a single one, with their outputs one after the other.

    Attributes:
        starts: the first output of each.
    Raises:
        ValueError: they differ in format, inputs or order of inputs.
    """

    def __init__(self, parts: Sequence[LowBitWeight]) -> None:
        first = parts[0]
        if not all(can_stack(first, each) for each in parts):
            shown = ", ".join(f"{each.format} {list(each.shape)}" for each in parts)
            raise ValueError(f"parts = {shown}: expected one format, one number and one order of inputs")
        self.format, self.input_order = first.format, first.input_order
        *starts, num_outputs = itertools.accumulate((each.shape[0] for each in parts), initial=0)
        self.shape, self.starts = (num_outputs, first.shape[1]), tuple(starts)
        self._parts = tuple(parts)

    def rows(self, first: int, last: int) -> GroupedRows:
        """See `LowBitWeight`."""
        found = []
        for start, part in zip(self.starts, self._parts, strict=True):
            stop = start + part.shape[0]
            if first < stop and last > start:
                found.append(part.rows(max(first, start) - start, min(last, stop) - start))
        return found[0] if len(found) == 1 else joined_rows(found)


class ColumnsOf:
    """A weight without its order of inputs: column i of its codes belongs to input i."""

    input_order = None

    def __init__(self, weight: LowBitWeight) -> None:
        self.format, self.shape, self.rows = weight.format, weight.shape, weight.rows


class WeightSlice:
    """Some outputs and some inputs of a weight.

    Args:
        outputs, inputs: first, and one past the last.
    Raises:
        ValueError: the inputs do not start and end at borders of groups, or have an order of their own.
    """

    def __init__(self, weight: LowBitWeight, outputs: tuple[int, int], inputs: tuple[int, int]) -> None:
        fmt, self._weight, self._first, self._inputs = weight.format, weight, outputs[0], inputs
        self.format, self.input_order = fmt, weight.input_order
        self.shape = outputs[1] - outputs[0], inputs[1] - inputs[0]
        self._is_whole = inputs == (0, weight.shape[1])
        border = {ScaleType.SUPER: SUPER_GROUP, ScaleType.NONE: 1}.get(fmt.scales, max(fmt.group, INPUT_GROUP))
        if not self._is_whole and (weight.input_order is not None or any(each % border for each in inputs)):
            raise ValueError(f"inputs = {inputs}: expected multiples of {border}, and inputs in their own order")

    def rows(self, first: int, last: int) -> GroupedRows:
        """See `LowBitWeight`."""
        found, whole = self._weight.rows(self._first + first, self._first + last), self._weight.shape[1]
        if self._is_whole:
            return found

        def cut(values: Tensor) -> Tensor:
            if values.ndim == 1:
                return values
            start, stop = (each * values.shape[1] // whole for each in self._inputs)
            return values[:, start:stop].contiguous()

        return _mapped(found, cut)


def can_stack(a: LowBitWeight, b: LowBitWeight) -> bool:
    """Whether two weights can be parts of one `StackedWeight`."""
    if a.format != b.format or a.shape[1] != b.shape[1]:
        return False
    if a.input_order is None or b.input_order is None:
        return a.input_order is b.input_order
    return torch.equal(a.input_order, b.input_order)


def takes_float8_inputs(weight: LowBitWeight) -> bool:
    """Whether a product of float8 matrices can compute with a weight: float8 with a scale per output, in sizes that are multiples of 16."""
    fmt = weight.format
    is_scaled_by_output = fmt.is_float8 and fmt.scales is ScaleType.NONE and weight.input_order is None
    return is_scaled_by_output and not any(size % FLOAT8_BLOCK for size in weight.shape)


def joined_rows(parts: Sequence[GroupedRows]) -> GroupedRows:
    """The rows of some parts of one format, in order; missing row scales are ones."""
    values: dict[str, Tensor | None] = {}
    has_row_scales = any(each.row_scales is not None for each in parts)
    for name in (each.name for each in fields(GroupedRows)):
        found = [getattr(each, name) for each in parts]
        if name == "row_scales" and has_row_scales:
            found = [torch.ones(len(each.codes)) if each.row_scales is None else each.row_scales for each in parts]
        values[name] = None if found[0] is None else torch.cat(found)
    codes = values.pop("codes")
    assert codes is not None
    return GroupedRows(codes, **values)


def _mapped(rows: GroupedRows, change: Callable[[Tensor], Tensor]) -> GroupedRows:
    values = {each.name: getattr(rows, each.name) for each in fields(GroupedRows) if each.name != "codes"}
    changed = {name: None if value is None else change(value) for name, value in values.items()}
    return GroupedRows(change(rows.codes), **changed)
