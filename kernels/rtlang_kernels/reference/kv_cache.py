"""Reference KV writes and page copies. Contracts are in `ops.py`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rtlang_kernels.contract.kv_lines import LARGEST, SCALE_BYTES, scale_offset


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """See `ops.write_kv`."""
    # numpy: on a CPU, no operation of torch reads a value back, which would count as an obstacle to graphs
    is_all = (slot_mapping.numpy() >= 0).all() if slot_mapping.device.type == "cpu" else (slot_mapping >= 0).all()
    if not bool(is_all):
        is_written = slot_mapping >= 0
        k, v, slot_mapping = k[is_written], v[is_written], slot_mapping[is_written]
    for heads, pool in ((k, k_pool), (v, v_pool)):
        if pool.dtype != torch.int8:
            pool.index_copy_(0, slot_mapping, heads.to(pool.dtype))
            continue
        values, scales = quantized(heads)
        pool.index_copy_(0, slot_mapping, values)
        scales_of(pool).index_copy_(0, slot_mapping, scales)


def scales_of(pool: Tensor) -> Tensor:
    """The scales of a pool of int8 (`contract.kv_lines`): a bfloat16 view [num_slots, num_kv_heads]."""
    num_slots, num_heads, size = pool.shape
    start = pool.storage_offset() + scale_offset(size)
    lines = pool.as_strided((num_slots, num_heads, SCALE_BYTES), pool.stride(), start)
    return lines.view(torch.bfloat16)[..., 0]


def quantized(heads: Tensor) -> tuple[Tensor, Tensor]:
    """Heads [..., size] as int8 [..., size] and scales bfloat16 [...]; see `contract.kv_lines`."""
    heads = heads.float()
    largest = heads.abs().amax(dim=-1)
    bits = (largest / LARGEST).view(torch.int32) + 0xFFFF  # rounds up: the bits of positive numbers are in their order
    scales = (bits >> 16).to(torch.int16).view(torch.bfloat16)
    scales = torch.where(largest.isfinite(), scales, torch.nan)
    steps = scales.float()[..., None]
    values = torch.where(steps > 0, heads / steps, 0.0)
    return values.round().to(torch.int8), scales


def floats_of(pool: Tensor, slots: Tensor) -> Tensor:
    """The lines of these slots in float32, exactly: [num_slots, num_kv_heads, size]."""
    lines = pool[slots].float()
    return lines * scales_of(pool)[slots].float()[..., None] if pool.dtype == torch.int8 else lines


def copy_pages(
    pools: Sequence[Tensor], src_page_ids: Sequence[int], dst_page_ids: Sequence[int], page_size: int
) -> None:
    """See `ops.copy_pages`."""
    src = torch.tensor(list(src_page_ids), dtype=torch.int64)
    dst = torch.tensor(list(dst_page_ids), dtype=torch.int64)
    for pool in pools:
        pages = pool.view(-1, page_size, *pool.shape[1:])
        pages[dst.to(pool.device)] = pages[src.to(pool.device)]
