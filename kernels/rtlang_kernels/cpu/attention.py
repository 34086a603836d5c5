"""CPU attention: shared prefixes as dense calls on the matrix units, the rest in one compiled pass. Contracts are in `ops.py`.

Per step, `shared_prefix_tiling` selects rectangles that are worth a dense call. Per layer, each dense call runs torch's flash kernel (which
returns the log-sum-exp) with all query heads of a KV head packed as query lines, against a strided view of the pool if the pages are
consecutive, otherwise against gathered keys. Then `attention_kernel` reads the private keys from their pages, merges all parts and writes
the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.cpu import attention_kernel as layout_of
from rtlang_kernels.cpu.attention_kernel import CALL_FIELDS, CHUNK, attend_kernel, scratch_floats
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.planning.shared_prefix_tiling import (
    assign_segments,
    clip_to_visible,
    first_visible,
    is_tile_worthwhile,
    tree_rectangles,
)

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

RUN_TOKENS = 512  # keys: a rectangle is gathered if its runs of consecutive pages are shorter than this on average
SPLIT_NS = 150_000  # less private work than this runs on one thread
NS_PER_MULTIPLY = 5 / 64  # private work: 5 ns per score at head size 64
NO_SINKS = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class DenseCall:
    """One dense call: tokens [first, last) against `num_keys` keys from `slot` on, or at `slots` if they are not consecutive."""

    first: int
    last: int
    slot: int
    num_keys: int
    slots: Tensor | None
    is_causal: bool


@dataclass(frozen=True, slots=True)
class Variant:
    """The plan for layers with the same window: dense calls and the arrays that the kernel reads."""

    dense: list[DenseCall]
    arrays: tuple[NDArray[np.int32], ...]  # token_row, segment_start, segments, partial_start, partial_call
    calls: NDArray[np.int64]
    chunks: list[tuple[int, int]]


@dataclass(slots=True)
class Work:
    """Plan data of this backend. A variant is built when a layer first needs it."""

    positions: NDArray[np.int32]
    rectangles: NDArray[np.int32]
    variants: dict[tuple[int | None, int | None], Variant] = field(default_factory=dict)


def prepare(plan: AttentionPlan) -> None:
    """Find the rectangles of the step. Called once per step."""
    plan.work = Work(plan.token_positions(), tree_rectangles(plan))


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
    head_dim, v_head_dim = plan.head_dim, v_pool.shape[2]
    if q.stride()[1:] != (head_dim, 1):
        q = q.contiguous()
    for name, pool in (("k_pool", k_pool), ("v_pool", v_pool)):
        if pool.stride()[1:] != (pool.shape[2], 1):
            raise ValueError(f"{name} strides = {pool.stride()}: expected contiguous heads within a slot")
    variant = variant_of(plan, sliding_window, chunk_size)
    parts = []  # owns the memory of the partial results until they are merged
    for index, call in enumerate(variant.dense):
        part = _dense(q, k_pool, v_pool, call, plan, scale, soft_cap)
        _describe(variant.calls[index], call, *part)
        parts.append(part)
    item = q.element_size()
    layout = np.array(
        (
            q.data_ptr(),
            k_pool.data_ptr(),
            v_pool.data_ptr(),
            out.data_ptr(),
            lse.data_ptr(),
            q.stride(0) * item,
            k_pool.stride(0) * item,
            v_pool.stride(0) * item,
            out.stride(0) * item,
        ),
        dtype=np.int64,
    )
    kernel = attend_kernel(
        int(q.dtype == torch.bfloat16),
        plan.num_kv_heads,
        plan.num_q_heads // plan.num_kv_heads,
        head_dim,
        v_head_dim,
    )
    common = (
        layout,
        np.float32(scale),
        np.float32(soft_cap or 0.0),
        NO_SINKS if sinks is None else np.ascontiguousarray(sinks.detach().float().numpy()),
        plan.page_table,
        plan.page_size,
        *variant.arrays,
        variant.calls,
    )
    size = scratch_floats(plan.num_q_heads, head_dim, v_head_dim)
    run_chunks(
        kernel,
        [
            (*common, first, last, np.empty(size, np.float32), np.empty((2, CHUNK), np.int64))
            for first, last in variant.chunks
        ],
    )
    del parts


def variant_of(plan: AttentionPlan, sliding_window: int | None, chunk_size: int | None) -> Variant:
    """The arrays for one kind of layer, built at its first call in a step."""
    work: Work = plan.work
    key = (sliding_window, chunk_size)
    if key not in work.variants:
        first = first_visible(work.positions, sliding_window, chunk_size)
        if key != (None, None) and not first.any():
            work.variants[key] = variant_of(plan, None, None)
        else:
            table = clip_to_visible(plan, work.rectangles, first) if first.any() else work.rectangles
            work.variants[key] = _built(plan, table[is_tile_worthwhile(plan, table)], work.positions, first)
    return work.variants[key]


def _built(
    plan: AttentionPlan, table: NDArray[np.int32], positions: NDArray[np.int32], first: NDArray[np.int32]
) -> Variant:
    """Create dense calls for the selected rectangles, split at gaps between pages, and assign the rest to the kernel."""
    dense: list[DenseCall] = []
    rows: list[tuple[int, ...]] = []
    for row, row_end, start, stop, is_causal in table.tolist():
        tokens = int(plan.cu_seqlens_q[row]), int(plan.cu_seqlens_q[row_end])
        slots = plan.slots(row, start, stop)
        breaks = np.flatnonzero(np.diff(slots) != 1) + 1
        if is_causal or len(breaks) > (stop - start) // RUN_TOKENS:
            index = torch.from_numpy(slots) if len(breaks) else None
            dense.append(DenseCall(*tokens, int(slots[0]), stop - start, index, bool(is_causal)))
            rows.append((row, row_end, start, stop, is_causal))
            continue
        for low, high in pairwise((0, *breaks.tolist(), stop - start)):
            dense.append(DenseCall(*tokens, int(slots[low]), high - low, None, False))
            rows.append((row, row_end, start + low, start + high, 0))
    pieces = np.array(rows, dtype=np.int32).reshape(-1, 5)
    *arrays, keys_before = assign_segments(pieces, plan.cu_seqlens_q, positions, first)
    calls = np.zeros((len(dense), CALL_FIELDS), np.int64)
    return Variant(dense, tuple(arrays), calls, _chunks(plan, keys_before))


def _chunks(plan: AttentionPlan, keys_before: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Token ranges of about equal private work: one per thread, or a single one if splitting costs more than it saves."""
    num_tokens, num_threads = plan.num_tokens, torch.get_num_threads()
    cost_ns = int(keys_before[-1]) * plan.num_q_heads * plan.head_dim * NS_PER_MULTIPLY
    if num_threads == 1 or cost_ns < SPLIT_NS:
        return [(0, num_tokens)]
    goals = np.arange(1, num_threads) * (keys_before[-1] / num_threads)
    cuts = np.searchsorted(keys_before, goals).tolist()
    bounds = sorted({0, num_tokens, *cuts})
    return list(pairwise(bounds))


def _dense(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    call: DenseCall,
    plan: AttentionPlan,
    scale: float,
    soft_cap: float | None,
) -> tuple[Tensor, Tensor]:
    """Run one dense call: output [num_kv_heads, group, tokens, v_head_dim] and lse [num_kv_heads, group, tokens], any strides."""
    num_kv_heads, group = plan.num_kv_heads, plan.num_q_heads // plan.num_kv_heads
    num_tokens, head_dim = call.last - call.first, plan.head_dim
    k, v = _keys(k_pool, call), _keys(v_pool, call)  # [num_kv_heads, keys, size]
    lines = q[call.first : call.last].view(num_tokens, num_kv_heads, group, head_dim)
    if soft_cap is not None or k.shape[2] != v.shape[2]:
        return _plain(lines.permute(1, 2, 0, 3), k, v, call.is_causal, scale, soft_cap)
    if call.is_causal:  # the heads of a group are a broadcast dimension, so that the triangle is over tokens
        shape = (num_kv_heads, group, call.num_keys, head_dim)
        out, lse = _flash(
            lines.permute(1, 2, 0, 3), k[:, None].expand(shape), v[:, None].expand(shape), 0.0, True, scale=scale
        )
        return out, lse
    packed = lines.permute(1, 0, 2, 3).reshape(1, num_kv_heads, num_tokens * group, head_dim)
    out, lse = _flash(packed, k[None], v[None], 0.0, False, scale=scale)
    return (
        out[0].unflatten(1, (num_tokens, group)).transpose(1, 2),
        lse[0].unflatten(1, (num_tokens, group)).transpose(1, 2),
    )


def _keys(pool: Tensor, call: DenseCall) -> Tensor:
    """Keys [num_kv_heads, keys, size] of one pool: a view if the slots are consecutive."""
    if call.slots is not None:
        return pool.index_select(0, call.slots).transpose(0, 1)
    return pool[call.slot : call.slot + call.num_keys].transpose(0, 1)


def _plain(
    lines: Tensor, k: Tensor, v: Tensor, is_causal: bool, scale: float, soft_cap: float | None
) -> tuple[Tensor, Tensor]:
    """A dense call as plain float32 matrix products, for soft caps and value sizes that the flash kernel does not support."""
    scores = (lines.float() @ k[:, None].float().mT) * scale  # [num_kv_heads, group, tokens, keys]
    if soft_cap is not None:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu_(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    lse = torch.logsumexp(scores, dim=-1)
    return (torch.exp(scores - lse[..., None]) @ v[:, None].float()).to(lines.dtype), lse


def _describe(row: NDArray[np.int64], call: DenseCall, out: Tensor, lse: Tensor) -> None:
    """Write a call's row of the kernel's table; strides in bytes."""
    item = out.element_size()
    row[layout_of.OUT], row[layout_of.LSE], row[layout_of.FIRST_TOKEN] = out.data_ptr(), lse.data_ptr(), call.first
    row[layout_of.OUT_KV], row[layout_of.OUT_GROUP], row[layout_of.OUT_TOKEN] = (
        out.stride(0) * item,
        out.stride(1) * item,
        out.stride(2) * item,
    )
    row[layout_of.LSE_KV], row[layout_of.LSE_GROUP], row[layout_of.LSE_TOKEN] = (
        lse.stride(0) * 4,
        lse.stride(1) * 4,
        lse.stride(2) * 4,
    )
