"""A matrix of codes with scales as a scheme reads it from a file: handed to layers where they support its format, or multiplied out.

Schemes differ in how they spell codes and scales; this has the part that they share. Nothing is rounded except the result of `floats`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from rtlang.model.loading.stored_tensors import StoredTensors
from rtlang_kernels.contract.low_bit import INPUT_GROUP, GroupedRows, LowBitWeight, ScaleType, WeightFormat

_BLOCK = 1 << 22  # elements that are multiplied out at a time
SCALE_TYPES = {"F16": ScaleType.FLOAT16, "BF16": ScaleType.BFLOAT16, "F32": ScaleType.FLOAT32}
"""The dtypes of scales in safetensors files."""
Rows = Callable[[int, int], Tensor]
"""Entries of the outputs from the first to one before the last."""


class Matrix(Protocol):
    """A quantized matrix of a checkpoint."""

    @property
    def shape(self) -> tuple[int, ...]:
        """[out, in]."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of its tensors in the files."""

    def num_bytes(self) -> int:
        """Its bytes in the files."""

    def low_bit(self) -> LowBitWeight | None:
        """As it is stored; None if layers do not support its format. Raises ValueError if its tensors do not fit together."""

    def floats(self, dtype: torch.dtype) -> Tensor:
        """Multiplied out and rounded once. Raises ValueError if its tensors do not fit together."""


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes with scales; see `rtlang_kernels.contract.low_bit` for the values that they stand for.

    Attributes:
        shape: outputs and inputs.
        bits, zero, table, is_float8: as of `WeightFormat`.
        codes: uint8 [n, in].
        scale_type: the dtype of scales; NONE without them.
        scales: [n, groups], or None.
        zero_points: uint8 [n, groups], or None.
        row_scales: float32 [n], or None for ones.
        group: inputs that share a scale; the last group may be shorter.
        input_order: as of `LowBitWeight`.
        group_of: int64 [in], the group of each column where they do not follow one another; such codes are only multiplied out.
    """

    shape: tuple[int, int]
    bits: int
    codes: Rows
    scale_type: ScaleType = ScaleType.NONE
    scales: Rows | None = None
    zero_points: Rows | None = None
    row_scales: Rows | None = None
    group: int = 0
    zero: int = 0
    table: tuple[int, ...] | None = None
    is_float8: bool = False
    input_order: Tensor | None = None
    group_of: Tensor | None = None

    def low_bit(self) -> LowBitWeight | None:
        """The codes for layers; None if the groups do not fit `WeightFormat`."""
        num_inputs = self.shape[1]
        if num_inputs % INPUT_GROUP or self.bits not in (2, 3, 4, 5, 6, 8) or self.group_of is not None:
            return None
        common: dict[str, Any] = {"zero": self.zero, "table": self.table, "is_float8": self.is_float8}
        if self.scales is None:
            return _Weight(self, WeightFormat(self.bits, scales=ScaleType.NONE, **common), 1)
        group = num_inputs if self.group >= num_inputs else math.gcd(self.group, num_inputs)
        if group % INPUT_GROUP:
            group = math.gcd(group, INPUT_GROUP // 2)
        if group < INPUT_GROUP // 2:
            return None
        return _Weight(
            self,
            WeightFormat(self.bits, group, self.scale_type, has_zero_points=self.zero_points is not None, **common),
            self.group // group if self.group < num_inputs else 1,
        )

    def floats(self, dtype: torch.dtype) -> Tensor:
        """The weights [out, in], rounded once."""
        num_outputs, num_inputs = self.shape
        found = torch.empty(num_outputs, num_inputs, dtype=dtype)
        step = max(1, _BLOCK // max(1, num_inputs))
        for first in range(0, num_outputs, step):
            last = min(first + step, num_outputs)
            values = self._exact(first, last)
            if self.input_order is None:
                found[first:last] = values
            else:
                found[first:last, self.input_order] = values.to(dtype)
        return found

    def _exact(self, first: int, last: int) -> Tensor:
        """float64 [n, in], in the order of the columns."""
        codes = self.codes(first, last)
        if self.is_float8:
            values = codes.view(torch.float8_e4m3fn).double()
        elif self.table is not None:
            values = torch.tensor(self.table, dtype=torch.float64)[codes.long()]
        else:
            values = codes.double() - self.zero
        if self.scales is not None:
            places = self.group_of
            if places is None:
                places = torch.arange(self.shape[1]) // max(1, self.group)
            if self.zero_points is not None:
                values -= self.zero_points(first, last).double()[:, places]
            values *= self.scales(first, last).double()[:, places]
        if self.row_scales is not None:
            values *= self.row_scales(first, last).double()[:, None]
        return values


class _Weight:
    """Codes whose format layers support; implements `LowBitWeight`."""

    def __init__(self, codes: Codes, fmt: WeightFormat, repeats: int) -> None:
        self._codes, self.format, self._repeats = codes, fmt, repeats
        self.shape, self.input_order = codes.shape, codes.input_order

    def rows(self, first: int, last: int) -> GroupedRows:
        """See `LowBitWeight`."""
        codes = self._codes
        rows = GroupedRows(codes.codes(first, last).contiguous())
        if codes.scales is not None:
            rows.scales = self._regrouped(codes.scales(first, last))
        if codes.zero_points is not None:
            rows.zero_points = self._regrouped(codes.zero_points(first, last))
        if codes.row_scales is not None:
            rows.row_scales = codes.row_scales(first, last).contiguous()
        return rows

    def _regrouped(self, values: Tensor) -> Tensor:
        """One value for each group of the format, where those of the file are a multiple of it; the last of these may be shorter."""
        if self._repeats > 1:
            values = values.repeat_interleave(self._repeats, 1)[:, : self.shape[1] // self.format.group]
        return values.contiguous()


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape [out, in] of a tensor. Raises ValueError if it is no matrix or is empty."""
    if len(shape) != 2 or min(shape) < 1:
        raise ValueError(f"has shape {list(shape)}; expected a matrix")
    return shape[0], shape[1]


def unpacked_int8(values: Tensor) -> Tensor:
    """Signed bytes as codes whose zero is 128."""
    return values.view(torch.uint8) ^ 128


class CodedMatrix:
    """A matrix of codes; implements `Matrix`. Its tensors are read when the codes are first needed.

    Args:
        parts: names of its tensors.
        read: returns the codes; raises ValueError if the tensors do not fit together.
    """

    def __init__(
        self, stored: StoredTensors, parts: Iterable[str], shape: tuple[int, int], read: Callable[[], Codes]
    ) -> None:
        self._stored, self.parts, self.shape = stored, tuple(parts), shape
        self._read = read
        self._codes: Codes | None = None

    def num_bytes(self) -> int:
        """See `Matrix`."""
        return sum(map(self._stored.num_bytes, self.parts))

    def low_bit(self) -> LowBitWeight | None:
        """See `Matrix`."""
        return self._found().low_bit()

    def floats(self, dtype: torch.dtype) -> Tensor:
        """See `Matrix`."""
        return self._found().floats(dtype)

    def _found(self) -> Codes:
        if self._codes is None:
            self._codes = self._read()
        return self._codes
