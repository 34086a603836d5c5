"""Kernels that merge attention states over disjoint keys: the partial results of a token, or two states.

Logarithms are base 2 internally. A state that saw no key has lse -inf and may hold anything.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.planning import work_items
from rtlang_kernels.triton.primitives.early_start import wait_for_inputs
from rtlang_kernels.triton.primitives.jit import jit

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)
NUM_MERGED = tl.constexpr(work_items.NUM_MERGED)


@jit
def with_sink(state_lse: tl.tensor, sink: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Base-2 lse including a key without a value, and the remaining share of the other keys' weight."""
    top = tl.maximum(state_lse, sink)
    top = tl.where(top == float("-inf"), 0.0, top)
    kept = tl.exp2(state_lse - top)
    total = kept + tl.exp2(sink - top)
    return tl.where(total > 0, top + tl.log2(total), state_lse), kept / tl.where(total == 0, 1.0, total)


@jit
def merge_parts(
    partial_out: tl.tensor,
    partial_lse: tl.tensor,
    sinks: tl.tensor,
    header: tl.tensor,
    merge_tokens: tl.tensor,
    merge_start: tl.tensor,
    merge_rows: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    NUM_Q_HEADS: tl.constexpr,
    V_HEAD_DIM: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_V: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Merge the partial results of one token and BLOCK_H heads, BLOCK_P of them at a time, so that their loads overlap.

    Grid: (at least the tokens to merge, blocks of heads).
    """
    if EARLY:
        wait_for_inputs()
    index = tl.program_id(0)
    if index >= tl.load(header + NUM_MERGED):
        return
    token = tl.load(merge_tokens + index)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    dims = tl.arange(0, BLOCK_V)
    is_head = head < NUM_Q_HEADS
    is_element = is_head[:, None] & (dims < V_HEAD_DIM)[None, :]
    top = tl.full([BLOCK_H], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_V], tl.float32)
    stop = tl.load(merge_start + index + 1)
    for first in range(tl.load(merge_start + index), stop, BLOCK_P):
        entry = first + tl.arange(0, BLOCK_P)
        is_part = entry < stop
        row = tl.load(merge_rows + entry, mask=is_part, other=0).to(tl.int64)
        source = row[:, None] * NUM_Q_HEADS + head[None, :]  # [BLOCK_P, BLOCK_H]
        is_state = is_part[:, None] & is_head[None, :]
        part_lse = tl.load(partial_lse + source, mask=is_state, other=float("-inf"))
        part = tl.load(
            partial_out + (source * V_HEAD_DIM)[:, :, None] + dims[None, None, :],
            mask=is_state[:, :, None] & (dims < V_HEAD_DIM)[None, None, :],
            other=0.0,
        )
        new_top = tl.maximum(top, tl.max(part_lse, axis=0))
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        shrink, weight = tl.exp2(top - base), tl.exp2(part_lse - base[None, :])
        acc = acc * shrink[:, None] + tl.sum(part.to(tl.float32) * weight[:, :, None], axis=0)
        total = total * shrink + tl.sum(weight, axis=0)
        top = new_top
    found = total > 0
    merged_lse = tl.where(found, top + tl.log2(tl.where(found, total, 1.0)), float("-inf"))
    merged_lse = tl.where(total != total, total, merged_lse)
    share = 1.0 / tl.where(total == 0, 1.0, total)
    if HAS_SINKS:
        sink = tl.load(sinks + head, mask=is_head, other=0.0).to(tl.float32) * LOG2_E
        merged_lse, kept = with_sink(merged_lse, sink)
        share *= kept
    target = token.to(tl.int64) * NUM_Q_HEADS + head
    tl.store(lse + target, merged_lse * LN_2, mask=is_head)
    result = (acc * share[:, None]).to(out.dtype.element_ty)
    tl.store(out + (target * V_HEAD_DIM)[:, None] + dims[None, :], result, mask=is_element)


@jit
def merge_two(
    out_a: tl.tensor,
    lse_a: tl.tensor,
    out_b: tl.tensor,
    lse_b: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    num_states: tl.tensor,
    V_HEAD_DIM: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_V: tl.constexpr,
) -> None:
    """Merge two states of BLOCK_H (token, head) pairs; natural logarithms; a side with lse -inf may hold anything."""
    state = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    dims = tl.arange(0, BLOCK_V)
    is_state = state < num_states
    a = tl.load(lse_a + state, mask=is_state, other=float("-inf"))
    b = tl.load(lse_b + state, mask=is_state, other=float("-inf"))
    top = tl.maximum(a, b)
    base = tl.where(top == float("-inf"), 0.0, top)
    weight_a, weight_b = tl.exp2((a - base) * LOG2_E), tl.exp2((b - base) * LOG2_E)
    total = weight_a + weight_b
    is_empty = total == 0
    total = tl.where(is_empty, 1.0, total)
    tl.store(lse + state, tl.where(is_empty, float("-inf"), base + tl.log2(total) * LN_2), mask=is_state)
    offsets = (state.to(tl.int64) * V_HEAD_DIM)[:, None] + dims[None, :]
    is_element = is_state[:, None] & (dims < V_HEAD_DIM)[None, :]
    part_a = tl.load(out_a + offsets, mask=is_element & (weight_a != 0)[:, None], other=0.0).to(tl.float32)
    part_b = tl.load(out_b + offsets, mask=is_element & (weight_b != 0)[:, None], other=0.0).to(tl.float32)
    merged = part_a * (weight_a / total)[:, None] + part_b * (weight_b / total)[:, None]
    tl.store(out + offsets, merged.to(out.dtype.element_ty), mask=is_element)
