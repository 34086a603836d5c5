"""Finds the scheme of a quantized checkpoint, by the `quantization_config` of its config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rtlang.model.loading.quantized import compressed_tensors
from rtlang.model.loading.quantized.matrix import Matrix
from rtlang.model.loading.stored_tensors import StoredTensors

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
    """Attributes:
    obstacle: the reason why a config is not supported, or None.
    make: the scheme of a supported config.
    """

    obstacle: Callable[[Config], str | None]
    make: Callable[[Config], Scheme]


_METHODS = {"compressed-tensors": _Method(compressed_tensors.obstacle, compressed_tensors.CompressedTensors)}
SUPPORTED = "the int-quantized int8 layout of compressed-tensors"
"""The formats that are read, for error messages."""


def quantization_obstacle(config: object) -> str | None:
    """The reason why weights with this `quantization_config` are not supported, or None; it names the formats that are."""
    if config is None:
        return None
    if not isinstance(config, Mapping):
        return f"quantization_config = {str(config)[:80]!r}: expected an object"
    method = config.get("quant_method")
    if method not in _METHODS:
        return (
            f"the weights are quantized ({method or 'unknown method'}); supported are floats and {SUPPORTED}: choose such a version of "
            "the model, or convert it to bfloat16 as docs/model-families.md shows"
        )
    return _METHODS[method].obstacle(config)


def scheme_of(config: object) -> Scheme | None:
    """The scheme of a supported `quantization_config`; None without one."""
    if not isinstance(config, Mapping):
        return None
    return _METHODS[config["quant_method"]].make(config)


def least_bits(config: object) -> int:
    """The fewest bits that a weight may take in a checkpoint with a supported `quantization_config`."""
    scheme = scheme_of(config)
    return 16 if scheme is None else scheme.bits


def quantizes_inputs(config: object) -> bool:
    """Whether a supported `quantization_config` asks for int8 inputs of all its linear layers."""
    if not isinstance(config, Mapping) or config.get("quant_method") != "compressed-tensors":
        return False
    return compressed_tensors.quantizes_inputs(config)
