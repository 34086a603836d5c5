"""GPU attention: uses one buffer with the arrays of the step, one launch per rectangle class, and one merge. Contracts are in `ops.py`.

Kernel inputs other than tensors (items, page table, positions, merge lists) are packed into one int32 buffer and copied once; all layers
with the same window share it. Kernels read counts from the buffer, so a captured graph may serve steps with fewer items than its grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from triton.runtime.errors import OutOfResources

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.kv_lines import has_adjacent_heads
from rtlang_kernels.host.transfer import copy_to_device
from rtlang_kernels.planning.shared_prefix_tiling import first_visible, tree_rectangles
from rtlang_kernels.planning.tile_sizes import (
    LINES,
    SM_90,
    attention_tile,
    float32_precision,
    gpu_properties,
    reuses_keys,
    split_dim,
)
from rtlang_kernels.planning.work_items import schedule
from rtlang_kernels.reference import attention as reference
from rtlang_kernels.triton.attention import flash_attention, prompt_attention
from rtlang_kernels.triton.attention.flash_attention import FlashRows
from rtlang_kernels.triton.attention.merge_kernel import merge_parts, merge_two
from rtlang_kernels.triton.attention.prompt_choice import PromptShape, choice_for
from rtlang_kernels.triton.attention.rectangle_kernel import rect_attn
from rtlang_kernels.triton.primitives.early_start import LATE, early_start
from rtlang_kernels.triton.primitives.jit import check_device, is_interpreting

MERGE_ELEMENTS = 1024  # outputs per program that merges two states
# Partial results that a merging program loads at a time, and its outputs. Few tokens may have many parts, and too few programs to hide
# the latency of one part after the other; many tokens have few parts each.
FEW_TOKENS = 64
MERGE_FEW, MERGE_MANY = (16, 128), (1, 1024)
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Variant:
    """A schedule on the device, for layers with the same window.

    Attributes:
        class_sizes: for each class, the number of items for which programs are launched; at least the actual number.
        num_partials, num_merged: number of rows of partial results, and of tokens to merge; also upper bounds.
        header, items, merge_tokens, merge_start, merge_rows: see `Schedule`.
        page_table: int32 [num_rows, width]; kernels read the width from the header.
        positions, first: int32 [num_tokens], position of each token and its first visible key.
    """

    class_sizes: tuple[int, ...]
    num_partials: int
    num_merged: int
    header: Tensor
    items: Tensor
    page_table: Tensor
    positions: Tensor
    first: Tensor
    merge_tokens: Tensor
    merge_start: Tensor
    merge_rows: Tensor


@dataclass(slots=True)
class Work:
    """Plan data of this backend. A variant is built when a layer first needs it, except in a plan with fixed variants.

    Attributes:
        flash_rows: rows for FlashAttention-3 by their fewest new tokens, once a layer has asked; None if there are none.
    """

    positions: NDArray[np.int32]
    rectangles: NDArray[np.int32]
    variants: dict[tuple[int | None, int | None], Variant] = field(default_factory=dict)
    is_fixed: bool = False
    flash_rows: dict[int, FlashRows | None] = field(default_factory=dict)


def prepare(plan: AttentionPlan) -> None:
    """Find the rectangles of the step. Called once per step."""
    check_device(plan.device)
    plan.work = Work(plan.token_positions(), tree_rectangles(plan))


def variant_of(plan: AttentionPlan, sliding_window: int | None, chunk_size: int | None) -> Variant:
    """The schedule for one kind of layer, built and copied at its first call in a step.

    Raises:
        ValueError: the plan has fixed variants, and none of them is for such layers.
    """
    work: Work = plan.work
    key = (sliding_window, chunk_size)
    if key not in work.variants:
        if work.is_fixed:
            raise ValueError(
                f"(sliding_window, chunk_size) = {key}: expected one of the plan's fixed variants, {list(work.variants)}"
            )
        first = first_visible(work.positions, sliding_window, chunk_size)
        is_windowed = key != (None, None)
        if is_windowed and not first.any() and not plan.has_fixed_order:
            work.variants[key] = variant_of(plan, None, None)
        else:
            gpu = gpu_properties(plan.device)
            cut = schedule(plan, work.rectangles, first, gpu, is_windowed=is_windowed)
            arrays = (
                cut.header(plan.page_table.shape[1]),
                cut.items,
                plan.page_table,
                work.positions,
                first,
                cut.merge_tokens,
                cut.merge_start,
                cut.merge_rows,
            )
            counts = cut.class_sizes, cut.num_partials, len(cut.merge_tokens)
            work.variants[key] = Variant(*counts, *copy_to_device(plan.device, arrays))
    return work.variants[key]


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
    """See `ops.paged_attention_with_lse`; writes `out` and `lse`.

    Tiles of heads above 256 in float32 need up to 140 KB of shared memory, which many processors lack. There the reference computes them:
    the self-check of a decoder, which is in float32, needs that for models that are served in bfloat16.
    """
    if plan.num_tokens == 0:
        return
    is_plain = (sliding_window, chunk_size, soft_cap, sinks) == (None, None, None, None)
    shape = PromptShape(plan.device, q.dtype, plan.num_q_heads, plan.num_kv_heads, plan.head_dim, plan.page_size)
    fewest = choice_for(shape).flash_tokens
    is_plain = is_plain and not plan.has_fixed_order and not plan.work.is_fixed and k_pool.dtype == q.dtype
    if fewest is not None and is_plain:
        rows = plan.work.flash_rows.get(fewest, _MISSING)
        if rows is _MISSING:
            rows = plan.work.flash_rows[fewest] = flash_attention.flash_rows(plan, fewest)
        if rows is not None:
            _attend_with_flash(rows, q, k_pool, v_pool, scale, out, lse)
            return
    arguments = q, k_pool, v_pool, plan, scale, sliding_window, chunk_size, soft_cap, sinks, out, lse
    try:
        _launch(*arguments)
    except OutOfResources:
        if q.dtype != torch.float32:
            raise
        reference.paged_attention(*arguments)


def _attend_with_flash(
    rows: FlashRows, q: Tensor, k_pool: Tensor, v_pool: Tensor, scale: float, out: Tensor, lse: Tensor
) -> None:
    flash_attention.attend(rows, q, k_pool, v_pool, scale, out, lse)
    if rows.rest is not None:
        if rows.rest.work is None:
            prepare(rows.rest)
        rest_q = q[rows.rest_tokens]
        rest_out, rest_lse = out.new_empty(rest_q.shape), lse.new_empty(rest_q.shape[:2])
        _launch(rest_q, k_pool, v_pool, rows.rest, scale, None, None, None, None, rest_out, rest_lse)
        out[rows.rest_tokens], lse[rows.rest_tokens] = rest_out, rest_lse


def _launch(
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
    """Launch the kernels of one call."""
    head_dim, v_head_dim, num_kv_heads = plan.head_dim, v_pool.shape[2], plan.num_kv_heads
    if q.stride()[1:] != (head_dim, 1):
        q = q.contiguous()
    for name, pool in (("k_pool", k_pool), ("v_pool", v_pool)):
        if not has_adjacent_heads(pool):
            raise ValueError(f"{name} strides = {pool.stride()}: expected contiguous heads within a slot")
    variant = variant_of(plan, sliding_window, chunk_size)
    num_q_heads = plan.num_q_heads
    is_float8 = k_pool.dtype == torch.float8_e4m3fn
    if is_float8:
        k_pool, v_pool = k_pool.view(torch.uint8), v_pool.view(torch.uint8)
    partial_out = torch.empty((variant.num_partials, num_q_heads, v_head_dim), dtype=torch.float32, device=q.device)
    partial_lse = torch.empty((variant.num_partials, num_q_heads), dtype=torch.float32, device=q.device)
    arch = gpu_properties(plan.device).arch
    is_fused = not plan.has_fixed_order  # separate roundings: the loops of full and of partly visible blocks must agree
    (d_lo, d_hi), (v_lo, v_hi) = split_dim(head_dim), split_dim(v_head_dim)
    is_view = (k_pool.data_ptr(), k_pool.stride(0)) == (v_pool.data_ptr(), v_pool.stride(0))
    is_latent = num_kv_heads == 1 and is_view and reuses_keys(head_dim, v_head_dim, q.element_size())
    is_plain = (sliding_window, chunk_size, soft_cap) == (None, None, None) and k_pool.dtype == q.dtype
    is_plain = is_plain and not plan.has_fixed_order
    shape = PromptShape(plan.device, q.dtype, num_q_heads, num_kv_heads, head_dim, plan.page_size)
    has_prompt_kernel = is_plain and head_dim == v_head_dim and choice_for(shape).kernel == "prompt_attn"
    num_launches = sum(size > 0 for size in variant.class_sizes)
    # a kernel can start early where one kernel is before it, which branches of a graph and their end do not have
    early = early_start(plan.device) if num_launches == 1 else LATE
    with _Branches(plan.device, num_launches) as branches:
        for lines_class, num_items in enumerate(variant.class_sizes):
            if num_items == 0:
                continue
            branches.next()
            if has_prompt_kernel and lines_class == len(LINES) - 1:
                prompt_attention.launch(
                    q, k_pool, v_pool, plan, variant, scale, sinks, out, lse, partial_out, partial_lse
                )
                continue
            is_shared = any(variant.class_sizes[lines_class + 1 :])
            sizes = head_dim, 0 if is_latent else v_head_dim
            tile = attention_tile(arch, lines_class, *sizes, q.element_size(), is_shared=is_shared)
            parts = LINES[lines_class] // tile.block_m
            rect_attn[(num_items * num_kv_heads * parts,)](
                q,
                k_pool,
                v_pool,
                out,
                lse,
                partial_out,
                partial_lse,
                lse if sinks is None else sinks,
                variant.items,
                variant.header,
                variant.page_table,
                variant.positions,
                variant.first,
                q.stride(0),
                k_pool.stride(0),
                v_pool.stride(0),
                float(scale),
                float(soft_cap or 1.0),
                LINES_CLASS=lines_class,
                PARTS=parts,
                NUM_KV_HEADS=num_kv_heads,
                GROUP=num_q_heads // num_kv_heads,
                HEAD_DIM=head_dim,
                V_HEAD_DIM=v_head_dim,
                D_LO=d_lo,
                D_HI=d_hi,
                V_LO=v_lo,
                V_HI=v_hi,
                PAGE_SIZE=plan.page_size,
                BLOCK_M=tile.block_m,
                BLOCK_N=tile.block_n,
                NUM_STAGES=tile.num_stages,
                HAS_WINDOW=(sliding_window, chunk_size) != (None, None),
                HAS_SOFT_CAP=soft_cap is not None,
                HAS_SINKS=sinks is not None,
                UPCAST=is_interpreting() and q.dtype == torch.bfloat16,
                PRECISION=float32_precision(arch),
                KV_FLOAT8=is_float8,
                NATIVE_FLOAT8=is_float8 and arch == SM_90 and not is_interpreting(),
                LATENT=is_latent,
                num_warps=tile.num_warps,
                enable_fp_fusion=is_fused,
                **early,
            )
    if variant.num_merged:
        # In a fixed order parts are merged one by one: an empty part must not regroup the others.
        has_few = variant.num_merged <= FEW_TOKENS and not plan.has_fixed_order
        block_p, most = MERGE_FEW if has_few else MERGE_MANY
        block_v, block_h = merge_block(num_q_heads, v_head_dim, most)
        merge_parts[(variant.num_merged, -(-num_q_heads // block_h))](
            partial_out,
            partial_lse,
            lse if sinks is None else sinks,
            variant.header,
            variant.merge_tokens,
            variant.merge_start,
            variant.merge_rows,
            out,
            lse,
            NUM_Q_HEADS=num_q_heads,
            V_HEAD_DIM=v_head_dim,
            BLOCK_P=block_p,
            BLOCK_H=block_h,
            BLOCK_V=block_v,
            HAS_SINKS=sinks is not None,
            num_warps=4,
            enable_fp_fusion=is_fused,
            **early,
        )


class _Branches:
    """Parallel branches of a graph that is being captured. Otherwise launches are in series: there the host is the limit.

    Launches after the second `next` and later ones go to a stream of their own. On exit the first stream waits for the others.
    """

    def __init__(self, device: torch.device, count: int) -> None:
        self._is_parallel = count > 1 and device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        self._device, self._count = device, 0
        self._main: torch.cuda.Stream | None = None
        self._begin: torch.cuda.Event | None = None
        self._ends: list[torch.cuda.Event] = []

    def __enter__(self) -> _Branches:
        if self._is_parallel:
            self._main = torch.cuda.current_stream(self._device)
            self._begin = self._main.record_event()
        return self

    def next(self) -> None:
        """Begin the next branch."""
        self._count += 1
        if self._begin is not None and self._count > 1:
            self._end()
            stream = _side_stream(self._device, self._count)
            stream.wait_event(self._begin)
            torch.cuda.set_stream(stream)

    def __exit__(self, *_: object) -> None:
        if self._main is not None:
            self._end()
            torch.cuda.set_stream(self._main)
            for event in self._ends:
                self._main.wait_event(event)

    def _end(self) -> None:
        if self._count > 1:
            self._ends.append(torch.cuda.current_stream(self._device).record_event())


@cache
def _side_stream(device: torch.device, number: int) -> torch.cuda.Stream:
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return stream


def merge_block(num_heads: int, v_head_dim: int, most: int) -> tuple[int, int]:
    """Number of elements and of heads in a merging program of at most `most` outputs, if a head has no more; both are powers of two."""
    block_v = 1 << (v_head_dim - 1).bit_length()
    return block_v, min(max(1, most // block_v), 1 << (num_heads - 1).bit_length())


def merge_states(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """See `ops.merge_states`."""
    check_device(out_a.device)
    out, lse = torch.empty_like(out_a, memory_format=torch.contiguous_format), torch.empty_like(lse_a)
    num_states = lse_a.numel()
    block_v, block_h = merge_block(num_states, out_a.shape[-1], MERGE_ELEMENTS)
    merge_two[(-(-num_states // block_h),)](
        out_a.contiguous(),
        lse_a.contiguous(),
        out_b.contiguous(),
        lse_b.contiguous(),
        out,
        lse,
        num_states,
        V_HEAD_DIM=out_a.shape[-1],
        BLOCK_H=block_h,
        BLOCK_V=block_v,
        num_warps=4,
        enable_fp_fusion=True,
    )
    return out, lse
