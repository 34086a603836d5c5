"""GPU KV writes and page copies. Contracts are in `ops.py`; the kernel is `layers_kernel.copy_lines`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.contract.kv_lines import has_adjacent_heads
from rtlang_kernels.host.transfer import copy_to_device
from rtlang_kernels.triton.layers.layers_kernel import copy_lines
from rtlang_kernels.triton.primitives.jit import check_device

LINE_BLOCK = 1024


def _copy(
    source: Tensor, target: Tensor, source_ids: Tensor | None, target_ids: Tensor | None, num_lines: int, size: int
) -> None:
    """Copy lines of `size` elements. Lines start at multiples of stride(0). Ids of None mean 0, 1, 2 and so on."""
    is_float8 = target.dtype == torch.float8_e4m3fn and source.dtype != target.dtype
    if target.dtype.itemsize == 1:
        target = target.view(torch.uint8)
        source = source if is_float8 else source.view(torch.uint8)
    any_ids = source_ids if source_ids is not None else target_ids
    copy_lines[(num_lines, -(-size // LINE_BLOCK))](
        source,
        target,
        any_ids if source_ids is None else source_ids,
        any_ids if target_ids is None else target_ids,
        size,
        source.stride(0),
        target.stride(0),
        HAS_SOURCE_IDS=source_ids is not None,
        HAS_TARGET_IDS=target_ids is not None,
        TO_FLOAT8=is_float8,
        BLOCK=LINE_BLOCK,
        num_warps=4,
        enable_fp_fusion=True,
    )


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """See `ops.write_kv`."""
    check_device(k_pool.device)
    num_tokens = len(slot_mapping)
    if num_tokens == 0:
        return
    for name, source, pool in (("k", k, k_pool), ("v", v, v_pool)):
        if not has_adjacent_heads(pool):
            raise ValueError(f"{name}_pool strides = {pool.stride()}: expected contiguous heads within a slot")
        lines = source if source.stride()[1:] == (source.shape[2], 1) else source.contiguous()
        _copy(lines, pool, None, slot_mapping, num_tokens, pool.shape[1] * pool.shape[2])


def copy_pages(
    pools: Sequence[Tensor], src_page_ids: Sequence[int], dst_page_ids: Sequence[int], page_size: int
) -> None:
    """See `ops.copy_pages`. If a page is both source and destination, all sources are first copied to a buffer."""
    device = pools[0].device
    check_device(device)
    num_pages = len(src_page_ids)
    ids = np.array([src_page_ids, dst_page_ids], dtype=np.int64)
    source_ids, target_ids = copy_to_device(device, (ids[0], ids[1]))
    is_chained = not set(src_page_ids).isdisjoint(dst_page_ids)
    for pool in pools:
        pages = pool.view(-1, page_size * pool[0].numel())  # a view, as pools are contiguous
        size = pages.shape[1]
        if is_chained:
            aside = torch.empty((num_pages, size), dtype=pool.dtype, device=device)
            _copy(pages, aside, source_ids, None, num_pages, size)
            _copy(aside, pages, None, target_ids, num_pages, size)
        else:
            _copy(pages, pages, source_ids, target_ids, num_pages, size)
