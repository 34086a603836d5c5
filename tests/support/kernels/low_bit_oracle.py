"""Layers over weights of few bits with inputs in bytes, as they are defined: one rounding after another, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtlang_kernels.contract.low_bit import INPUT_GROUP, GroupedRows, ScaleType, WeightFormat

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def fused(a: Doubles, b: Doubles, c: Doubles) -> Floats:
    """float32(a * b + c), rounded once; a, b and c are float32 numbers in float64."""
    product = a * b  # exact
    total = product + c
    other = total - product
    error = (product - (total - other)) + (c - other)
    is_even = total.view(np.int64) & 1 == 0
    # What is not exact becomes odd, so that float32 rounds it as it would round the exact sum.
    odd = np.where(is_even & (error != 0), np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype(np.float32)


def quantized(x: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Bytes [rows, groups, INPUT_GROUP] of inputs and scales [rows, groups]."""
    groups = np.pad(x, ((0, 0), (0, -x.shape[1] % INPUT_GROUP))).reshape(len(x), -1, INPUT_GROUP)
    most = np.abs(groups).max(2)
    with np.errstate(all="ignore"):
        inverse = np.where(most >= np.float32(2.0**-119), np.float32(127) / most, np.float32(0))
        bytes_ = np.rint(groups * inverse[..., None])
    is_finite = np.isfinite(most)
    bytes_ = np.where(is_finite[..., None], bytes_, 0).astype(np.int64)
    return bytes_, np.where(is_finite, most * np.float32(1 / 127), np.float32(np.nan))


def low_bit_sums(fmt: WeightFormat, rows: GroupedRows, x: Floats) -> Floats:
    """Sums [rows of x, outputs], times the scales of outputs."""
    inputs, input_scales = quantized(x)
    codes = rows.codes.numpy().astype(np.int64)
    group = x.shape[1] if fmt.scales is ScaleType.NONE else fmt.group
    values = np.array(fmt.table)[codes] if fmt.table is not None else codes - fmt.zero
    if rows.zero_points is not None:
        values = values - rows.zero_points.numpy().astype(np.int64).repeat(group, 1)
    values = np.pad(values, ((0, 0), (0, inputs.shape[1] * INPUT_GROUP - x.shape[1])))
    step = min(group, INPUT_GROUP) if fmt.scales is not ScaleType.NONE else INPUT_GROUP
    y = np.zeros((len(x), len(codes)), np.float32)
    for first in range(0, x.shape[1], step):
        chunk, number, start = first // INPUT_GROUP, first // group, first % INPUT_GROUP
        part, s = inputs[:, chunk, start : start + step], input_scales[:, chunk, None]
        dot = (part @ values[:, first : first + step].T).astype(np.float64)
        p = (dot * of_group(rows.scales, rows.super_scales, number, group)).astype(np.float32)
        y = fused(p.astype(np.float64), s.astype(np.float64), y.astype(np.float64))
        if rows.offsets is not None:
            b = of_group(rows.offsets, rows.super_offsets, number, group) * (1 if rows.super_offsets is None else -1)
            t = s * part.sum(1, keepdims=True).astype(np.float32)
            y = fused(b, t.astype(np.float64), y.astype(np.float64))
    return y if rows.row_scales is None else y * rows.row_scales.numpy()


def of_group(values: object, supers: object, number: int, group: int) -> Doubles:
    """Scales or offsets of a group, for all outputs."""
    found = np.ones(1) if values is None else values[:, number].double().numpy()  # type: ignore[index]
    return found if supers is None else found * supers[:, number * group // 256].double().numpy()  # type: ignore[index]
