"""Reads one quantized matrix that a test has written, for comparison with what its format means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from rtlang.model.loading.safetensors_weights import SafetensorsWeights
from rtlang_kernels.reference.low_bit import exact_weight


def written(folder: Path, tensors: dict[str, Tensor], config: Any) -> SafetensorsWeights:
    """The weights of a file of tensors with a quantization_config."""
    folder.mkdir(exist_ok=True)
    save_file(
        {name: each.clone(memory_format=torch.contiguous_format) for name, each in tensors.items()},
        folder / "model.safetensors",
    )
    return SafetensorsWeights(folder, [folder / "model.safetensors"], config)


def check_matrix(weights: SafetensorsWeights, name: str, expected: Tensor, *, is_low_bit: bool = True) -> None:
    """Check that a matrix has exactly these values.

    Args:
        expected: float64 [out, in].
        is_low_bit: whether layers get its codes; checked in any parts of its outputs as well.
    """
    assert weights.shape(name) == expected.shape
    assert torch.equal(weights.tensor(name, torch.float64), expected)
    assert torch.equal(weights.tensor(name, torch.float32), expected.float())
    weight = weights.low_bit(name)
    assert (weight is not None) == is_low_bit
    if weight is not None:
        assert weight.shape == expected.shape
        assert torch.equal(exact_weight(weight), expected)
        for first, last in ((0, 1), (1, 3), (expected.shape[0] - 1, expected.shape[0])):
            assert torch.equal(exact_weight(weight, first, last), expected[first:last])
