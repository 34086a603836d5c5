"""What weights of few bits are, in float64, and a layer over them that multiplies them out a few rows at a time.

This defines the values; the layers of other backends are compared with it. Contracts are in `contract/low_bit.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import check_indices
from rtlang_kernels.contract.low_bit import (
    SUPER_GROUP,
    GroupedRows,
    LowBitWeight,
    ScaleType,
    StackedWeight,
    WeightFormat,
)

_BLOCK = 1 << 22  # elements that are multiplied out at a time


def exact_rows(fmt: WeightFormat, rows: GroupedRows) -> Tensor:
    """The weights of some rows: float64 [n, in], in the order of the codes' columns."""
    codes = rows.codes
    num_rows, num_inputs = codes.shape
    if fmt.is_float8:
        values = codes.view(torch.float8_e4m3fn).double()
    elif fmt.table is not None:
        values = torch.tensor(fmt.table, dtype=torch.float64)[codes.long()]
    else:
        values = codes.double() - fmt.zero
    if fmt.scales is not ScaleType.NONE:
        group = fmt.group
        values = values.view(num_rows, -1, group)
        if fmt.has_zero_points:
            assert rows.zero_points is not None
            values = values - rows.zero_points.double()[..., None]
        assert rows.scales is not None
        values = values * _super_product(rows.scales, rows.super_scales, group)[..., None]
        if fmt.has_offsets:
            assert rows.offsets is not None
            offsets = _super_product(rows.offsets, rows.super_offsets, group)
            values = values - offsets[..., None] if fmt.scales is ScaleType.SUPER else values + offsets[..., None]
        values = values.reshape(num_rows, num_inputs)
    return values if rows.row_scales is None else values * rows.row_scales.double()[:, None]


def _super_product(values: Tensor, supers: Tensor | None, group: int) -> Tensor:
    return (
        values.double()
        if supers is None
        else values.double() * supers.double().repeat_interleave(SUPER_GROUP // group, 1)
    )


def exact_weight(weight: LowBitWeight, first: int = 0, last: int | None = None) -> Tensor:
    """Outputs `first` to `last` - 1 of a weight: float64 [n, in], in the order of the layer's inputs."""
    values = exact_rows(weight.format, weight.rows(first, weight.shape[0] if last is None else last))
    if weight.input_order is None:
        return values
    return torch.empty_like(values).index_copy_(1, weight.input_order, values)


class ReferenceLowBitLinear:
    """A `LinearLayer` of any device: weights in the dtype of the inputs, multiplied out a few rows at a time."""

    def __init__(
        self, weights: Sequence[LowBitWeight], bias: Tensor | None, is_gated: bool, dtype: torch.dtype
    ) -> None:
        self._weight = weights[0] if len(weights) == 1 else StackedWeight(weights)
        self._bias, self._is_gated, self._dtype = bias, is_gated, dtype
        num_outputs, self.in_features = self._weight.shape
        self.out_features = num_outputs // 2 if is_gated else num_outputs

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """See `LinearLayer`."""
        step = max(1, _BLOCK // self.in_features)
        num_outputs = self._weight.shape[0]
        parts = [
            functional.linear(x, self._multiplied_out(first, min(first + step, num_outputs)).to(x.device))
            for first in range(0, num_outputs, step)
        ]
        y = torch.cat(parts, 1)
        if self._bias is not None:
            y = y + self._bias.to(y.device, y.dtype)
        if self._is_gated:
            gate, up = y.chunk(2, 1)
            y = functional.silu(gate) * up
        return y if residual is None else residual.add_(y)

    def rows(self, indices: Tensor) -> Tensor:
        """See `LinearLayer`."""
        runs: list[list[int]] = []  # of consecutive rows: first, and one past the last
        check_indices(indices, self.out_features)
        for index in indices.tolist():
            if runs and runs[-1][1] == index:
                runs[-1][1] += 1
            else:
                runs.append([index, index + 1])
        found = [self._multiplied_out(first, last) for first, last in runs]
        return torch.cat(found) if found else torch.empty(0, self.in_features, dtype=self._dtype)

    def _multiplied_out(self, first: int, last: int) -> Tensor:
        return exact_weight(self._weight, first, last).to(self._dtype)
