"""Finds the scheme of a quantized checkpoint, by the `quantization_config` of its config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rtlang.model.loading.quantized import awq, bitsandbytes, compressed_tensors, float8, gptq, modelopt, mxfp4
from rtlang.model.loading.quantized.matrix import Matrix
from rtlang.model.loading.stored_tensors import StoredTensors
from rtlang_kernels.contract.low_bit import INPUT_GROUP, ScaleType, WeightFormat

Config = Mapping[str, Any]


class Scheme(Protocol):
    """How the quantized matrices of a checkpoint are spelled in its files."""

    @property
    def bits(self) -> int:
        """The fewest bits of a code."""

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """The quantized matrices, by the names of a float checkpoint. Raises ValueError if one is spelled in another way."""

    def is_dropped(self, name: str) -> bool:
        """Whether a tensor is not a weight and may be ignored, such as the scale of calibrated inputs."""


@dataclass(frozen=True, slots=True)
class _Method:
    """The code for one `quant_method`.

    Attributes:
        obstacle: returns the reason why a config is not supported, or None.
        make: returns the scheme of a supported config.
    """

    obstacle: Callable[[Config], str | None]
    make: Callable[[Config], Scheme]


_METHODS = {
    "awq": _Method(awq.obstacle, awq.Awq),
    "bitsandbytes": _Method(bitsandbytes.obstacle, bitsandbytes.BitsAndBytes),
    "compressed-tensors": _Method(compressed_tensors.obstacle, compressed_tensors.CompressedTensors),
    "fbgemm_fp8": _Method(float8.obstacle, float8.Float8),
    "fp8": _Method(float8.obstacle, float8.Float8),
    "gptq": _Method(gptq.obstacle, gptq.Gptq),
    "modelopt": _Method(modelopt.obstacle, modelopt.ModelOpt),
    "mxfp4": _Method(mxfp4.obstacle, mxfp4.Mxfp4),
}
SUPPORTED = "the formats compressed-tensors, awq, gptq, fp8, fbgemm_fp8, modelopt, mxfp4 and bitsandbytes"
"""The formats that are read, for error messages."""


def quantization_obstacle(config: object) -> str | None:
    """The reason why weights with this `quantization_config` are not supported, or None; it names the formats that are."""
    if config is None:
        return None
    if not isinstance(config, Mapping):
        return f"quantization_config = {str(config)[:80]!r}: expected an object"
    method = method_of(config)
    if method not in _METHODS:
        return (
            f"the weights are quantized ({method}); supported are floats and {SUPPORTED}: choose such a version of "
            "the model, or one in bfloat16"
        )
    return _METHODS[method].obstacle(config)


def method_of(config: Config) -> str:
    """The method of a `quantization_config`; old configs of bitsandbytes do not name it."""
    if "quant_method" not in config and (config.get("load_in_4bit") or config.get("load_in_8bit")):
        return "bitsandbytes"
    return str(config.get("quant_method") or "unknown method").lower()[:80]


def scheme_of(config: object) -> Scheme | None:
    """The scheme of a supported `quantization_config`; None without one."""
    if not isinstance(config, Mapping):
        return None
    return _METHODS[method_of(config)].make(config)


def least_bits(config: object) -> int:
    """The fewest bits that a weight may take in a checkpoint with a supported `quantization_config`."""
    scheme = scheme_of(config)
    return 16 if scheme is None else scheme.bits


def noise_format(config: object) -> WeightFormat | None:
    """The format of most linear layers of a checkpoint with a supported `quantization_config`, for noise instead of weights.

    None without one, and for formats of which there is no noise.
    """
    if not isinstance(config, Mapping):
        return None
    method, group = method_of(config), config.get("group_size")
    if method in ("fp8", "fbgemm_fp8"):
        block = config.get("weight_block_size") or (1, -1)
        return _float8_noise(block[1])
    if method in ("gptq", "awq"):
        return None if group is None or group < 1 else _int_noise(config["bits"], group, has_zero_points=True)
    if method != "compressed-tensors":
        return None
    weights = next(iter(config["config_groups"].values()))["weights"]
    if weights["type"] == "float":
        block = weights.get("block_structure") or (1, -1)
        return _float8_noise(block[1]) if weights["num_bits"] == 8 else None
    is_grouped = weights["strategy"] == "group"
    return _int_noise(weights["num_bits"], weights["group_size"], has_zero_points=False) if is_grouped else None


def _float8_noise(group: int) -> WeightFormat | None:
    if group < 1:
        return WeightFormat(8, scales=ScaleType.NONE, is_float8=True)
    return None if group % INPUT_GROUP else WeightFormat(8, group, ScaleType.FLOAT32, is_float8=True)


def _int_noise(bits: int, group: int, *, has_zero_points: bool) -> WeightFormat | None:
    if group % INPUT_GROUP or bits not in (2, 3, 4, 5, 6, 8):
        return None
    if has_zero_points:
        return WeightFormat(bits, group, has_zero_points=True)
    return WeightFormat(bits, group, ScaleType.BFLOAT16, zero=1 << bits - 1)


def quantizes_inputs(config: object) -> bool:
    """Whether a supported `quantization_config` asks for int8 inputs of all its linear layers."""
    if not isinstance(config, Mapping) or method_of(config) != "compressed-tensors":
        return False
    return compressed_tensors.quantizes_inputs(config)
