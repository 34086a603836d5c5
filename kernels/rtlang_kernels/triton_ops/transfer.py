"""Small arrays of a step to the device: all of them in one buffer, one asynchronous copy from pinned memory, no synchronisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ALIGNMENT = 32  # int32 elements between the beginnings of arrays: kernels may assume aligned pointers


def packed_to(device: torch.device, arrays: Sequence[NDArray[Any]]) -> list[Tensor]:
    """Arrays of 4- or 8-byte types as tensors of the same types and shapes on `device`, views of one buffer.

    uint64 becomes int64 with the same bits.
    """
    plain = [np.ascontiguousarray(array.view(np.int64) if array.dtype == np.uint64 else array) for array in arrays]
    words = [array.reshape(-1).view(np.int32) for array in plain]
    starts = np.cumsum([0] + [-(-max(len(part), 1) // ALIGNMENT) * ALIGNMENT for part in words]).tolist()
    buffer = torch.empty(starts[-1], dtype=torch.int32, pin_memory=device.type == "cuda")
    flat = buffer.numpy()
    for part, start in zip(words, starts, strict=False):
        flat[start : start + len(part)] = part
    there = buffer.to(device, non_blocking=True)
    found = []
    for array, part, start in zip(plain, words, starts, strict=False):
        kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
        piece = there[start : start + len(part)].view(kind)
        assert piece.numel() == prod(array.shape)
        found.append(piece.view(array.shape))
    return found
