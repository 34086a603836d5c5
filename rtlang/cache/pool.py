"""The memory behind the page ids: K and V of every layer, token-major.

Slot `page_id * page_size + offset` of a layer holds one token's keys (or values) of all its KV heads, so a run of pages is a plain
strided matrix per head. K and V lie in one tensor [num_layers, 2, num_pages, page_size, num_kv_heads, head_dim] where their
head dimensions agree, and in two tensors otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

_ALIGNMENT = 64  # bytes: one cache line, and the widest vector register


class KVPool:
    """K and V of `num_layers` layers on one device. Owned by the model runner; kernels write into its views.

    Memory starts as zeros: a kernel may read lanes it masks, and a NaN left in memory would survive a multiplication by zero.
    """

    def __init__(
        self,
        num_layers: int,
        num_pages: int,
        page_size: int,
        num_kv_heads: int,
        head_dim: int,
        v_head_dim: int,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        self.num_layers, self.num_pages, self.page_size = num_layers, num_pages, page_size
        slots = (num_pages, page_size, num_kv_heads)
        if head_dim == v_head_dim:
            both = _zeros((num_layers, 2, *slots, head_dim), dtype, torch.device(device))
            self._tensors = [both.view(num_layers * 2, *slots, head_dim)]  # copied as one
            self._k, self._v = both[:, 0], both[:, 1]
        else:
            self._k = _zeros((num_layers, *slots, head_dim), dtype, torch.device(device))
            self._v = _zeros((num_layers, *slots, v_head_dim), dtype, torch.device(device))
            self._tensors = [self._k, self._v]

    @property
    def num_slots(self) -> int:
        """Tokens that one layer can hold."""
        return self.num_pages * self.page_size

    def k(self, layer: int) -> Tensor:
        """Keys of one layer: a view [num_slots, num_kv_heads, head_dim]."""
        return self._k[layer].flatten(0, 1)

    def v(self, layer: int) -> Tensor:
        """Values of one layer: a view [num_slots, num_kv_heads, v_head_dim]."""
        return self._v[layer].flatten(0, 1)

    def copy_pages(self, copies: Sequence[tuple[int, int]]) -> None:
        """Copy whole pages (source, destination) of every layer, in place.

        All sources are read before any destination is written, so a page may be the source of one copy and the destination of
        another. Of several copies to one destination the last counts.
        """
        if not copies:
            return
        source_of = {target: source for source, target in copies}
        target_ids, source_ids = self._ids(list(source_of)), self._ids(list(source_of.values()))
        for tensor in self._tensors:
            lines = tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor
            lines.index_copy_(1, target_ids, lines.index_select(1, source_ids))

    def _ids(self, ids: list[int]) -> Tensor:
        """On the pool's device; from pinned memory, so that the copy does not block."""
        there = torch.tensor(ids)
        device = self._k.device
        return there.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else there.to(device)

    @staticmethod
    def bytes_per_page(
        num_layers: int, page_size: int, num_kv_heads: int, head_dim: int, v_head_dim: int, dtype: torch.dtype
    ) -> int:
        """Bytes that one page takes over all layers, keys and values together."""
        return num_layers * page_size * num_kv_heads * (head_dim + v_head_dim) * dtype.itemsize


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros that on a CPU take memory only as they are first written: torch.zeros would touch a large pool for seconds."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    num_bytes = math.prod(shape) * dtype.itemsize
    memory = np.zeros(num_bytes + _ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return torch.from_numpy(memory[start : start + num_bytes]).view(dtype).view(shape)
