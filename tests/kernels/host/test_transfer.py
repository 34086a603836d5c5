"""Arrays arrive with their types, shapes and values, aligned."""

from __future__ import annotations

import numpy as np
import torch

from rtlang_kernels.host.transfer import ALIGNMENT, copy_to_device
from tests.support.kernels.gpu import DEVICE


def test_arrays_arrive_unchanged() -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(-9, 9, (3, 5)).astype(np.int32),
        np.empty(0, np.int32),
        rng.integers(0, 1 << 60, 7),
        rng.random(33).astype(np.float32),
        np.array([1 << 63, 5], np.uint64),
        rng.random(3),
        np.arange(12, dtype=np.int32).reshape(3, 4).T,
    ]
    found = copy_to_device(DEVICE, arrays)
    for array, tensor in zip(arrays, found, strict=True):
        assert tensor.device.type == DEVICE.type
        assert tensor.data_ptr() % 16 == 0
        want = array.view(np.int64) if array.dtype == np.uint64 else array
        assert np.array_equal(tensor.cpu().numpy(), want)
        assert tensor.dtype == torch.from_numpy(np.ascontiguousarray(want)).dtype
    assert ALIGNMENT * 4 % 16 == 0
