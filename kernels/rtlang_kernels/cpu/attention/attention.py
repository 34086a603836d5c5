"""CPU attention: plans the passes of a step and runs the compiled kernel over them. Contracts are in `ops.py`.

Per step and kind of layer, `planning.attention_passes` lists the passes; per layer, `attention_kernel` runs them, on several threads if
there is enough work. Threads share nothing: each has its own KV heads, its own tokens, or a part of the query heads of a single KV head, so
that results do not depend on their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.kv_lines import has_adjacent_heads, line_bytes
from rtlang_kernels.cpu.attention.attention_kernel import K_HEAD, RESULT_STRIDE, V_HEAD, attend_kernel, scratch_bytes
from rtlang_kernels.cpu.attention.attention_layout import layout_of
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.planning.attention_passes import IS_SECOND, plan_passes
from rtlang_kernels.planning.shared_prefix_tiling import first_visible, tree_rectangles

SPLIT_NS = 150_000  # less work than this runs on one thread, if the others have to be woken
NO_SPLIT = 1 << 60  # `split_ns` that no work reaches
NS_PER_MULTIPLY = 2 / 64  # 2 ns per score at head size 64
MIN_SHARED_TOKENS = 2  # reading one shared block once is 1 to 16 % faster for two rows in four geometries
NO_SINKS = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The work of one thread: the kernel's arguments from `passes` to `kv_last`, and the bytes of its working memory."""

    arguments: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], int, int, int]
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class AttentionVariant:
    """The plan for layers with the same window and size of values. `layout` lacks the entries of a layer."""

    layout: NDArray[np.int64]
    chunks: list[Chunk]


@dataclass(slots=True)
class AttentionWork:
    """Plan data of this backend. A variant is built when a layer first needs it.

    Attributes:
        scratch: working memory of each thread, and its addresses.
    """

    positions: NDArray[np.int32]
    rectangles: NDArray[np.int32]
    variants: dict[tuple[int | None, int | None, int, int, bool, bool], AttentionVariant] = field(default_factory=dict)
    scratch: list[NDArray[np.uint8]] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)

    def reserve(self, chunks: list[Chunk]) -> None:
        """Make the working memory large enough for these chunks."""
        for index, chunk in enumerate(chunks):
            if index < len(self.scratch) and len(self.scratch[index]) >= chunk.scratch_bytes:
                continue
            memory = np.empty(chunk.scratch_bytes, np.uint8)
            self.scratch[index : index + 1] = [memory]
            self.addresses[index : index + 1] = [memory.ctypes.data]


def prepare(plan: AttentionPlan) -> None:
    """Find the tree of the step. Called once per step."""
    plan.work = AttentionWork(plan.token_positions(), tree_rectangles(plan))


def paged_attention(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    plan: AttentionPlan,
    scale: float,
    sliding_window: int | None,
    chunk_size: int | None,
    soft_cap: float | None,
    sinks: Tensor | None,
    out: Tensor,
    lse: Tensor,
) -> None:
    """See `ops.paged_attention_with_lse`; writes `out` and `lse`."""
    if plan.num_tokens == 0:
        return
    head_dim, v_head_dim, is_int8 = plan.head_dim, v_pool.shape[2], k_pool.dtype == torch.int8
    if q.stride()[1:] != (head_dim, 1):
        q = q.contiguous()
    for name, pool in (("k_pool", k_pool), ("v_pool", v_pool)):
        head_stride = line_bytes(pool.shape[2]) if is_int8 else pool.shape[2]
        if not has_adjacent_heads(pool, head_stride):
            raise ValueError(f"{name} strides = {pool.stride()}: expected heads {head_stride} elements apart in a slot")
    variant = variant_of(plan, sliding_window, chunk_size, v_head_dim, is_int8=is_int8)
    item, pool_item = q.element_size(), k_pool.element_size()
    layout = variant.layout.copy()
    layout[: RESULT_STRIDE + 1] = (
        q.data_ptr(),
        k_pool.data_ptr(),
        v_pool.data_ptr(),
        out.data_ptr(),
        lse.data_ptr(),
        q.stride(0) * item,
        k_pool.stride(0) * pool_item,
        v_pool.stride(0) * pool_item,
        out.stride(0) * item,
    )
    common = (
        layout,
        scale,
        soft_cap or 0.0,
        NO_SINKS if sinks is None else np.ascontiguousarray(sinks.detach().float().numpy()),
        plan.page_table,
        plan.page_size,
    )
    addresses = plan.work.addresses
    run_chunks(
        attend_kernel(),
        [(*common, *chunk.arguments, addresses[index]) for index, chunk in enumerate(variant.chunks)],
    )


def variant_of(
    plan: AttentionPlan,
    sliding_window: int | None,
    chunk_size: int | None,
    v_head_dim: int | None = None,
    *,
    is_int8: bool = False,
    split_ns: int | None = None,
    splits_heads: bool = True,
) -> AttentionVariant:
    """The passes for one kind of layer, built at its first call in a step.

    Args:
        is_int8: whether the pool is.
        split_ns: least work that is split among threads, in nanoseconds; default: SPLIT_NS.
        splits_heads: whether threads may share the query heads of a KV head, which then count as KV heads of their own in the layout.
    """
    split_ns = SPLIT_NS if split_ns is None else split_ns
    work: AttentionWork = plan.work
    v_head_dim = plan.head_dim if v_head_dim is None else v_head_dim
    key = (sliding_window, chunk_size, v_head_dim, split_ns, is_int8, splits_heads)
    if key not in work.variants:
        first = first_visible(work.positions, sliding_window, chunk_size)
        if key[:2] != (None, None) and not first.any():
            options: dict[str, Any] = {"is_int8": is_int8, "split_ns": split_ns, "splits_heads": splits_heads}
            work.variants[key] = variant_of(plan, None, None, v_head_dim, **options)
        else:
            num_threads = _num_threads(plan, first, split_ns)
            num_parts = _num_parts(plan, num_threads) if splits_heads else 1
            heads = plan.num_kv_heads * num_parts, plan.num_q_heads // plan.num_kv_heads // num_parts
            is_bf16 = int(plan.dtype == torch.bfloat16)
            layout = layout_of(is_bf16, *heads, plan.head_dim, v_head_dim, is_int8=is_int8)
            if num_parts > 1:
                layout[K_HEAD] = layout[V_HEAD] = 0
            chunks = _chunks(plan, first, layout, *heads, num_threads)
            work.reserve(chunks)
            work.variants[key] = AttentionVariant(layout, chunks)
    return work.variants[key]


def _num_threads(plan: AttentionPlan, first: NDArray[np.int32], split_ns: int) -> int:
    """Number of threads that share the work: one if there is little."""
    num_threads = torch.get_num_threads()
    if num_threads > 1:
        num_keys = int((plan.work.positions - first + 1).sum(dtype=np.int64))
        if num_keys * plan.num_q_heads * plan.head_dim * NS_PER_MULTIPLY >= split_ns:
            return num_threads
    return 1


def _num_parts(plan: AttentionPlan, num_threads: int) -> int:
    """Number of parts of the query heads of the only KV head, if there are fewer tokens than threads; else 1.

    Parts count as KV heads at the same place: each thread packs the keys again, which costs as much as folding them into 5 heads.
    """
    is_narrow = plan.num_kv_heads == 1 and plan.num_tokens < num_threads
    return gcd(plan.num_q_heads, num_threads) if is_narrow else 1


def _chunks(
    plan: AttentionPlan,
    first: NDArray[np.int32],
    layout: NDArray[np.int64],
    num_kv_heads: int,
    group: int,
    num_threads: int,
) -> list[Chunk]:
    """The work of each thread: one KV head or more each, or ranges of tokens of about equal work."""
    work, num_tokens = plan.work, plan.num_tokens
    kv_parts, bounds = 1, [0, num_tokens]
    if num_threads > 1:
        keys_before = np.cumsum(work.positions - first + 1, dtype=np.int64)
        kv_parts = gcd(num_threads, num_kv_heads)
        goals = np.arange(1, num_threads // kv_parts) * (keys_before[-1] * kv_parts / num_threads)
        bounds = sorted({0, num_tokens, *np.searchsorted(keys_before, goals).tolist()})
    chunks = []
    heads = num_kv_heads // kv_parts
    for low, high in pairwise(bounds):
        passes, num_slots = plan_passes(
            work.rectangles, plan.cu_seqlens_q, work.positions, first, (low, high), group, MIN_SHARED_TOKENS
        )
        num_states = num_slots * (2 if passes[:, IS_SECOND].any() else 1)
        size = scratch_bytes(layout, num_states * heads * group)
        for kv in range(0, num_kv_heads, heads):
            chunks.append(Chunk((passes, work.positions, first, num_slots, kv, kv + heads), size))
    return chunks
