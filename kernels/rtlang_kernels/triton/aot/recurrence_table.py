"""Recurrent layers as they are compiled ahead of time: the shapes of published families, with their optional parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rtlang_kernels.triton.aot.variant import CompiledVariant
from rtlang_kernels.triton.recurrence import recurrence_kernel
from rtlang_kernels.triton.recurrence.recurrence import (
    CONV_OPTIONS,
    STATE_OPTIONS,
    conv_block,
    scan_block,
    state_block,
)

PLAN = dict.fromkeys(("cu_seqlens", "sources", "cu_marks", "mark_ends", "mark_slots"), "*i32")


class GatedShape(NamedTuple):
    """Heads of a layer of `gated_recurrence`; HAS_ constants as in the kernel. The optional parts of the gated delta rule by default."""

    family: str
    kind: str
    num_k_heads: int
    num_heads: int
    k_dim: int
    v_dim: int
    is_delta: bool = True
    has_norm: bool = True
    has_key_decay: bool = False


GATED = (
    GatedShape("qwen3.5", "bf16", 16, 16, 128, 128),
    GatedShape("qwen3-next", "bf16", 16, 32, 128, 128),
    GatedShape("kimi", "bf16", 32, 32, 128, 128, has_key_decay=True),
    GatedShape("olmo-hybrid", "bf16", 30, 30, 96, 192),
    GatedShape("mamba-2", "fp32", 1, 64, 128, 64, is_delta=False, has_norm=False),
    GatedShape("falcon-h1", "bf16", 1, 32, 256, 64, is_delta=False, has_norm=False),
)


def recurrence_variants() -> Iterator[CompiledVariant]:
    """All kernels of recurrent layers."""
    yield from (gated_variant(shape) for shape in GATED)
    for has_few_tokens in (True, False):
        yield conv_variant("bf16", 4, has_few_tokens=has_few_tokens, has_bias=False, has_silu=True)
    yield conv_variant("bf16", 3, has_few_tokens=True, has_bias=False, has_silu=False)
    yield conv_variant("fp32", 4, has_few_tokens=False, has_bias=True, has_silu=True)
    for kind in ("bf16", "fp32"):
        yield scan_variant(kind, 8192, 16)


def gated_variant(shape: GatedShape) -> CompiledVariant:
    """`gated_recurrence` of a family; without the delta rule, `beta` is not given."""
    vectors = dict.fromkeys(("q", "k", "v", "out"), f"*{shape.kind}")
    strides = {f"{name}{part}": "i32" for name in "qkv" for part in ("_stride", "_head_stride")}
    strides |= {f"{name}{part}": "i32" for name in ("decay", "beta") for part in ("_stride", "_head_stride")}
    constants: dict[str, Any] = {
        "NUM_HEADS": shape.num_heads,
        "GROUP": shape.num_heads // shape.num_k_heads,
        "K_DIM": shape.k_dim,
        "V_DIM": shape.v_dim,
        "IS_DELTA": shape.is_delta,
        "HAS_BETA": shape.is_delta,
        "HAS_NORM": shape.has_norm,
        "HAS_KEY_DECAY": shape.has_key_decay,
    }
    return CompiledVariant(
        f"gated_recurrence {shape.kind} {shape.family} {shape.num_heads}x{shape.k_dim}x{shape.v_dim}",
        recurrence_kernel.gated_recurrence,
        vectors
        | {"log_decay": "*fp32", "beta": f"*{shape.kind}" if shape.is_delta else "*fp32", "states": "*fp32"}
        | PLAN
        | {"scale": "fp32", "norm_eps": "fp32", "state_stride": "i32"}
        | strides,
        constants | state_block(shape.k_dim, shape.v_dim),
        dict(STATE_OPTIONS),
    )


def conv_variant(kind: str, width: int, *, has_few_tokens: bool, has_bias: bool, has_silu: bool) -> CompiledVariant:
    """`causal_conv` with one of its tiles."""
    block = conv_block(width, has_few_tokens=has_few_tokens)
    return CompiledVariant(
        f"causal_conv {kind} {width}: {block['BLOCK_T']}x{block['BLOCK_C']}{' silu' * has_silu}{' bias' * has_bias}",
        recurrence_kernel.causal_conv,
        dict.fromkeys(("x", "weight", "bias", "states", "out"), f"*{kind}")
        | PLAN
        | {"num_channels": "i32", "x_stride": "i32", "state_stride": "i32"},
        {"WIDTH": width, "HAS_BIAS": has_bias, "HAS_SILU": has_silu} | block,
        dict(CONV_OPTIONS),
    )


def scan_variant(kind: str, num_channels: int, state_size: int) -> CompiledVariant:
    """`selective_scan` of a number of channels."""
    return CompiledVariant(
        f"selective_scan {kind} {num_channels}x{state_size}",
        recurrence_kernel.selective_scan,
        dict.fromkeys(("x", "delta", "b", "c", "d", "out"), f"*{kind}")
        | {"a": "*fp32", "states": "*fp32"}
        | PLAN
        | {"num_channels": "i32", "state_stride": "i32"}
        | dict.fromkeys(("x_stride", "delta_stride", "b_stride", "c_stride"), "i32"),
        {"STATE_SIZE": state_size, "HAS_D": True} | scan_block(num_channels, state_size),
        dict(STATE_OPTIONS),
    )
