"""Reference KV writes and page copies. Contracts are in `ops.py`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """See `ops.write_kv`."""
    k_pool.index_copy_(0, slot_mapping, k.to(k_pool.dtype))
    v_pool.index_copy_(0, slot_mapping, v.to(v_pool.dtype))


def copy_pages(
    pools: Sequence[Tensor], src_page_ids: Sequence[int], dst_page_ids: Sequence[int], page_size: int
) -> None:
    """See `ops.copy_pages`."""
    src = torch.tensor(list(src_page_ids), dtype=torch.int64)
    dst = torch.tensor(list(dst_page_ids), dtype=torch.int64)
    for pool in pools:
        pages = pool.view(-1, page_size, *pool.shape[1:])
        pages[dst.to(pool.device)] = pages[src.to(pool.device)]
