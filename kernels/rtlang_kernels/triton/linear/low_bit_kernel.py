"""Kernels of linear layers over weights of few bits, which they dequantize in registers.

`weight_tile` turns stored codes and scales into weights; the product and the lookup of rows both use it. See `stored_codes` for the order
in memory. The weights are the left operand of the matrix product, since it may stay in registers.

Must stay true: the bits of a result do not depend on the number of rows. Its sum has one order, within a part, then over parts, whatever
the tile and wherever the parts are added; the matrix instructions of all tiles sum the same number of inputs at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import triton.language as tl

from rtlang_kernels.triton.primitives.early_start import wait_for_inputs
from rtlang_kernels.triton.primitives.float8 import from_float8
from rtlang_kernels.triton.primitives.jit import jit


class Form(NamedTuple):
    """The parts of a layer besides the weights; a constant of the kernels."""

    is_gated: bool = False
    has_bias: bool = False
    has_residual: bool = False


ONE = tl.constexpr(0x3F800000)  # the bits of 1.0
MANTISSA = tl.constexpr(23)
LEAST_POWER = tl.constexpr(0x400000)  # the bits of 2 ** -127
TO_E2M1 = tl.constexpr(2.0**14)  # from the float16 number with the same exponent and mantissa


@jit
def _group_bits(
    source: tl.tensor,
    step: tl.tensor,
    SLICE: tl.constexpr,
    rows: tl.tensor,
    num_outputs: tl.tensor,
    GROUP: tl.constexpr,
    WIDTH: tl.constexpr,
    FORMAT: tl.constexpr,
) -> tl.tensor:
    """Load the bits that the group of a slice has in words of some groups: uint32 [rows].

    Slices whose groups are in one word have one expression for its place, so the compiler loads it once.
    """
    COUNT: tl.constexpr = 32 // WIDTH
    COVERED: tl.constexpr = GROUP * COUNT  # inputs
    if FORMAT.step % COVERED == 0:
        word = step * (FORMAT.step // COVERED) + SLICE * FORMAT.lanes // COVERED
        slot = SLICE * FORMAT.lanes // GROUP % COUNT
    elif COVERED % FORMAT.step == 0:
        word = step // (COVERED // FORMAT.step)
        slot = (step * FORMAT.step + SLICE * FORMAT.lanes) // GROUP % COUNT
    else:
        group = (step * FORMAT.step + SLICE * FORMAT.lanes) // GROUP
        word, slot = group // COUNT, group % COUNT
    bits = tl.load(source + word.to(tl.int64) * num_outputs + rows)
    if WIDTH == 32:
        return bits
    else:
        return (bits >> slot * WIDTH) & ((1 << WIDTH) - 1)


@jit
def _as_float32(bits: tl.tensor, KIND: tl.constexpr) -> tl.tensor:
    """Floats of the bits uint32 of a smaller type."""
    if KIND == "float16":
        return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    elif KIND == "bfloat16":
        return (bits << 16).to(tl.float32, bitcast=True)
    elif KIND == "e8m0":
        return tl.maximum((bits << MANTISSA).to(tl.int32), LEAST_POWER).to(tl.float32, bitcast=True)
    elif KIND == "e4m3":
        return from_float8(bits).to(tl.float32)
    else:
        return bits.to(tl.float32, bitcast=True)


@jit
def _factors(
    held: tl.tuple,
    step: tl.tensor,
    SLICE: tl.constexpr,
    rows: tl.tensor,
    num_outputs: tl.tensor,
    FORMAT: tl.constexpr,
) -> tl.tuple:
    """Factor and addend [rows] that turn `_values` of one slice into weights."""
    _, _, scales, offsets, zero_points, super_scales, super_offsets, row_scales = held
    scale = tl.full(rows.shape, 1.0, tl.float32)
    offset = tl.zeros(rows.shape, tl.float32)
    zero = tl.full(rows.shape, FORMAT.zero, tl.float32)
    SMALL: tl.constexpr = 4 if FORMAT.has_nibbles else 8
    if FORMAT.scales == "super":
        bits = _group_bits(scales, step, SLICE, rows, num_outputs, FORMAT.group, FORMAT.scale_bits, FORMAT)
        factor = _group_bits(super_scales, step, SLICE, rows, num_outputs, FORMAT.super_group, 16, FORMAT)
        signed = bits.to(tl.uint8).to(tl.int8, bitcast=True)
        scale = signed.to(tl.float32) * _as_float32(factor, "float16")
        if FORMAT.has_offsets:
            bits = _group_bits(offsets, step, SLICE, rows, num_outputs, FORMAT.group, SMALL, FORMAT)
            factor = _group_bits(super_offsets, step, SLICE, rows, num_outputs, FORMAT.super_group, 16, FORMAT)
            offset = bits.to(tl.float32) * -_as_float32(factor, "float16")
    elif FORMAT.scales != "none":
        bits = _group_bits(scales, step, SLICE, rows, num_outputs, FORMAT.group, FORMAT.scale_bits, FORMAT)
        SCALES: tl.constexpr = FORMAT.scales  # an attribute is no constant argument in triton 3.6
        scale = _as_float32(bits, SCALES)
        if FORMAT.has_offsets:
            bits = _group_bits(offsets, step, SLICE, rows, num_outputs, FORMAT.group, 16, FORMAT)
            offset = _as_float32(bits, "float16")
    if FORMAT.has_zero_points:
        bits = _group_bits(zero_points, step, SLICE, rows, num_outputs, FORMAT.group, SMALL, FORMAT)
        zero = bits.to(tl.float32)
    if FORMAT.has_row_scales:
        factor = tl.load(row_scales + rows)
        scale, offset = scale * factor, offset * factor
    if FORMAT.code == "integer":
        return scale * (1 << FORMAT.bits), offset - scale * (zero + (1 << FORMAT.bits))
    elif FORMAT.code == "e2m1":
        return scale * 2, offset  # the table has doubled values
    else:
        return scale, offset


@jit
def _codes(
    held: tl.tuple,
    step: tl.tensor,
    SLICE: tl.constexpr,
    rows: tl.tensor,
    num_outputs: tl.tensor,
    num_inputs: tl.tensor,
    FORMAT: tl.constexpr,
) -> tl.tensor:
    """Codes uint32 [rows, lanes] of one slice of a step. Past the last input they are those of other inputs."""
    low, high = held[0], held[1]
    SLOTS: tl.constexpr = 16 // FORMAT.low_bits
    COVERED: tl.constexpr = FORMAT.lanes * SLOTS  # inputs
    lanes = (rows * FORMAT.lanes)[:, None] + tl.arange(0, FORMAT.lanes)[None, :]
    size = num_outputs.to(tl.int64) * FORMAT.lanes
    tile = tl.minimum(step * (FORMAT.step // COVERED) + SLICE // SLOTS, (num_inputs - 1) // COVERED)
    words = tl.load(low + tile * size + lanes).to(tl.uint32)
    codes = (words >> SLICE % SLOTS * FORMAT.low_bits) & ((1 << FORMAT.low_bits) - 1)
    if FORMAT.high_bits:
        words = tl.load(high + step * size + lanes).to(tl.uint32)
        codes |= ((words >> SLICE * FORMAT.high_bits) & ((1 << FORMAT.high_bits) - 1)) << FORMAT.low_bits
    return codes


@jit
def _values(codes: tl.tensor, FORMAT: tl.constexpr) -> tl.tensor:
    """The values of codes as float32; of integers, 1 + code / 2 ** bits, made of the bits of a code without arithmetic."""
    if FORMAT.code == "float8":
        values = from_float8(codes).to(tl.float32)
        return tl.where((codes & 127) == 127, float("nan"), values) if FORMAT.has_nan else values
    elif FORMAT.code == "e2m1":
        bits = ((codes & 8) << 12) | ((codes & 7) << 9)
        return (bits.to(tl.uint16).to(tl.float16, bitcast=True) * TO_E2M1).to(tl.float32)
    elif FORMAT.code == "table":
        low = tl.where((codes & 4) == 0, FORMAT.table[0], FORMAT.table[1])
        high = tl.where((codes & 4) == 0, FORMAT.table[2], FORMAT.table[3])
        four = tl.where((codes & 8) == 0, low, high)
        return ((four << (24 - (codes & 3) * 8).to(tl.int32)) >> 24).to(tl.float32)
    else:
        return ((codes << (MANTISSA - FORMAT.bits)) | ONE).to(tl.float32, bitcast=True)


@jit
def weight_tile(
    held: tl.tuple,
    step: tl.tensor,
    SLICE: tl.constexpr,
    rows: tl.tensor,
    num_outputs: tl.tensor,
    num_inputs: tl.tensor,
    FORMAT: tl.constexpr,
) -> tl.tensor:
    """Weights float32 [rows, lanes] of inputs step * FORMAT.step + SLICE * lanes and on; finite past the last input.

    Weights that are floats keep their type. Loads that slices of a step have in common are written once for each, and merged by the
    compiler.
    """
    if FORMAT.code == "float":
        inputs = step * FORMAT.step + tl.arange(0, FORMAT.lanes)
        places = rows.to(tl.int64)[:, None] * num_inputs + inputs[None, :]
        return tl.load(held[0] + places, mask=(inputs < num_inputs)[None, :], other=0.0)
    else:
        codes = _codes(held, step, SLICE, rows, num_outputs, num_inputs, FORMAT)
        factor, addend = _factors(held, step, SLICE, rows, num_outputs, FORMAT)
        if FORMAT.code == "integer":
            return tl.fma(_values(codes, FORMAT), factor[:, None], addend[:, None])
        else:
            return _values(codes, FORMAT) * factor[:, None]


@jit
def _finished(
    total: tl.tensor,
    bias: tl.tensor,
    residual: tl.tensor,
    columns: tl.tensor,
    places: tl.tensor,
    is_result: tl.tensor,
    num_results: tl.tensor,
    FORM: tl.constexpr,
) -> tl.tensor:
    """Results of sums: with the bias, gated, and with the residual. Gated sums are a pair (gates, ups).

    Args:
        columns, places, is_result: of the results: outputs, offsets in `residual`, and whether they exist.
    """
    if FORM.is_gated:
        gate, up = total
        if FORM.has_bias:
            gate += tl.load(bias + columns).to(tl.float32)
            up += tl.load(bias + num_results + columns).to(tl.float32)
        found = gate / (1.0 + tl.exp(-gate)) * up
    else:
        found = total
        if FORM.has_bias:
            found += tl.load(bias + columns).to(tl.float32)
    if FORM.has_residual:
        found += tl.load(residual + places, mask=is_result, other=0.0).to(tl.float32)
    return found


@jit
def low_bit_product(
    x: tl.tensor,
    low: tl.tensor,
    high: tl.tensor,
    scales: tl.tensor,
    offsets: tl.tensor,
    zero_points: tl.tensor,
    super_scales: tl.tensor,
    super_offsets: tl.tensor,
    row_scales: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    partial: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    num_inputs: tl.tensor,
    num_parts: tl.tensor,
    x_stride: tl.tensor,
    out_stride: tl.tensor,
    FORMAT: tl.constexpr,
    FORM: tl.constexpr,
    IS_SPLIT: tl.constexpr,
    IS_EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    NUM_STAGES: tl.constexpr,
    PRECISION: tl.constexpr,
    UPCAST: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Multiply BLOCK_M rows of x with BLOCK_N outputs. Grid: (blocks of rows, blocks of outputs, parts or 1).

    Sums of each part of the inputs are added in order, here, or if IS_SPLIT, by `finish_product` from `partial` [parts, rows, outputs].
    Gated, half of the outputs of a block are gates and the other half their ups. Rows and outputs past the last are computed as the last.
    """
    if EARLY:
        wait_for_inputs()
    held = (low, high, scales, offsets, zero_points, super_scales, super_offsets, row_scales)
    num_results = num_outputs // 2 if FORM.is_gated else num_outputs
    BLOCK_R: tl.constexpr = BLOCK_N // 2 if FORM.is_gated else BLOCK_N
    start = tl.program_id(1) * BLOCK_R
    columns = tl.minimum(start + tl.arange(0, BLOCK_N) % BLOCK_R, num_results - 1)
    if FORM.is_gated:
        columns += tl.arange(0, BLOCK_N) // BLOCK_R * num_results
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_starts = tl.minimum(rows, num_rows - 1).to(tl.int64) * x_stride
    lanes = tl.arange(0, FORMAT.lanes)
    num_steps = (num_inputs + FORMAT.step - 1) // FORMAT.step
    part_steps = (num_steps + num_parts - 1) // num_parts
    part = tl.program_id(2)
    last_part = part + 1 if IS_SPLIT else num_parts
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    while part < last_part:
        sums = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
        for step in tl.range(part * part_steps, tl.minimum((part + 1) * part_steps, num_steps), num_stages=NUM_STAGES):
            for index in tl.static_range(FORMAT.step // FORMAT.lanes):
                weights = weight_tile(held, step, index, columns, num_outputs, num_inputs, FORMAT)
                inputs = step * FORMAT.step + index * FORMAT.lanes + lanes
                places = row_starts[None, :] + inputs[:, None]
                if IS_EVEN:
                    values = tl.load(x + places)
                else:
                    values = tl.load(x + places, mask=(inputs < num_inputs)[:, None], other=0.0)
                weights = weights.to(x.dtype.element_ty)
                if UPCAST:
                    weights, values = weights.to(tl.float32), values.to(tl.float32)
                sums = tl.dot(weights, values, sums, input_precision=PRECISION)
        total += sums
        part += 1
    if IS_SPLIT:
        places = (tl.program_id(2).to(tl.int64) * num_rows + rows)[None, :] * num_outputs + columns[:, None]
        tl.store(partial + places, total, mask=(rows < num_rows)[None, :] & (columns < num_outputs)[:, None])
    else:
        if FORM.is_gated:
            total = tl.split(total.reshape(2, BLOCK_R, BLOCK_M).permute(1, 2, 0))
        columns = start + tl.arange(0, BLOCK_R)
        is_result = (rows < num_rows)[None, :] & (columns < num_results)[:, None]
        places = rows.to(tl.int64)[None, :] * out_stride + columns[:, None]
        columns = tl.minimum(columns, num_results - 1)[:, None]
        found = _finished(total, bias, out, columns, places, is_result, num_results, FORM)
        tl.store(out + places, found.to(out.dtype.element_ty), mask=is_result)


@jit
def finish_product(
    partial: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    num_parts: tl.tensor,
    out_stride: tl.tensor,
    FORM: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Add the sums of parts in order, and write BLOCK results of one row. Grid: (rows, blocks)."""
    if EARLY:
        wait_for_inputs()
    row = tl.program_id(0).to(tl.int64)
    num_results = num_outputs // 2 if FORM.is_gated else num_outputs
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_result = columns < num_results
    columns = tl.minimum(columns, num_results - 1)
    total, up = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for part in tl.range(0, num_parts, num_stages=2):
        sums = partial + (part * num_rows + row) * num_outputs + columns
        total += tl.load(sums)
        if FORM.is_gated:
            up += tl.load(sums + num_results)
    if FORM.is_gated:
        total = (total, up)
    places = row * out_stride + columns
    found = _finished(total, bias, out, columns, places, is_result, num_results, FORM)
    tl.store(out + places, found.to(out.dtype.element_ty), mask=is_result)


@jit
def low_bit_rows(
    indices: tl.tensor,
    low: tl.tensor,
    high: tl.tensor,
    scales: tl.tensor,
    offsets: tl.tensor,
    zero_points: tl.tensor,
    super_scales: tl.tensor,
    super_offsets: tl.tensor,
    row_scales: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    num_inputs: tl.tensor,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Write one step of inputs of BLOCK rows of the weight to out [num_rows, num_inputs]; NaN for indices out of range.

    Grid: (blocks of rows, steps).
    """
    held = (low, high, scales, offsets, zero_points, super_scales, super_offsets, row_scales)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    step = tl.program_id(1)
    given = tl.load(indices + rows, mask=rows < num_rows, other=0)
    is_known = (given >= 0) & (given < num_outputs)
    known = tl.where(is_known, given, 0).to(tl.int32)
    for index in tl.static_range(FORMAT.step // FORMAT.lanes):
        weights = weight_tile(held, step, index, known, num_outputs, num_inputs, FORMAT)
        weights = tl.where(is_known[:, None], weights.to(tl.float32), float("nan"))
        inputs = step * FORMAT.step + index * FORMAT.lanes + tl.arange(0, FORMAT.lanes)
        places = rows.to(tl.int64)[:, None] * num_inputs + inputs[None, :]
        is_weight = (rows < num_rows)[:, None] & (inputs < num_inputs)[None, :]
        tl.store(out + places, weights.to(out.dtype.element_ty), mask=is_weight)
