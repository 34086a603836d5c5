"""Infers from the shape of scales which weights share one: a tensor, a row, a group of inputs, or a block of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rtlang.model.loading.quantized.matrix import SCALE_TYPES
from rtlang.model.loading.quantized.packed_bits import power_of_two
from rtlang.model.loading.stored_tensors import StoredTensors
from rtlang_kernels.contract.low_bit import ScaleType


@dataclass(frozen=True, slots=True)
class ScaleLayout:
    """Which outputs and inputs share a scale.

    Attributes:
        group: inputs; all of them where it is at least their number.
        rows: outputs; the last share may be smaller.
    """

    shape: tuple[int, int]
    group: int
    rows: int

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        scales: tuple[int, ...],
        groups: Collection[int],
        blocks: Collection[tuple[int, int]],
    ) -> ScaleLayout:
        """The layout of scales of a shape.

        Args:
            shape: of the weight.
            groups: sizes of groups that config.json names, for a last group that is shorter.
            blocks: numbers of outputs and inputs of a block.
        Raises:
            ValueError: the scales fit no layout.
        """
        num_outputs, num_inputs = shape
        if math.prod(scales) == 1:
            return cls(shape, num_inputs, num_outputs)
        if scales == (num_outputs,):
            return cls(shape, num_inputs, 1)
        if len(scales) == 4 and scales[1] == scales[3] == 1:
            scales = scales[0], scales[2]
        if len(scales) == 2 and min(scales) > 0:
            for rows, group in blocks:
                if scales == (-(-num_outputs // rows), -(-num_inputs // group)):
                    return cls(shape, group, rows)
            whole = [num_inputs // scales[1]] if num_inputs % scales[1] == 0 else []
            for group in (*(each for each in groups if each in whole), *groups, *whole):
                if scales == (num_outputs, -(-num_inputs // group)):
                    return cls(shape, group, 1)
        raise ValueError(f"scales of shape {list(scales)} do not match a weight of shape {list(shape)}")

    @property
    def is_of_rows(self) -> bool:
        """Whether all inputs of an output share a scale."""
        return self.group >= self.shape[1]

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of scales along outputs and along inputs."""
        return -(-self.shape[0] // self.rows), -(-self.shape[1] // self.group)

    def expanded(self, scales: Tensor, first: int, last: int) -> Tensor:
        """The scales [n, groups] of outputs `first` to `last` - 1."""
        num_groups = self.sizes[1]
        if self.rows == 1:
            return scales.reshape(-1, num_groups)[first:last]
        return scales.reshape(-1, num_groups)[torch.arange(first, last) // self.rows]


def one_float(stored: StoredTensors, name: str) -> Tensor:
    """The factor of all weights: float32 [1]. Raises ValueError if the tensor has another number of values or no floats."""
    if stored.dtype(name) not in SCALE_TYPES or math.prod(stored.shape(name)) != 1:
        raise ValueError(
            f"has {math.prod(stored.shape(name))} values of type {stored.dtype(name)} in {name}; expected one float"
        )
    return stored.tensor(name).float().reshape(-1)


def scale_fields(
    stored: StoredTensors, name: str, layout: ScaleLayout, *, has_zero_points: bool = False
) -> dict[str, Any]:
    """The fields of `Codes` for the scales of a name: floats, or exponents of 8 bits.

    Args:
        has_zero_points: whether groups have zero points, which need scales of groups even where a group is the row.
    Raises:
        ValueError: they have another dtype.
    """
    kind, scales = stored.dtype(name), stored.tensor(name)
    scale_type = SCALE_TYPES.get(kind)
    convert: Callable[[Tensor], Tensor] = Tensor.contiguous
    if kind in ("U8", "F8_E8M0"):
        scales, scale_type, convert = scales.view(torch.uint8), ScaleType.BFLOAT16, power_of_two
    if scale_type is None:
        raise ValueError(
            f"has scales of type {kind}; only floats of 16 and 32 bits and exponents of 8 bits are supported"
        )
    if layout.is_of_rows and not has_zero_points:
        return {"row_scales": lambda first, last: convert(layout.expanded(scales, first, last)[:, 0]).float()}
    return {
        "scale_type": scale_type,
        "scales": lambda first, last: convert(layout.expanded(scales, first, last)),
        "group": layout.group,
    }
