"""Reference layer operations, in float32. Contracts are in `ops.py`."""

from __future__ import annotations

import torch
from torch import Tensor

from rtlang_kernels.reference.kv_cache import write_kv


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
    q.copy_(_rotate(_head_norm(q, q_norm, eps), cos, sin, positions))
    rotated = _rotate(_head_norm(k, k_norm, eps), cos, sin, positions)
    if k_pool.dtype == torch.int8:
        rotated = rotated.to(k.dtype)  # what other pools hold is quantized
    write_kv(rotated, v, k_pool, v_pool, slot_mapping)


def _head_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    x = x.float()
    if weight is None:
        return x
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight.float()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor) -> Tensor:
    half = cos.shape[1]
    c, s = cos[positions][:, None].float(), sin[positions][:, None].float()  # [T, 1, half]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((first * c - second * s, second * c + first * s, rest), dim=-1)


def add_rms_norm(x: Tensor, residual: Tensor | None, weight: Tensor, eps: float) -> Tensor:
    """See `ops.add_rms_norm`."""
    total = x.float()
    if residual is not None:
        residual.copy_(total + residual.float())
        total = residual.float()
    return (total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """See `ops.silu_and_mul`."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * up).to(gate_up.dtype)


def gelu_and_mul(gate_up: Tensor) -> Tensor:
    """See `ops.gelu_and_mul`."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (torch.nn.functional.gelu(gate, approximate="tanh") * up).to(gate_up.dtype)


def scaled_add(x: Tensor, residual: Tensor, factor: float) -> None:
    """See `ops.scaled_add`."""
    residual.add_(x.mul_(factor))
