"""Kernels of the layer operations, one pass over memory each: rotation with KV append, norm, gated product, copies.

All sums are float32. A program owns whole heads or a whole token, so no reduction crosses programs.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.early_start import wait_for_inputs
from rtlang_kernels.triton.primitives.float8 import to_float8
from rtlang_kernels.triton.primitives.jit import jit


@jit
def _stored(x: tl.tensor, target: tl.tensor, TO_FLOAT8: tl.constexpr) -> tl.tensor:
    """Convert x to elements of the type that `target` points to; with TO_FLOAT8, to float8 codes."""
    if TO_FLOAT8:
        return to_float8(x.to(tl.float32))
    else:
        return x.to(target.dtype.element_ty)


@jit
def _rotated_heads(
    source: tl.tensor,
    target: tl.tensor,
    source_offsets: tl.tensor,
    target_offsets: tl.tensor,
    is_head: tl.tensor,
    cos_row: tl.tensor,
    sin_row: tl.tensor,
    weight: tl.tensor,
    eps: tl.tensor,
    HEAD_DIM: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK_HALF: tl.constexpr,
    BLOCK_REST: tl.constexpr,
    HAS_NORM: tl.constexpr,
    TO_FLOAT8: tl.constexpr,
) -> None:
    """Normalize and rotate heads [BLOCK_H] from `source` to `target`; dimensions from 2 * HALF on are only normalized."""
    dims, rest_dims = tl.arange(0, BLOCK_HALF)[None, :], 2 * HALF + tl.arange(0, BLOCK_REST)[None, :]
    is_pair, is_rest = is_head[:, None] & (dims < HALF), is_head[:, None] & (rest_dims < HEAD_DIM)
    origin = source + source_offsets[:, None]
    first = tl.load(origin + dims, mask=is_pair, other=0.0).to(tl.float32)
    second = tl.load(origin + HALF + dims, mask=is_pair, other=0.0).to(tl.float32)
    rest = tl.load(origin + rest_dims, mask=is_rest, other=0.0).to(tl.float32)
    if HAS_NORM:
        squares = tl.sum(first * first, 1) + tl.sum(second * second, 1) + tl.sum(rest * rest, 1)
        factor = tl.rsqrt(squares / HEAD_DIM + eps)[:, None]
        first = first * factor * tl.load(weight + dims, mask=dims < HALF, other=0.0).to(tl.float32)
        second = second * factor * tl.load(weight + HALF + dims, mask=dims < HALF, other=0.0).to(tl.float32)
        rest = rest * factor * tl.load(weight + rest_dims, mask=rest_dims < HEAD_DIM, other=0.0).to(tl.float32)
    cos = tl.load(cos_row + dims, mask=dims < HALF, other=0.0).to(tl.float32)
    sin = tl.load(sin_row + dims, mask=dims < HALF, other=0.0).to(tl.float32)
    place = target + target_offsets[:, None]
    tl.store(place + dims, _stored(first * cos - second * sin, target, TO_FLOAT8), mask=is_pair)
    tl.store(place + HALF + dims, _stored(second * cos + first * sin, target, TO_FLOAT8), mask=is_pair)
    tl.store(place + rest_dims, _stored(rest, target, TO_FLOAT8), mask=is_rest)


@jit
def rope_append(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    positions: tl.tensor,
    k_pool: tl.tensor,
    v_pool: tl.tensor,
    slot_mapping: tl.tensor,
    q_norm: tl.tensor,
    k_norm: tl.tensor,
    eps: tl.tensor,
    q_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    k_pool_stride: tl.tensor,
    v_pool_stride: tl.tensor,
    NUM_Q_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    V_HEAD_DIM: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_HALF: tl.constexpr,
    BLOCK_REST: tl.constexpr,
    BLOCK_V: tl.constexpr,
    HAS_Q_NORM: tl.constexpr,
    HAS_K_NORM: tl.constexpr,
    TO_FLOAT8: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Process BLOCK_H heads of one token. Grid: (tokens, blocks of query heads + blocks of KV heads).

    Queries are rotated in place; keys are rotated into their slot, values copied. Nothing is written for a negative slot.
    """
    if EARLY:
        wait_for_inputs()
    token = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    position = tl.load(positions + token)
    cos_row, sin_row = cos + position * HALF, sin + position * HALF
    num_q_blocks: tl.constexpr = (NUM_Q_HEADS + BLOCK_H - 1) // BLOCK_H
    if block < num_q_blocks:
        head = block * BLOCK_H + tl.arange(0, BLOCK_H)
        offsets = token * q_stride + head * HEAD_DIM
        _rotated_heads(
            q,
            q,
            offsets,
            offsets,
            head < NUM_Q_HEADS,
            cos_row,
            sin_row,
            q_norm,
            eps,
            HEAD_DIM,
            HALF,
            BLOCK_HALF,
            BLOCK_REST,
            HAS_Q_NORM,
            False,
        )
    else:
        head = (block - num_q_blocks) * BLOCK_H + tl.arange(0, BLOCK_H)
        slot = tl.load(slot_mapping + token)
        is_head = head < tl.where(slot >= 0, NUM_KV_HEADS, 0)
        _rotated_heads(
            k,
            k_pool,
            token * k_stride + head * HEAD_DIM,
            slot * k_pool_stride + head * HEAD_DIM,
            is_head,
            cos_row,
            sin_row,
            k_norm,
            eps,
            HEAD_DIM,
            HALF,
            BLOCK_HALF,
            BLOCK_REST,
            HAS_K_NORM,
            TO_FLOAT8,
        )
        dims = tl.arange(0, BLOCK_V)[None, :]
        is_element = is_head[:, None] & (dims < V_HEAD_DIM)
        value = tl.load(v + (token * v_stride + head * V_HEAD_DIM)[:, None] + dims, mask=is_element, other=0.0)
        place = v_pool + (slot * v_pool_stride + head * V_HEAD_DIM)[:, None] + dims
        tl.store(place, _stored(value, v_pool, TO_FLOAT8), mask=is_element)


@jit
def add_rms_norm(
    x: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    size: tl.tensor,
    BLOCK: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Process one token. The residual is rounded to its type before the norm, since later layers read it rounded."""
    if EARLY:
        wait_for_inputs()
    start = tl.program_id(0).to(tl.int64) * size
    dims = tl.arange(0, BLOCK)
    is_element = dims < size
    total = tl.load(x + start + dims, mask=is_element, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        total += tl.load(residual + start + dims, mask=is_element, other=0.0).to(tl.float32)
        rounded = total.to(residual.dtype.element_ty)
        tl.store(residual + start + dims, rounded, mask=is_element)
        total = rounded.to(tl.float32)
    factor = tl.rsqrt(tl.sum(total * total) / size + eps)
    scaled = total * factor * tl.load(weight + dims, mask=is_element, other=0.0).to(tl.float32)
    tl.store(out + start + dims, scaled.to(out.dtype.element_ty), mask=is_element)


@jit
def gate_and_mul(
    gate_up: tl.tensor,
    out: tl.tensor,
    size: tl.tensor,
    gate_up_stride: tl.tensor,
    IS_GELU: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Process BLOCK elements of one token: silu or gelu of the gate, times up. Grid: (tokens, blocks)."""
    if EARLY:
        wait_for_inputs()
    token = tl.program_id(0).to(tl.int64)
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_element = dims < size
    gate = tl.load(gate_up + token * gate_up_stride + dims, mask=is_element, other=0.0).to(tl.float32)
    up = tl.load(gate_up + token * gate_up_stride + size + dims, mask=is_element, other=0.0).to(tl.float32)
    power = gate
    if IS_GELU:
        power = 1.5957691216057308 * gate * (1.0 + 0.044715 * gate * gate)  # 2 * sqrt(2 / pi)
    product = gate / (1.0 + tl.exp(-power)) * up
    tl.store(out + token * size + dims, product.to(out.dtype.element_ty), mask=is_element)


@jit
def copy_lines(
    source: tl.tensor,
    target: tl.tensor,
    source_ids: tl.tensor,
    target_ids: tl.tensor,
    size: tl.tensor,
    source_stride: tl.tensor,
    target_stride: tl.tensor,
    HAS_SOURCE_IDS: tl.constexpr,
    HAS_TARGET_IDS: tl.constexpr,
    TO_FLOAT8: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Copy BLOCK elements of one line (a slot or a page): target[target_ids[i]] = source[source_ids[i]], if target_ids[i] >= 0.

    Grid: (lines, blocks).
    """
    line = tl.program_id(0).to(tl.int64)
    origin, place = line, line
    if HAS_SOURCE_IDS:
        origin = tl.load(source_ids + line)
    if HAS_TARGET_IDS:
        place = tl.load(target_ids + line)
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_element = dims < tl.where(place >= 0, size, 0)
    value = tl.load(source + origin * source_stride + dims, mask=is_element, other=0.0)
    tl.store(target + place * target_stride + dims, _stored(value, target, TO_FLOAT8), mask=is_element)
