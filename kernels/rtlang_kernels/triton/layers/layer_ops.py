"""GPU layer operations, one launch each. Contracts are in `ops.py`, kernels in `layers_kernel`."""

from __future__ import annotations

import torch
from torch import Tensor

from rtlang_kernels.planning.tile_sizes import power_of_two
from rtlang_kernels.triton.layers import layers_kernel as kernels
from rtlang_kernels.triton.primitives.early_start import early_start
from rtlang_kernels.triton.primitives.jit import check_device

HEAD_ELEMENTS = 1024  # elements per program of the rotation
LARGEST_NORM = 65536  # elements of a token that one program can hold
GATE_BLOCK = 1024


def heads_per_program(head_dim: int, num_heads: int) -> int:
    """Number of heads per program of the rotation: a power of two."""
    return min(max(1, HEAD_ELEMENTS // power_of_two(head_dim)), power_of_two(num_heads))


def norm_warps(size: int) -> int:
    """Number of warps for a norm over `size` elements."""
    return 4 if size <= 2048 else 8 if size <= 8192 else 16


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
    check_device(q.device)
    num_tokens, num_q_heads, head_dim = q.shape
    num_kv_heads, v_head_dim, half = k.shape[1], v.shape[2], cos.shape[1]
    if num_tokens == 0:
        return
    for name, tensor in (("q", q), ("k", k), ("v", v), ("k_pool", k_pool), ("v_pool", v_pool)):
        if tensor.stride()[1:] != (tensor.shape[2], 1):
            raise ValueError(f"{name} strides = {tensor.stride()}: expected contiguous heads within a token")
    is_float8 = k_pool.dtype == torch.float8_e4m3fn
    if is_float8:
        k_pool, v_pool = k_pool.view(torch.uint8), v_pool.view(torch.uint8)
    block_h = heads_per_program(head_dim, num_q_heads)
    grid = (num_tokens, -(-num_q_heads // block_h) + -(-num_kv_heads // block_h))
    kernels.rope_append[grid](
        q,
        k,
        v,
        cos.contiguous(),
        sin.contiguous(),
        positions,
        k_pool,
        v_pool,
        slot_mapping,
        q if q_norm is None else q_norm,
        k if k_norm is None else k_norm,
        float(eps),
        q.stride(0),
        k.stride(0),
        v.stride(0),
        k_pool.stride(0),
        v_pool.stride(0),
        NUM_Q_HEADS=num_q_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        V_HEAD_DIM=v_head_dim,
        HALF=half,
        BLOCK_H=block_h,
        BLOCK_HALF=power_of_two(half),
        BLOCK_REST=power_of_two(head_dim - 2 * half),
        BLOCK_V=power_of_two(v_head_dim),
        HAS_Q_NORM=q_norm is not None,
        HAS_K_NORM=k_norm is not None,
        TO_FLOAT8=is_float8,
        num_warps=4,
        enable_fp_fusion=True,
        **early_start(q.device),
    )


def add_rms_norm(x: Tensor, residual: Tensor | None, weight: Tensor, eps: float) -> Tensor:
    """See `ops.add_rms_norm`.

    Raises:
        ValueError: x or residual is not contiguous, or a token is larger than one program can hold.
    """
    check_device(x.device)
    num_tokens, size = x.shape
    if size > LARGEST_NORM or not x.is_contiguous() or not (residual is None or residual.is_contiguous()):
        raise ValueError(f"x, residual = {list(x.shape)}: expected contiguous [num_tokens, at most {LARGEST_NORM}]")
    out = torch.empty_like(x)
    if num_tokens:
        kernels.add_rms_norm[(num_tokens,)](
            x,
            x if residual is None else residual,
            weight,
            out,
            float(eps),
            size,
            BLOCK=power_of_two(size),
            HAS_RESIDUAL=residual is not None,
            num_warps=norm_warps(size),
            enable_fp_fusion=True,
            **early_start(x.device),
        )
    return out


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """See `ops.silu_and_mul`."""
    return _gated(gate_up, is_gelu=False)


def gelu_and_mul(gate_up: Tensor) -> Tensor:
    """See `ops.gelu_and_mul`."""
    return _gated(gate_up, is_gelu=True)


def scaled_add(x: Tensor, residual: Tensor, factor: float) -> None:
    """See `ops.scaled_add`; rounds the sum only."""
    residual.add_(x, alpha=factor)


def _gated(gate_up: Tensor, *, is_gelu: bool) -> Tensor:
    check_device(gate_up.device)
    num_tokens, size = gate_up.shape[0], gate_up.shape[1] // 2
    if gate_up.stride(1) != 1:
        gate_up = gate_up.contiguous()
    out = torch.empty((num_tokens, size), dtype=gate_up.dtype, device=gate_up.device)
    if num_tokens:
        grid = (num_tokens, -(-size // GATE_BLOCK))
        kernels.gate_and_mul[grid](
            gate_up,
            out,
            size,
            gate_up.stride(0),
            IS_GELU=is_gelu,
            BLOCK=GATE_BLOCK,
            num_warps=4,
            enable_fp_fusion=True,
            **early_start(out.device),
        )
    return out
