"""CPU layer operations, one compiled pass each: a call costs about as much as one torch operator. Contracts are in `ops.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.contract.kv_lines import line_bytes
from rtlang_kernels.cpu.codegen import layer_vectors as vector
from rtlang_kernels.cpu.codegen.attention.page_vectors import quantize_line
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.reference import kv_cache
from rtlang_kernels.reference import layer_ops as reference

ONE, ZERO = np.float32(1.0), np.float32(0.0)

# Fields of the int64 layout of a rotation: addresses, strides in bytes between tokens or slots, and whether heads are normalized.
Q, Q_STRIDE, K, K_STRIDE, V, V_STRIDE, K_POOL, K_POOL_STRIDE, V_POOL, V_POOL_STRIDE, HAS_Q_NORM, HAS_K_NORM = range(12)
ROTATION_FIELDS = 12


@cache
def quantize_kernel(is_bf16: int, num_heads: int, size: int) -> Callable[..., None]:
    """Compile the writing of the heads of tokens into lines of int8, for one element type and geometry.

    Args of the kernel:
        heads, pool: addresses of the first token and the first slot.  stride, pool_stride: bytes from one to the next.
        slots: int64 [num_tokens]; nothing is written for a negative one.
    """
    digest = source_digest()
    head_bytes, line = size * (2 if is_bf16 else 4), line_bytes(size)

    @kernel(is_exact=True)
    def quantize(heads: Any, stride: Any, pool: Any, pool_stride: Any, slots: Any) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for token in range(len(slots)):
            if slots[token] < 0:
                continue
            source, target = heads + token * stride, pool + slots[token] * pool_stride
            for i in range(num_heads):
                quantize_line(source + i * head_bytes, target + i * line, is_bf16, size)

    return quantize


@cache
def rope_kernel(
    is_bf16: int, num_q_heads: int, num_kv_heads: int, head_dim: int, v_head_dim: int, half: int, is_int8: int = 0
) -> Callable[..., None]:
    """Compile the rotation for one element type (is_bf16 0 or 1), type of the pool (the same, or int8) and geometry.

    Keys for a pool of int8 are rotated in place first, so that what another pool would hold is quantized.

    Args of the kernel:
        layout: see above.  positions, slots: int64 [num_tokens]; of a token with a negative slot, only queries are rotated.  eps: float32.
        cos, sin: addresses of float32 [any, half].  weights: address of the result of `head_weights`.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4
    rest = head_dim - 2 * half
    quantize_keys, quantize_values = (quantize_kernel(is_bf16, num_kv_heads, size) for size in (head_dim, v_head_dim))

    @kernel()
    def rope(layout: Any, positions: Any, slots: Any, cos: Any, sin: Any, weights: Any, eps: Any) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for token in range(len(positions)):
            angle = 4 * positions[token] * half
            is_written = slots[token] >= 0
            for h in range(num_q_heads + num_kv_heads if is_written else num_q_heads):
                if h < num_q_heads:
                    line = layout[Q] + token * layout[Q_STRIDE] + h * head_dim * item
                    target, weight, is_normed = line, weights, layout[HAS_Q_NORM]
                else:
                    kv = h - num_q_heads
                    line = layout[K] + token * layout[K_STRIDE] + kv * head_dim * item
                    target = layout[K_POOL] + slots[token] * layout[K_POOL_STRIDE] + kv * head_dim * item
                    if is_int8:
                        target = line
                    weight, is_normed = weights + 4 * head_dim, layout[HAS_K_NORM]
                factor = ONE
                if is_normed:
                    mean = vector.square_sum(line, is_bf16, head_dim) / np.float32(head_dim)
                    factor = ONE / np.sqrt(mean + eps)
                vector.rotated(line, target, cos + angle, sin + angle, weight, factor, is_bf16, half)
                if rest:
                    skip = 2 * half
                    vector.copied(line + skip * item, target + skip * item, weight + 4 * skip, factor, is_bf16, rest)
            if is_int8 or not is_written:
                continue
            for kv in range(num_kv_heads):
                line = layout[V] + token * layout[V_STRIDE] + kv * v_head_dim * item
                target = layout[V_POOL] + slots[token] * layout[V_POOL_STRIDE] + kv * v_head_dim * item
                vector.copied(line, target, weights + 8 * head_dim, ONE, is_bf16, v_head_dim)
        if is_int8:
            quantize_keys(layout[K], layout[K_STRIDE], layout[K_POOL], layout[K_POOL_STRIDE], slots)
            quantize_values(layout[V], layout[V_STRIDE], layout[V_POOL], layout[V_POOL_STRIDE], slots)

    return rope


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """See `ops.write_kv`."""
    if k_pool.dtype != torch.int8 or k.dtype not in (torch.float32, torch.bfloat16) or v.dtype != k.dtype:
        kv_cache.write_kv(k, v, k_pool, v_pool, slot_mapping)
        return
    slots, item = slot_mapping.numpy(), k.element_size()
    for heads, pool in ((k, k_pool), (v, v_pool)):
        num_heads, size = heads.shape[1:]
        check_lines(pool)
        source = heads if heads.stride()[1:] == (size, 1) else heads.contiguous()
        write = quantize_kernel(int(k.dtype == torch.bfloat16), num_heads, size)
        write(source.data_ptr(), source.stride(0) * item, pool.data_ptr(), pool.stride(0), slots)


def check_lines(pool: Tensor) -> None:
    """Refuse a pool of int8 that is not a view into lines.

    Raises:
        ValueError: names its strides.
    """
    expected = line_bytes(pool.shape[2])
    if pool.stride()[1:] != (expected, 1):
        raise ValueError(f"strides of an int8 pool = {pool.stride()}: expected heads {expected} bytes apart")


@cache
def _ones(size: int) -> Tensor:
    return torch.ones(size, dtype=torch.float32)


def head_weights(q_norm: Tensor | None, k_norm: Tensor | None, head_dim: int, v_head_dim: int) -> Tensor:
    """Weights that multiply the heads: float32 [2 * head_dim + v_head_dim], ones without a norm."""
    ones = _ones(2 * head_dim + v_head_dim)
    if q_norm is None and k_norm is None:
        return ones
    parts = [ones[:head_dim] if norm is None else norm.detach().float() for norm in (q_norm, k_norm)]
    return torch.cat([*parts, ones[:v_head_dim]])


def rope_append(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    slot_mapping: Tensor,
    q_norm: Tensor | None,
    k_norm: Tensor | None,
    eps: float,
) -> None:
    """See `ops.rope_append`."""
    head_dim, v_head_dim, half = q.shape[2], v.shape[2], cos.shape[1]
    is_int8 = k_pool.dtype == v_pool.dtype == torch.int8
    pools = (k_pool, v_pool)
    is_packed = all(x.stride()[1:] == (x.shape[2], 1) for x in (q, k, v, *(() if is_int8 else pools)))
    is_packed &= not is_int8 or all(x.stride()[1:] == (line_bytes(x.shape[2]), 1) for x in pools)
    has_tables = cos.dtype == sin.dtype == torch.float32 and cos.is_contiguous() and sin.is_contiguous()
    is_uniform = all(x.dtype == q.dtype for x in (k, v, *(() if is_int8 else pools)))
    if not (is_packed and has_tables and is_uniform):
        reference.rope_append(q, k, v, cos, sin, positions, k_pool, v_pool, slot_mapping, q_norm, k_norm, eps)
        return
    item = q.element_size()
    layout = np.array(
        (
            q.data_ptr(),
            q.stride(0) * item,
            k.data_ptr(),
            k.stride(0) * item,
            v.data_ptr(),
            v.stride(0) * item,
            k_pool.data_ptr(),
            k_pool.stride(0) * k_pool.element_size(),
            v_pool.data_ptr(),
            v_pool.stride(0) * v_pool.element_size(),
            q_norm is not None,
            k_norm is not None,
        ),
        dtype=np.int64,
    )
    weights = head_weights(q_norm, k_norm, head_dim, v_head_dim)
    run = rope_kernel(int(q.dtype == torch.bfloat16), q.shape[1], k.shape[1], head_dim, v_head_dim, half, int(is_int8))
    run(
        layout,
        positions.numpy(),
        slot_mapping.numpy(),
        cos.data_ptr(),
        sin.data_ptr(),
        weights.data_ptr(),
        np.float32(eps),
    )


def line_block(size: int) -> int:
    """Number of elements per vector step of a long line."""
    return next(block for block in (64, 32, 16, 8, 4, 2, 1) if size % block == 0)


@cache
def norm_kernel(is_bf16: int, block: int, has_float_weight: int = 0) -> Callable[..., None]:
    """Compile the RMS norm for one element type, `line_block` and type of weights (the same, or float32).

    Args of the kernel:
        x, out: addresses of tokens `stride` bytes apart, which may be the same.  residual: address of contiguous tokens, or 0 for none.
        weight: address of a line.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4
    step = block * item
    weight_step = block * 4 if has_float_weight else step

    @kernel()
    def norm(x: Any, residual: Any, weight: Any, out: Any, num_tokens: Any, size: Any, stride: Any, eps: Any) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        num_blocks = size // block
        for token in range(num_tokens):
            skip = token * stride
            source = x + skip
            total = ZERO
            if residual != 0:
                source = residual + token * num_blocks * step
                for i in range(num_blocks):
                    vector.add_into(source + i * step, x + skip + i * step, is_bf16, block)
            for i in range(num_blocks):
                total += vector.square_sum(source + i * step, is_bf16, block)
            factor = ONE / np.sqrt(total / np.float32(size) + eps)
            for i in range(num_blocks):
                target = out + skip + i * step
                place = weight + i * weight_step
                vector.weighted(source + i * step, place, factor, target, is_bf16, block, has_float_weight)

    return norm


def has_float_weight(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether a norm of elements of `dtype` has a variant for weights of float32."""
    return dtype == torch.bfloat16 and weight.dtype == torch.float32


def add_rms_norm(x: Tensor, residual: Tensor | None, weight: Tensor, eps: float) -> Tensor:
    """See `ops.add_rms_norm`."""
    if residual is not None and not (residual.is_contiguous() and residual.dtype == x.dtype):
        return reference.add_rms_norm(x, residual, weight, eps)
    is_float = has_float_weight(weight, x.dtype)
    x, weight = x.contiguous(), (weight if is_float else weight.to(x.dtype)).contiguous()
    out = torch.empty_like(x)
    num_tokens, size = x.shape
    run = norm_kernel(int(x.dtype == torch.bfloat16), line_block(size), int(is_float))
    address, stride = 0 if residual is None else residual.data_ptr(), size * x.element_size()
    run(x.data_ptr(), address, weight.data_ptr(), out.data_ptr(), num_tokens, size, stride, np.float32(eps))
    return out


@cache
def scaled_add_kernel(is_bf16: int, block: int) -> Callable[..., None]:
    """Compile the scaled sum for one element type and `line_block`. Its x and residual are addresses; x is written."""
    digest = source_digest()
    step = block * (2 if is_bf16 else 4)

    @kernel()
    def scaled_add(x: Any, residual: Any, num_tokens: Any, size: Any, factor: Any) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for i in range(num_tokens * (size // block)):
            if factor != ONE:
                vector.scaled(x + i * step, factor, is_bf16, block)
            vector.add_into(residual + i * step, x + i * step, is_bf16, block)

    return scaled_add


def scaled_add(x: Tensor, residual: Tensor, factor: float) -> None:
    """See `ops.scaled_add`."""
    if not (x.is_contiguous() and residual.is_contiguous() and residual.dtype == x.dtype):
        reference.scaled_add(x, residual, factor)
        return
    num_tokens, size = x.shape
    run = scaled_add_kernel(int(x.dtype == torch.bfloat16), line_block(size))
    run(x.data_ptr(), residual.data_ptr(), num_tokens, size, np.float32(factor))


@cache
def gate_kernel(is_bf16: int, block: int, is_gelu: int = 0) -> Callable[..., None]:
    """Compile the gated activation for one element type and `line_block` of half a row. Its source and out are addresses."""
    digest = source_digest()
    step = block * (2 if is_bf16 else 4)

    @kernel()
    def gate(source: Any, out: Any, num_tokens: Any, size: Any) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        num_blocks = size // block
        for token in range(num_tokens):
            line = source + 2 * token * num_blocks * step
            target = out + token * num_blocks * step
            for i in range(num_blocks):
                up = line + (num_blocks + i) * step
                vector.gated(line + i * step, up, target + i * step, is_bf16, block, is_gelu)

    return gate


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """See `ops.silu_and_mul`."""
    return _gated(gate_up, is_gelu=False)


def gelu_and_mul(gate_up: Tensor) -> Tensor:
    """See `ops.gelu_and_mul`."""
    return _gated(gate_up, is_gelu=True)


def _gated(gate_up: Tensor, *, is_gelu: bool) -> Tensor:
    gate_up = gate_up.contiguous()
    num_tokens, size = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty((num_tokens, size), dtype=gate_up.dtype)
    run = gate_kernel(int(gate_up.dtype == torch.bfloat16), line_block(size), int(is_gelu))
    run(gate_up.data_ptr(), out.data_ptr(), num_tokens, size)
    return out
