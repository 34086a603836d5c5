"""Kernels that multiply the pairs of an expert by its weights, and that add up the results of a token.

All experts of a layer are one weight, whose outputs follow one another: floats, or codes of few bits that `weight_tile` turns into weights.
A program multiplies a block of pairs of one expert. Inputs and results lie in the order of pairs, so no results are moved.

Must stay true: the bits of a pair depend on no other pair. The inputs are summed in one chain of matrix instructions whatever the tile,
and instructions for more pairs sum the same number of inputs at a time; see `linear.low_bit_linear`.
"""

from __future__ import annotations

from typing import NamedTuple

import triton.language as tl

from rtlang_kernels.triton.experts.routing_kernel import BLOCK_FIELDS
from rtlang_kernels.triton.linear.low_bit_kernel import weight_tile
from rtlang_kernels.triton.primitives.jit import jit


class FloatFormat(NamedTuple):
    """The format of weights that are floats [outputs, inputs], in the place of a `StoredFormat`.

    Attributes:
        lanes, step: inputs that are multiplied at a time.
    """

    lanes: int
    step: int
    code: str = "float"


class GateForm(NamedTuple):
    """The gate of the first layers; a constant of the kernels. See `contract.experts.ExpertGate`."""

    is_alternating: bool
    alpha: float
    offset: float
    has_limit: bool
    limit: float


@jit
def _gated(gate: tl.tensor, up: tl.tensor, GATE: tl.constexpr) -> tl.tensor:
    """The results of gates and ups. Comparisons keep NaN, where `minimum` would drop it."""
    if GATE.has_limit:
        gate = tl.where(gate > GATE.limit, GATE.limit, gate)
        up = tl.where(up > GATE.limit, GATE.limit, tl.where(up < -GATE.limit, -GATE.limit, up))
    return gate / (1.0 + tl.exp(-GATE.alpha * gate)) * (up + GATE.offset)


@jit
def _weights(
    held: tl.tuple,
    step: tl.tensor,
    SLICE: tl.constexpr,
    rows: tl.tensor,
    num_rows: tl.tensor,
    num_inputs: tl.tensor,
    FORMAT: tl.constexpr,
    IS_EVEN: tl.constexpr,
) -> tl.tensor:
    """Weights [rows, lanes] of one slice of a step."""
    if FORMAT.code == "float":
        inputs = step * FORMAT.step + SLICE * FORMAT.lanes + tl.arange(0, FORMAT.lanes)
        places = held[0] + (rows.to(tl.int64) * num_inputs)[:, None] + inputs[None, :]
        if IS_EVEN:
            return tl.load(places)
        else:
            return tl.load(places, mask=(inputs < num_inputs)[None, :], other=0.0)
    else:
        return weight_tile(held, step, SLICE, rows, num_rows, num_inputs, FORMAT)


@jit
def expert_product(
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
    order: tl.tensor,
    blocks: tl.tensor,
    input_orders: tl.tensor,
    num_experts: tl.tensor,
    num_outputs: tl.tensor,
    num_inputs: tl.tensor,
    pairs_per_row: tl.tensor,
    x_stride: tl.tensor,
    out_stride: tl.tensor,
    FORMAT: tl.constexpr,
    GATE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_ORDERS: tl.constexpr,
    IS_EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    NUM_STAGES: tl.constexpr,
    PRECISION: tl.constexpr,
    UPCAST: tl.constexpr,
) -> None:
    """Multiply a block of pairs of one expert by BLOCK_N of its outputs. Grid: (most blocks that there may be, blocks of outputs).

    Pair p reads row p // pairs_per_row of x and writes row p of out. With HAS_ORDERS, input i of an expert is input_orders[expert, i] of x.
    With a GATE, which may be None, half of the outputs are gates. Pairs and outputs past the last are computed as the last.
    """
    if tl.program_id(0) >= tl.load(blocks):
        return
    fields = blocks + BLOCK_FIELDS * (1 + tl.program_id(0))
    expert, first, count = tl.load(fields), tl.load(fields + 1), tl.load(fields + 2)
    held = (low, high, scales, offsets, zero_points, super_scales, super_offsets, row_scales)
    IS_GATED: tl.constexpr = GATE is not None
    num_results = num_outputs // 2 if IS_GATED else num_outputs
    BLOCK_R: tl.constexpr = BLOCK_N // 2 if IS_GATED else BLOCK_N
    start = tl.program_id(1) * BLOCK_R
    if IS_GATED:
        if GATE.is_alternating:
            columns = tl.minimum(2 * start + tl.arange(0, BLOCK_N), num_outputs - 1)
        else:
            columns = tl.minimum(start + tl.arange(0, BLOCK_N) % BLOCK_R, num_results - 1)
            columns += tl.arange(0, BLOCK_N) // BLOCK_R * num_results
    else:
        columns = tl.minimum(start + tl.arange(0, BLOCK_N), num_outputs - 1)
    rows = expert * num_outputs + columns
    members = tl.arange(0, BLOCK_M)
    pairs = tl.load(order + first + tl.minimum(members, count - 1))
    row_starts = (pairs // pairs_per_row).to(tl.int64) * x_stride
    lanes = tl.arange(0, FORMAT.lanes)
    sums = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for step in tl.range(0, (num_inputs + FORMAT.step - 1) // FORMAT.step, num_stages=NUM_STAGES):
        for index in tl.static_range(FORMAT.step // FORMAT.lanes):
            weights = _weights(held, step, index, rows, num_experts * num_outputs, num_inputs, FORMAT, IS_EVEN)
            inputs = step * FORMAT.step + index * FORMAT.lanes + lanes
            sources = inputs
            if HAS_ORDERS:
                sources = tl.load(input_orders + expert * num_inputs + inputs, mask=inputs < num_inputs, other=0)
            places = x + row_starts[None, :] + sources[:, None]
            if IS_EVEN:
                values = tl.load(places)
            else:
                values = tl.load(places, mask=(inputs < num_inputs)[:, None], other=0.0)
            weights = weights.to(x.dtype.element_ty)
            if UPCAST:
                weights, values = weights.to(tl.float32), values.to(tl.float32)
            sums = tl.dot(weights, values, sums, input_precision=PRECISION)
    if HAS_BIAS:
        sums += tl.load(bias + rows).to(tl.float32)[:, None]
    if IS_GATED:
        if GATE.is_alternating:
            gate, up = tl.split(sums.reshape(BLOCK_R, 2, BLOCK_M).permute(0, 2, 1))
        else:
            gate, up = tl.split(sums.reshape(2, BLOCK_R, BLOCK_M).permute(1, 2, 0))
        sums = _gated(gate, up, GATE)
    results = start + tl.arange(0, BLOCK_R)
    is_result = (members < count)[None, :] & (results < num_results)[:, None]
    places = (pairs.to(tl.int64) * out_stride)[None, :] + results[:, None]
    tl.store(out + places, sums.to(out.dtype.element_ty), mask=is_result)


@jit
def add_slots(
    y: tl.tensor,
    expert_ids: tl.tensor,
    weights: tl.tensor,
    out: tl.tensor,
    num_experts: tl.tensor,
    size: tl.tensor,
    y_stride: tl.tensor,
    NUM_SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Add BLOCK weighted results of one token in the order of slots; results of no expert are not read. Grid: (tokens, blocks)."""
    token = tl.program_id(0).to(tl.int64)
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for slot in tl.static_range(NUM_SLOTS):
        pair = token * NUM_SLOTS + slot
        expert = tl.load(expert_ids + pair)
        is_added = dims < tl.where((expert >= 0) & (expert < num_experts), size, 0)
        found = tl.load(y + pair * y_stride + dims, mask=is_added, other=0.0).to(tl.float32)
        total += tl.where(is_added, found * tl.load(weights + pair).to(tl.float32), 0.0)
    tl.store(out + token * size + dims, total.to(out.dtype.element_ty), mask=dims < size)
