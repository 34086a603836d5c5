"""The memory of the pages: K and V of every layer, token-major.

Slot `page_id * page_size + offset` of a layer holds one token's keys (or values) for all KV heads, so a run of pages is a plain strided
matrix per head. K and V share one tensor [num_layers, 2, num_pages, page_size, num_kv_heads, head_dim] if their head dimensions are
equal; otherwise each has its own. In a latent pool, values are the first v_head_dim elements of the keys and take no memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.cache import system_memory

_ALIGNMENT = 64  # bytes: one cache line, and the widest vector register


class KVPool:
    """K and V of `num_layers` layers on one device. Owned by the model runner; kernels write into its views.

    Memory is initialized to zeros: kernels may read lanes that they mask, and a NaN there would survive multiplication by zero.
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
        *,
        is_latent: bool = False,
    ) -> None:
        """Allocate the pages.

        Args:
            is_latent: values are the first `v_head_dim` elements of the keys.
        """
        self.num_layers, self.num_pages, self.page_size = num_layers, num_pages, page_size
        slots = (num_pages, page_size, num_kv_heads)
        if is_latent:
            self._k = lazy_zeros((num_layers, *slots, head_dim), dtype, torch.device(device))
            self._v = self._k[..., :v_head_dim]
            self._tensors = [self._k]
        elif head_dim == v_head_dim:
            both = lazy_zeros((num_layers, 2, *slots, head_dim), dtype, torch.device(device))
            self._tensors = [both.view(num_layers * 2, *slots, head_dim)]  # copied as one
            self._k, self._v = both[:, 0], both[:, 1]
        else:
            self._k = lazy_zeros((num_layers, *slots, head_dim), dtype, torch.device(device))
            self._v = lazy_zeros((num_layers, *slots, v_head_dim), dtype, torch.device(device))
            self._tensors = [self._k, self._v]

    @property
    def tensors(self) -> list[Tensor]:
        """The memory: [parts, num_pages, page_size, heads, elements] each, contiguous."""
        return list(self._tensors)

    @property
    def num_slots(self) -> int:
        """Number of tokens that a layer can hold."""
        return self.num_pages * self.page_size

    def k(self, layer: int) -> Tensor:
        """Keys of one layer: a view [num_slots, num_kv_heads, head_dim]."""
        return self._k[layer].flatten(0, 1)

    def v(self, layer: int) -> Tensor:
        """Values of one layer: a view [num_slots, num_kv_heads, v_head_dim]."""
        return self._v[layer].flatten(0, 1)

    def copy_pages(self, copies: Sequence[tuple[int, int]]) -> None:
        """Copy whole pages, given as (source, destination), in every layer.

        All sources are read before any destination is written, so a page may be the source of one copy and the destination of
        another. If several copies have the same destination, the last one wins.
        """
        if not copies:
            return
        source_of = {target: source for source, target in copies}
        target_ids, source_ids = self._ids(list(source_of)), self._ids(list(source_of.values()))
        for tensor in self._tensors:
            lines = tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor
            lines.index_copy_(1, target_ids, lines.index_select(1, source_ids))

    def release(self, runs: Iterable[tuple[int, int]]) -> None:
        """Give the memory of unused pages back to the system, as (first page, number of pages). They read as zeros afterwards.

        Does nothing on a device, and where the system has no such call.
        """
        for lines in self._lines if self._k.device.type == "cpu" else ():
            step = lines.shape[1] * lines.shape[2]  # bytes of a layer
            for first, count in runs:
                for layer in range(lines.shape[0]):
                    start = lines.ctypes.data + layer * step + first * lines.shape[2]
                    system_memory.release(start, count * lines.shape[2])

    @property
    def page_bytes(self) -> int:
        """Bytes of one page, summed over keys and values of all layers."""
        return sum(tensor.nbytes for tensor in self._tensors) // self.num_pages

    def read_page(self, page_id: int, out: NDArray[np.uint8]) -> None:
        """Copy a page of a pool on the host into `out`, uint8 [page_bytes]. Any thread; does not hold the interpreter's lock meanwhile."""
        start = 0
        for lines in self._lines:
            end = start + lines.shape[0] * lines.shape[2]
            np.copyto(out[start:end].reshape(lines.shape[0], lines.shape[2]), lines[:, page_id])
            start = end

    def write_page(self, page_id: int, content: NDArray[np.uint8]) -> None:
        """Copy what `read_page` gave into a page of a pool on the host. Any thread, as `read_page`."""
        start = 0
        for lines in self._lines:
            end = start + lines.shape[0] * lines.shape[2]
            np.copyto(lines[:, page_id], content[start:end].reshape(lines.shape[0], lines.shape[2]))
            start = end

    @cached_property
    def _lines(self) -> list[NDArray[np.uint8]]:
        """The memory as bytes: [layers, pages, bytes of a page in a layer] for each tensor."""
        return [tensor.view(tensor.shape[0], self.num_pages, -1).view(torch.uint8).numpy() for tensor in self._tensors]

    def _ids(self, ids: list[int]) -> Tensor:
        """Page ids as a tensor on the pool's device, copied from pinned memory so that the copy does not block."""
        there = torch.tensor(ids)
        device = self._k.device
        return there.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else there.to(device)

    @staticmethod
    def bytes_per_page(
        num_layers: int,
        page_size: int,
        num_kv_heads: int,
        head_dim: int,
        v_head_dim: int,
        dtype: torch.dtype,
        *,
        is_latent: bool = False,
    ) -> int:
        """Bytes of one page, summed over keys and values of all layers."""
        line = head_dim if is_latent else head_dim + v_head_dim
        return num_layers * page_size * num_kv_heads * line * dtype.itemsize


def lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of zeros. On a CPU, memory is committed only when first written; torch.zeros would take seconds for a large pool."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    num_bytes = math.prod(shape) * dtype.itemsize
    memory = np.zeros(num_bytes + _ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return torch.from_numpy(memory[start : start + num_bytes]).view(dtype).view(shape)
