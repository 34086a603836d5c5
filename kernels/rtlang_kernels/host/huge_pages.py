"""Memory in huge pages of the operating system, for weights: 2 MiB each instead of 4 KiB.

A step reads all weights once, so nearly every small page costs a look-up of its address that no cache holds; in a virtual machine each
takes two walks of page tables. Linux gives private memory huge pages on request. Elsewhere, and where it refuses, pages are small.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Sequence
from threading import Lock

import torch
from torch import Tensor

PAGE_BYTES = 2 << 20
_CHUNK_BYTES = 64 << 20  # of address space: memory is taken when it is written
_ALIGNMENT = 64  # a cache line


class _Chunks:
    """Cuts tensors from mappings. Tensors refer to their mapping, so it goes with the last of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._memory, self._next, self._end = torch.empty(0, dtype=torch.uint8), 0, 0

    def take(self, num_bytes: int) -> Tensor:
        """Zeroed bytes, uint8 [num_bytes]."""
        with self._lock:
            if self._next + num_bytes > self._end:
                self._memory = _mapped(max(num_bytes, _CHUNK_BYTES))
                self._next, self._end = -self._memory.data_ptr() % PAGE_BYTES, len(self._memory)
            found = self._memory[self._next : self._next + num_bytes]
            self._next += -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
            return found


def _mapped(num_bytes: int) -> Tensor:
    """A mapping with room for `num_bytes` from a page border on."""
    mapping = mmap.mmap(-1, num_bytes + PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # the kernel was built without them
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(mapping, dtype=torch.uint8)


_CHUNKS = _Chunks() if hasattr(mmap, "MADV_HUGEPAGE") else None


def in_huge_pages(tensor: Tensor) -> Tensor:
    """Return a contiguous copy of `tensor` in huge pages, or itself where there are none."""
    if _CHUNKS is None or not tensor.numel():
        return tensor.contiguous()
    return zeros_in_huge_pages(tensor.shape, tensor.dtype).copy_(tensor)


def zeros_in_huge_pages(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Zeros of this shape in huge pages, or in ordinary memory where there are none; memory is taken when it is written."""
    if _CHUNKS is None or not math.prod(shape):
        return torch.zeros(tuple(shape), dtype=dtype)
    return _CHUNKS.take(math.prod(shape) * dtype.itemsize).view(dtype).view(tuple(shape))
