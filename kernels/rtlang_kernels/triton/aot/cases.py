"""The calls whose kernels are compiled ahead of time: shapes of published models, with every kernel and optional part at least once.

Attention has a line per head geometry and the steps that reach each class of tiles. Kernels of sampling appear for each type of logits,
with and without masks and filters, for a large vocabulary, for one whose size is no multiple of 16, and for one of a single chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import checked_plan
from rtlang_kernels.contract.sampler_settings import checked_settings
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.planning.tile_sizes import LINES, SM_90, SM_100
from rtlang_kernels.triton.aot.expert_cases import expert_cases
from rtlang_kernels.triton.aot.linear_cases import linear_cases
from rtlang_kernels.triton.aot.recording import Case
from rtlang_kernels.triton.attention import paged_attention
from rtlang_kernels.triton.attention.prompt_choice import NOT_CHOSEN, PromptChoice, PromptShape, set_choice
from rtlang_kernels.triton.grammar.automaton_store import AutomatonStore
from rtlang_kernels.triton.layers import kv_cache, layer_ops
from rtlang_kernels.triton.recurrence import recurrence
from rtlang_kernels.triton.sampling import logits as logits_ops
from rtlang_kernels.triton.sampling.sampler import sample

META = torch.device("meta")
BF16, FP16, FP32, FLOAT8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn
NAMES = {BF16: "bf16", FP16: "fp16", FP32: "fp32"}
PAGE_SIZE, CONTEXT = 16, 4096
POOL_SLOTS = 1 << 20
VOCAB_SIZE = 128_256


def cases(target: str) -> Iterator[Case]:
    """All cases for a target. For sm_100, linear layers, which have matrix instructions of their own there, and recurrent layers."""
    if target != SM_100:
        yield from attention_cases()
        if target == SM_90:
            yield from prompt_cases()
        yield from layer_cases()
        yield from sampling_cases()
        yield Case("", _automata)
        yield from expert_cases()
    yield from recurrence_cases()
    yield from linear_cases()


def empty(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    """A tensor without memory."""
    return torch.empty(shape, dtype=dtype, device=META)


class Heads(NamedTuple):
    """Head geometry of a layer, its optional parts, and the steps that it computes (see `_steps`)."""

    dtype: torch.dtype
    head_dim: int
    group: int
    steps: str
    v_head_dim: int | None = None
    is_float8: bool = False
    window: int | None = None
    soft_cap: float | None = None
    has_sinks: bool = False
    is_latent: bool = False
    has_fixed_order: bool = False


ATTENTION = (
    Heads(BF16, 128, 4, "decode mixed tree"),
    Heads(BF16, 64, 7, "decode mixed"),
    Heads(FP16, 80, 1, "prompt"),
    Heads(BF16, 96, 1, "prompt"),
    Heads(BF16, 64, 8, "mixed", window=128, has_sinks=True),
    Heads(BF16, 64, 8, "decode tree", has_sinks=True),
    Heads(BF16, 256, 4, "mixed", window=1024, soft_cap=50.0),
    Heads(FP32, 128, 4, "mixed"),
    Heads(FP32, 64, 2, "mixed"),
    Heads(BF16, 128, 4, "decode mixed", is_float8=True),
    Heads(BF16, 192, 1, "mixed", 128),
    Heads(BF16, 512, 8, "mixed"),
    Heads(FP32, 192, 1, "decode", 128),
    Heads(BF16, 576, 16, "mixed", 512, is_latent=True),
    Heads(BF16, 576, 128, "decode", 512, is_latent=True, is_float8=True),
    Heads(BF16, 288, 40, "mixed", 256, is_latent=True),
    Heads(BF16, 448, 16, "decode", 384),
    Heads(BF16, 128, 4, "decode", has_fixed_order=True),
)


def attention_cases() -> Iterator[Case]:
    """Every tile class for the most common and the largest heads, and every feature, head size and type at least once."""
    for heads in ATTENTION:
        dims = f"D{heads.head_dim}" if heads.v_head_dim is None else f"D{heads.head_dim}/{heads.v_head_dim}"
        parts = [NAMES[heads.dtype], *["kv8"] * heads.is_float8, dims, f"G{heads.group}"]
        parts += ["window"] * (heads.window is not None) + ["cap"] * (heads.soft_cap is not None)
        parts += ["sinks"] * heads.has_sinks + ["latent"] * heads.is_latent
        parts += ["fixed"] * heads.has_fixed_order
        for step in heads.steps.split():
            yield Case(" ".join([*parts, step]), partial(_attend, heads, step))
    yield Case("bf16 D128", _merge)


def prompt_cases() -> Iterator[Case]:
    """`prompt_attn`, for the head sizes and types that it supports, with and without sinks."""
    for heads in (
        Heads(BF16, 128, 4, "prompt"),
        Heads(FP16, 128, 1, "prompt"),
        Heads(BF16, 64, 8, "tree", has_sinks=True),
    ):
        label = f"{NAMES[heads.dtype]} D{heads.head_dim} G{heads.group}{' sinks' * heads.has_sinks} {heads.steps}"
        yield Case(label, partial(_attend_with_prompt_kernel, heads))


def _attend_with_prompt_kernel(heads: Heads) -> None:
    shape = PromptShape(META, heads.dtype, 8 * heads.group, 8, heads.head_dim, PAGE_SIZE)
    set_choice(shape, PromptChoice("prompt_attn", None, "recorded"))
    try:
        _attend(heads, heads.steps)
    finally:
        set_choice(shape, NOT_CHOSEN)


def _steps(step: str, group: int) -> tuple[list[int], int]:
    """Number of new tokens of each row, and of tokens that it shares with the row before.

    A mixed step has a decoding row, with the narrowest tile, and a row for each wider class.
    """
    wide = [max(1, lines // group) for lines in LINES]
    if step == "decode":
        return [1] * 8, 0
    if step == "prompt":
        return [4 * wide[-1]], 0
    return (sorted({1, *wide[1:]}), 0) if step == "mixed" else ([1] * 128, CONTEXT // 2)


def _attend(heads: Heads, step: str) -> None:
    head_dim, v_head_dim = heads.head_dim, heads.v_head_dim or heads.head_dim
    num_kv_heads = 1 if heads.is_latent else 8
    new, shared = _steps(step, heads.group)
    num_pages = CONTEXT // PAGE_SIZE
    own = np.arange(len(new) * num_pages, dtype=np.int32).reshape(len(new), num_pages)
    own[:, : shared // PAGE_SIZE] = own[0, : shared // PAGE_SIZE]
    plan = checked_plan(
        own,
        np.full(len(new), CONTEXT, np.int32),
        np.cumsum([0, *new], dtype=np.int32),
        np.array([0, *[shared] * (len(new) - 1)], np.int32),
        page_size=PAGE_SIZE,
        num_q_heads=num_kv_heads * heads.group,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        dtype=heads.dtype,
        device=META,
        backend="triton",
        has_fixed_order=heads.has_fixed_order,
    )
    paged_attention.prepare(plan)
    num_tokens, num_q_heads = plan.num_tokens, plan.num_q_heads
    kv_dtype = FLOAT8 if heads.is_float8 else heads.dtype
    k_pool = empty(POOL_SLOTS, num_kv_heads, head_dim, dtype=kv_dtype)
    v_pool = k_pool[..., :v_head_dim] if heads.is_latent else empty(POOL_SLOTS, 8, v_head_dim, dtype=kv_dtype)
    paged_attention.paged_attention(
        empty(num_tokens, num_q_heads, head_dim, dtype=heads.dtype),
        k_pool,
        v_pool,
        plan,
        head_dim**-0.5,
        heads.window,
        None,
        heads.soft_cap,
        empty(num_q_heads, dtype=heads.dtype) if heads.has_sinks else None,
        empty(num_tokens, num_q_heads, v_head_dim, dtype=heads.dtype),
        empty(num_tokens, num_q_heads, dtype=FP32),
    )


def _merge() -> None:
    out, lse = empty(4, 32, 128), empty(4, 32, dtype=FP32)
    paged_attention.merge_states(out, lse, out, lse)


def layer_cases() -> Iterator[Case]:
    """Rotation, norms, gates and copies."""
    yield Case("bf16 D128 norms", partial(_rotate, BF16, 32, 8, 128, has_norms=True))
    yield Case("bf16 D128 kv8", partial(_rotate, BF16, 32, 8, 128, kv_dtype=FLOAT8))
    yield Case("fp32 D64", partial(_rotate, FP32, 4, 2, 64))
    for dtype, size, is_alone in (
        (BF16, 4096, False),
        (BF16, 16384, False),
        (BF16, 4096, True),
        (FP32, 4096, False),
        (FP32, 64, True),
    ):
        x = empty(4, size, dtype=dtype)
        residual = None if is_alone else x
        label = f"{NAMES[dtype]} {size}{' alone' * is_alone}"
        yield Case(label, partial(layer_ops.add_rms_norm, x, residual, x[0], 1e-6))
    for dtype in (BF16, FP32):
        yield Case(NAMES[dtype], partial(layer_ops.silu_and_mul, empty(4, 2 * 14336, dtype=dtype)))
    yield Case("bf16", partial(layer_ops.gelu_and_mul, empty(4, 2 * 14336)))
    for dtype, kv_dtype in ((BF16, BF16), (BF16, FLOAT8), (FP32, FP32)):
        lines, pool = empty(4, 8, 128, dtype=dtype), empty(POOL_SLOTS, 8, 128, dtype=kv_dtype)
        slots = empty(4, dtype=torch.int64)
        label = f"{NAMES[dtype]}{' to float8' * (kv_dtype is FLOAT8)}"
        yield Case(label, partial(kv_cache.write_kv, lines, lines, pool, pool, slots))
    for kv_dtype, label in ((BF16, "bf16 pages"), (FLOAT8, "float8 pages")):
        pool = empty(POOL_SLOTS, 8, 128, dtype=kv_dtype)
        yield Case(label, partial(kv_cache.copy_pages, [pool], [1, 2], [3, 4], PAGE_SIZE))
    yield Case("bf16 chained pages", partial(kv_cache.copy_pages, [empty(POOL_SLOTS, 8, 128)], [1, 2], [2, 1], 16))


def _rotate(
    dtype: torch.dtype,
    num_q_heads: int,
    num_kv_heads: int,
    head_dim: int,
    *,
    has_norms: bool = False,
    kv_dtype: torch.dtype | None = None,
) -> None:
    qkv = empty(4, num_q_heads + 2 * num_kv_heads, head_dim, dtype=dtype)
    q, k, v = torch.split(qkv, [num_q_heads, num_kv_heads, num_kv_heads], dim=1)
    table = empty(CONTEXT, head_dim // 2, dtype=FP32)
    pool = empty(POOL_SLOTS, num_kv_heads, head_dim, dtype=kv_dtype or dtype)
    norm = empty(head_dim, dtype=dtype) if has_norms else None
    places = empty(4, dtype=torch.int64)
    layer_ops.rope_append(q, k, v, table, table, places, pool, pool, places, norm, norm, 1e-6)


# Type of the logits, whether rows are masked, size of the vocabulary.
LOGITS = ((BF16, True, VOCAB_SIZE), (BF16, False, 50_257), (FP32, True, VOCAB_SIZE), (FP32, False, 1000))


def sampling_cases() -> Iterator[Case]:
    """Sampling without and with filters, log-probabilities, masks and penalties."""
    for dtype, is_masked, vocab_size in LOGITS:
        label = f"{NAMES[dtype]} {vocab_size}"
        logits = empty(2, vocab_size, dtype=dtype)
        yield Case(f"{label}{' masked' * is_masked}", partial(_sample, logits, is_masked))
        yield Case(label, partial(logits_ops.logprobs, logits, empty(2, dtype=torch.int64), 20))
        if is_masked:
            mask, rows = np.zeros((1, -(-vocab_size // 32)), np.int32), np.zeros(2, np.int32)
            yield Case(NAMES[dtype], partial(logits_ops.apply_token_mask, logits, mask, rows))
            tokens = np.array([1, 2, 3])
            penalties = logits_ops.Penalties(0, tokens, tokens, 1.1, 0.5, 0.5)
            yield Case(NAMES[dtype], partial(logits_ops.penalize_rows, logits, [penalties]))


def _sample(logits: Tensor, is_masked: bool) -> None:
    num_rows, vocab_size = logits.shape
    mask = np.zeros((1, -(-vocab_size // 32)), np.int32) if is_masked else None
    ones, rows = np.ones(num_rows), np.zeros(num_rows, np.int32)
    settings = checked_settings(
        num_rows, vocab_size, ones, 50 * ones, 0.9 * ones, 0 * ones, rows, rows, rows, mask, rows
    )
    sample(logits, settings)


def _automata() -> None:
    """Masks and the next position of a row of a grammar."""
    text, offsets = np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2])
    store = AutomatonStore(META, VOCAB_SIZE, text, offsets, np.zeros(-(-VOCAB_SIZE // 32), np.int32), 64)
    store.build_masks([0])
    store.advance(empty(4, dtype=torch.int64), [0])
    for dtype in (BF16, FP16, FP32):
        store.lost_lines(empty(4, VOCAB_SIZE, dtype=dtype), [0])


class Gated(NamedTuple):
    """A layer of `gated_recurrence`. The optional parts of the gated delta rule by default."""

    family: str
    dtype: torch.dtype
    num_k_heads: int
    num_heads: int
    k_dim: int
    v_dim: int
    is_delta: bool = True
    has_norm: bool = True
    has_key_decay: bool = False


GATED = (
    Gated("qwen3.5", BF16, 16, 16, 128, 128),
    Gated("qwen3-next", BF16, 16, 32, 128, 128),
    Gated("kimi", BF16, 32, 32, 128, 128, has_key_decay=True),
    Gated("olmo-hybrid", BF16, 30, 30, 96, 192),
    Gated("mamba-2", FP32, 1, 64, 128, 64, is_delta=False, has_norm=False),
    Gated("falcon-h1", BF16, 1, 32, 256, 64, is_delta=False, has_norm=False),
)


def recurrence_cases() -> Iterator[Case]:
    """Recurrent layers in the shapes of published families."""
    for shape in GATED:
        yield Case(f"{NAMES[shape.dtype]} {shape.family}", partial(_gated, shape))
    for dtype, width, length, has_bias, activation in (
        (BF16, 4, 1, False, "silu"),
        (BF16, 4, 40, False, "silu"),
        (BF16, 3, 1, False, None),
        (FP32, 4, 40, True, "silu"),
    ):
        label = f"{NAMES[dtype]} {width}: {length} tokens"
        yield Case(label, partial(_convolve, dtype, width, length, has_bias=has_bias, activation=activation))
    for dtype in (BF16, FP32):
        yield Case(f"{NAMES[dtype]} 8192x16", partial(_scan, dtype, 8192, 16))


def _plan(length: int) -> StatePlan:
    return StatePlan.of(np.array([0, length], np.int32), [0], [[(length, 0)]], META)


def _gated(shape: Gated) -> None:
    q = empty(2, shape.num_k_heads, shape.k_dim, dtype=shape.dtype)
    v = empty(2, shape.num_heads, shape.v_dim, dtype=shape.dtype)
    decay = empty(2, shape.num_heads, *[shape.k_dim] * shape.has_key_decay, dtype=FP32)
    beta = empty(2, shape.num_heads, dtype=shape.dtype) if shape.is_delta else None
    states = empty(4, shape.num_heads, shape.k_dim, shape.v_dim, dtype=FP32)
    eps = 1e-6 if shape.has_norm else None
    recurrence.gated_recurrence(q, q, v, decay, beta, states, _plan(2), 1.0, shape.is_delta, eps)


def _convolve(dtype: torch.dtype, width: int, length: int, *, has_bias: bool, activation: str | None) -> None:
    x = empty(length, 8192, dtype=dtype)
    weight, states = empty(8192, width, dtype=dtype), empty(4, 8192, width - 1, dtype=dtype)
    recurrence.causal_conv(x, weight, x[0] if has_bias else None, states, _plan(length), activation)


def _scan(dtype: torch.dtype, num_channels: int, state_size: int) -> None:
    x, narrow = empty(2, num_channels, dtype=dtype), empty(2, state_size, dtype=dtype)
    a, states = empty(num_channels, state_size, dtype=FP32), empty(4, num_channels, state_size, dtype=FP32)
    recurrence.selective_scan(x, x, a, narrow, narrow, x[0], states, _plan(2))
