"""Transfer of a step's small arrays to the device: with one buffer, one asynchronous copy from pinned memory and no synchronisation.

torch's allocator reuses a pinned buffer only after the copies out of it have finished, so the host need not wait before it writes the next
step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ALIGNMENT = 32  # int32 elements; arrays start at multiples of it, so kernels may assume aligned pointers


def copy_to_device(device: torch.device, arrays: Sequence[NDArray[Any]]) -> list[Tensor]:
    """Copy arrays of 4- or 8-byte types to `device` as tensors of the same types and shapes, views of one buffer.

    uint64 becomes int64 with the same bits.
    """
    plain = [np.ascontiguousarray(array) for array in arrays]
    words = [array.reshape(-1).view(np.int32) for array in plain]
    starts = _starts([len(part) for part in words])
    buffer = torch.empty(starts[-1], dtype=torch.int32, pin_memory=device.type == "cuda")
    flat = buffer.numpy()
    for part, start in zip(words, starts, strict=False):
        flat[start : start + len(part)] = part
    there = buffer.to(device, non_blocking=True)
    found = []
    for array, part, start in zip(plain, words, starts, strict=False):
        piece = there[start : start + len(part)]
        kind = _torch_type(array.dtype)
        if kind is not torch.int32:
            piece = piece.view(kind)
        found.append(piece if array.ndim == 1 else piece.view(array.shape))
    return found


class FixedBuffer:
    """Arrays at fixed addresses on the device, as a captured graph needs them, and their image on the host.

    The host writes into `host`, in place; `upload` copies the image. Owned by one thread.

    Attributes:
        host: by name, the array on the host.
        there: by name, the tensor on the device, a view of one buffer.
    """

    def __init__(self, device: torch.device, fields: Mapping[str, tuple[Any, tuple[int, ...]]]) -> None:
        """Lay out `fields` (type of 4 or 8 bytes, and shape) in order; all arrays start as zeros."""
        self._device = device
        sizes = [prod(shape) * np.dtype(kind).itemsize // 4 for kind, shape in fields.values()]
        starts = _starts(sizes)
        self._image = np.zeros(starts[-1], np.int32)
        self._buffer = torch.zeros(starts[-1], dtype=torch.int32, device=device)
        self._start_of_last = starts[-2]
        self.host: dict[str, NDArray[Any]] = {}
        self.there: dict[str, Tensor] = {}
        for (name, (kind, shape)), size, start in zip(fields.items(), sizes, starts, strict=False):
            self.host[name] = self._image[start : start + size].view(kind).reshape(shape)
            self.there[name] = self._buffer[start : start + size].view(_torch_type(np.dtype(kind))).view(shape)

    def upload(self, num_last: int) -> None:
        """Copy the image without waiting for the device; of the last field, only the first `num_last` 4-byte words."""
        end = self._start_of_last + num_last
        if self._device.type == "cuda":
            staged = torch.empty(end, dtype=torch.int32, pin_memory=True)
            staged.numpy()[:] = self._image[:end]
            self._buffer[:end].copy_(staged, non_blocking=True)
        else:
            self._buffer[:end].copy_(torch.from_numpy(self._image[:end]))


def _starts(sizes: Sequence[int]) -> list[int]:
    """Aligned start of each array of the given number of words, and the end."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-max(size, 1) // ALIGNMENT) * ALIGNMENT)
    return starts


@cache
def _torch_type(kind: np.dtype[Any]) -> torch.dtype:
    return torch.int64 if kind == np.uint64 else torch.from_numpy(np.empty(0, kind)).dtype
