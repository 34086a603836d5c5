"""GPU recurrent layers, one launch each. Contracts are in `ops.py`, kernels in `recurrence_kernel`.

Launches depend on the geometry of a layer and the number of rows only, and read the rest of the plan on the device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.planning.tile_sizes import power_of_two
from rtlang_kernels.triton.primitives.jit import check_device
from rtlang_kernels.triton.recurrence import recurrence_kernel as kernels

STATE_ELEMENTS = 1024  # of a head's state per program: 32 registers of each thread of a warp
LEAST_LANES = 8  # 32 bytes, the least that a load takes from memory
SCAN_ELEMENTS = 512  # of the states of some channels per program
FEW_TOKENS = 4  # tokens per row up to which a convolution takes as many at a time
CONV_TILES = {True: (FEW_TOKENS, 128), False: (32, 32)}  # tokens and channels, with few tokens per row and with more

# Fused products would round a token differently in each copy that the compiler makes of the loop over tokens.
EXACT = {"enable_fp_fusion": False}
CONV_OPTIONS: dict[str, Any] = {"num_warps": 4, **EXACT}
STATE_OPTIONS: dict[str, Any] = {"num_warps": 1, **EXACT}


def state_block(k_dim: int, v_dim: int) -> dict[str, int]:
    """Tile of a head's state that one program of `gated_recurrence` owns: all keys, and some value lanes."""
    block_k = power_of_two(k_dim)
    return {"BLOCK_K": block_k, "BLOCK_V": min(max(LEAST_LANES, STATE_ELEMENTS // block_k), power_of_two(v_dim))}


def scan_block(num_channels: int, state_size: int) -> dict[str, int]:
    """Tile of the states that one program of `selective_scan` owns."""
    block_n = power_of_two(state_size)
    return {"BLOCK_N": block_n, "BLOCK_C": min(max(1, SCAN_ELEMENTS // block_n), power_of_two(num_channels))}


def conv_block(width: int, *, has_few_tokens: bool) -> dict[str, int]:
    """Tile of tokens and channels of `causal_conv`. Results do not depend on it."""
    block_t, block_c = CONV_TILES[has_few_tokens]
    return {"BLOCK_T": block_t, "BLOCK_C": block_c, "BLOCK_W": power_of_two(width - 1)}


def causal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, states: Tensor, plan: StatePlan, activation: str | None
) -> Tensor:
    """See `ops.causal_conv`.

    Raises:
        ValueError: the states of a slot are not contiguous.
    """
    check_device(x.device)
    num_channels, width = weight.shape
    _check_states(states)
    x, weight = _with_adjacent_elements(x), weight.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = conv_block(width, has_few_tokens=plan.num_tokens <= FEW_TOKENS * plan.num_rows)
    kernels.causal_conv[(-(-num_channels // block["BLOCK_C"]), plan.num_rows)](
        x,
        weight,
        weight if bias is None else bias,
        states,
        out,
        *plan.tensors,
        num_channels,
        _token_stride(x),
        states.stride(0),
        WIDTH=width,
        HAS_BIAS=bias is not None,
        HAS_SILU=activation is not None,
        **block,
        **CONV_OPTIONS,
    )
    return out


def gated_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor | None,
    states: Tensor,
    plan: StatePlan,
    scale: float,
    is_delta: bool,
    norm_eps: float | None,
) -> Tensor:
    """See `ops.gated_recurrence`.

    Raises:
        ValueError: the states of a slot are not contiguous.
    """
    check_device(v.device)
    num_heads, v_dim, k_dim = v.shape[1], v.shape[2], k.shape[2]
    _check_states(states)
    q, k, v, log_decay = map(_with_adjacent_elements, (q, k, v, log_decay))
    strengths = log_decay if beta is None else beta
    out = torch.empty(v.shape, dtype=v.dtype, device=v.device)
    block = state_block(k_dim, v_dim)
    strides = [each for tensor in (q, k, v, log_decay, strengths) for each in (_token_stride(tensor), tensor.stride(1))]
    kernels.gated_recurrence[(num_heads * -(-v_dim // block["BLOCK_V"]), plan.num_rows)](
        q,
        k,
        v,
        log_decay,
        strengths,
        states,
        out,
        *plan.tensors,
        float(scale),
        0.0 if norm_eps is None else float(norm_eps),
        *strides,
        states.stride(0),
        NUM_HEADS=num_heads,
        GROUP=num_heads // k.shape[1],
        K_DIM=k_dim,
        V_DIM=v_dim,
        **block,
        IS_DELTA=is_delta,
        HAS_BETA=beta is not None,
        HAS_NORM=norm_eps is not None,
        HAS_KEY_DECAY=log_decay.ndim == 3,
        **STATE_OPTIONS,
    )
    return out


def selective_scan(
    x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, states: Tensor, plan: StatePlan
) -> Tensor:
    """See `ops.selective_scan`.

    Raises:
        ValueError: the states of a slot are not contiguous.
    """
    check_device(x.device)
    num_channels, state_size = a.shape
    _check_states(states)
    x, delta, b, c = map(_with_adjacent_elements, (x, delta, b, c))
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = scan_block(num_channels, state_size)
    kernels.selective_scan[(-(-num_channels // block["BLOCK_C"]), plan.num_rows)](
        x,
        delta,
        a.contiguous(),
        b,
        c,
        x if d is None else d,
        states,
        out,
        *plan.tensors,
        num_channels,
        *map(_token_stride, (x, delta, b, c)),
        states.stride(0),
        STATE_SIZE=state_size,
        **block,
        HAS_D=d is not None,
        **STATE_OPTIONS,
    )
    return out


def _check_states(states: Tensor) -> None:
    if not states[0].is_contiguous():
        raise ValueError(f"states strides = {states.stride()}: expected contiguous states within a slot")


def _with_adjacent_elements(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _token_stride(x: Tensor) -> int:
    """Stride of tokens. A single token may have any in torch, and triton would compile a kernel anew for a stride of 1."""
    return x.stride(0) if len(x) > 1 else max(x.stride(0), x[0].numel())
