"""Writes int8 matrices with a scale per row: the `int-quantized` layout of compressed-tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

SCALE_SUFFIX = "_scale"  # of a weight's name
_LARGEST = 127


def int8_config(*, quantizes_inputs: bool = False) -> dict[str, Any]:
    """The `quantization_config` for linear layers written by `quantized`; with int8 inputs as well if `quantizes_inputs`."""
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False}
    inputs = {**weights, "strategy": "token", "dynamic": True} if quantizes_inputs else None
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "output_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
    }


def quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize a matrix [out, in] to int8 with float32 scales [out, 1]; the error is at most half a scale."""
    scale = weight.float().abs().amax(1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny) / _LARGEST
    return (weight.float() / scale).round().to(torch.int8), scale
