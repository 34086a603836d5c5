"""Int8 weights with scales: the `int-quantized` layout of compressed-tensors checkpoints.

An int8 matrix `X.weight` [out, in] has scales `X.weight_scale` [out, 1], [out, in / group] or [1]; the weight is their product. Weights are
dequantized when they are read, so computation is the same as for a float checkpoint. If the checkpoint quantizes the inputs of linear
layers as well (int8 with a scale per token), the native decoder computes with the bytes on a CPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

SCALE_SUFFIX = "_scale"  # of a weight's name
ADVICE = " (int8 only if config.json has a quantization_config)"
_LARGEST = 127
_BESIDE_A_WEIGHT = re.compile(r"\.weight_[a-z_]+$")


def is_beside_a_weight(name: str) -> bool:
    """Whether a tensor modifies a weight, as scales and zero points do; ignoring it would give wrong weights."""
    return _BESIDE_A_WEIGHT.search(name) is not None


def quantization_obstacle(config: object) -> str | None:
    """The reason why weights with this `quantization_config` are not supported, or None.

    Supported are symmetric int8 weights with scales per row, per group of columns or per tensor, inputs that are floats or symmetric int8
    with a scale per token, and nothing else quantized.
    """
    if not isinstance(config, Mapping):
        return f"quantization_config = {str(config)[:80]!r}: expected an object"
    method, layout = config.get("quant_method"), config.get("format")
    if method != "compressed-tensors" or layout != "int-quantized":
        named = method if method != "compressed-tensors" else f"{method}, {layout}"
        return (
            f"the weights are quantized ({named}); supported are floats and the int-quantized int8 layout of compressed-tensors: "
            "choose a bfloat16 version of the model, or convert it to bfloat16 as docs/model-families.md shows"
        )
    if config.get("kv_cache_scheme"):
        return "kv_cache_scheme: quantized KV caches of checkpoints are not supported; set kv_dtype instead"
    transforms, sparsity = config.get("transform_config"), config.get("sparsity_config")
    if transforms and not (isinstance(transforms, Mapping) and not transforms.get("config_groups")):
        return "transform_config: rotations of activations are not supported"
    if sparsity and not (isinstance(sparsity, Mapping) and sparsity.get("format") == "dense"):
        return "sparsity_config: sparse weights are not supported; only dense weights are"
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return "quantization_config has no config_groups"
    for name, group in groups.items():
        group = group if isinstance(group, Mapping) else {}
        weights = group.get("weights")
        if not isinstance(weights, Mapping):
            return f"quantization_config.config_groups.{name} has no weights entry"
        is_plain = (weights.get("num_bits"), weights.get("type"), weights.get("symmetric")) == (8, "int", True)
        if not is_plain or weights.get("strategy") not in ("channel", "group", "tensor"):
            return f"config_groups.{name}: weights must be symmetric int8 with strategy channel, group or tensor"
        if weights.get("actorder") not in (None, False, "weight", "static"):
            return f"config_groups.{name}: actorder must be absent, weight or static"
        inputs = group.get("input_activations")
        if group.get("output_activations") or (inputs and not _is_per_token(inputs)):
            return (
                f"config_groups.{name}: quantized activations are not supported, except symmetric int8 inputs that are "
                "dynamic with strategy token"
            )
    return None


def quantizes_inputs(config: object) -> bool:
    """Whether a supported `quantization_config` asks for int8 inputs of all its linear layers."""
    groups = config.get("config_groups") if isinstance(config, Mapping) else None
    if not isinstance(groups, Mapping) or not groups:
        return False
    return all(isinstance(each, Mapping) and _is_per_token(each.get("input_activations")) for each in groups.values())


def _is_per_token(inputs: object) -> bool:
    """Whether inputs are symmetric int8 with a scale per token, found when they are computed."""
    if not isinstance(inputs, Mapping):
        return False
    kind = (inputs.get("num_bits"), inputs.get("type"), inputs.get("symmetric"), inputs.get("dynamic"))
    return kind == (8, "int", True, True) and inputs.get("strategy") == "token"


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


def dequantized(weight: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Dequantize int8 values [out, in] with their scales.

    Raises:
        ValueError: the shape of the scales matches neither rows, groups of columns, nor the whole matrix.
    """
    rows, columns = weight.shape
    if scale.numel() == 1:
        return (weight.to(scale.dtype) * scale.reshape(1, 1)).to(dtype)
    if scale.ndim != 2 or scale.shape[0] != rows or scale.shape[1] < 1 or columns % scale.shape[1]:
        raise ValueError(f"scales of shape {list(scale.shape)} do not match a weight of shape {[rows, columns]}")
    grouped = weight.to(scale.dtype).view(rows, scale.shape[1], -1) * scale[:, :, None]
    return grouped.view(rows, columns).to(dtype)


def float_tensor(
    reader: Any, name: str, dtype: torch.dtype, scale_reader: Any, *, keeps_floats: bool = False
) -> Tensor:
    """Read a tensor of a safetensors file as floats, dequantized if necessary.

    Args:
        reader: the open file that holds `name`.
        scale_reader: the open file that holds `name + SCALE_SUFFIX`; None if there is none or it should not be used.
        keeps_floats: leave float tensors in their stored dtype.

    Raises:
        ValueError: the dtype is unsupported, int8 lacks matching scales, or floats have scales.
    """
    try:
        tensor: Tensor = reader.get_tensor(name)
        scale = scale_reader.get_tensor(name + SCALE_SUFFIX) if scale_reader is not None else None
    except safetensors.SafetensorError as error:
        raise ValueError(f"cannot be read: {error}") from None
    if tensor.is_floating_point() and scale is None:
        return tensor if keeps_floats else tensor.to(dtype)
    if tensor.is_floating_point():
        raise ValueError(f"is {tensor.dtype} with scales; only int8 may have scales")
    if tensor.dtype is not torch.int8 or scale is None or tensor.ndim != 2:
        raise ValueError(f"is {tensor.dtype}; only floats and int8 with scales are supported{ADVICE}")
    if not scale.is_floating_point():
        raise ValueError(f"has scales of type {scale.dtype}; only float scales are supported")
    return dequantized(tensor, scale, dtype)


def int8_tensor(reader: Any, name: str, scale_reader: Any) -> tuple[Tensor, Tensor] | None:
    """Read an int8 matrix of a safetensors file as it is, with a float32 scale per row; None if it is stored in another way.

    Args:
        reader, scale_reader: see `float_tensor`.
    """
    if scale_reader is None or reader.get_slice(name).get_dtype() != "I8":
        return None
    weight, scale = reader.get_tensor(name), scale_reader.get_tensor(name + SCALE_SUFFIX)
    if weight.ndim != 2 or not scale.is_floating_point() or scale.shape not in ((len(weight), 1), (1,), (1, 1)):
        return None
    return weight, scale.float().reshape(-1).expand(len(weight)).contiguous()


def float_state(files: Iterable[Path], dtype: torch.dtype) -> dict[str, Tensor]:
    """Read all tensors of safetensors files as floats: quantized ones as `dtype`, others in their stored dtype; scales are left out.

    Raises:
        ValueError: a tensor cannot be read; names the tensor.
    """
    reader_of: dict[str, Any] = {}
    for path in files:
        reader: Any = safetensors.safe_open(str(path), framework="pt")
        reader_of.update(dict.fromkeys(reader.keys(), reader))
    result = {}
    for name, reader in reader_of.items():
        if name.endswith(SCALE_SUFFIX) and name.removesuffix(SCALE_SUFFIX) in reader_of:
            continue
        scale_reader = reader_of.get(name + SCALE_SUFFIX)
        try:  # any model may contain float32 tensors
            result[name] = float_tensor(reader, name, dtype, scale_reader, keeps_floats=True)
        except ValueError as error:
            raise ValueError(f"tensor {name} {error}") from None
    return result
