"""Checkpoints of ModelOpt: float8 and NVFP4, also mixed.

A matrix X has `X.weight` and `X.weight_scale`: float8 with the factor of all weights, of rows or of blocks; or bytes of two float4 with
scales of 16 inputs (e4m3) and `X.weight_scale_2`, the factor of all. Excluded modules have float weights. Quantization of inputs and of
the KV cache is not part of the weights, and is not applied.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rtlang.model.loading.quantized.float4 import float4_codes
from rtlang.model.loading.quantized.float8 import float8_matrix
from rtlang.model.loading.quantized.matrix import CodedMatrix, Codes, Matrix, matrix_shape
from rtlang.model.loading.quantized.scale_layout import ScaleLayout, one_float
from rtlang.model.loading.stored_tensors import StoredTensors

logger = logging.getLogger(__name__)

_ALGORITHMS = ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "MIXED_PRECISION")
_BLOCK = (128, 128)  # of FP8_PB_WO
_FLOAT4_GROUP = 16  # inputs that share a scale
_DROPPED = (".input_scale", ".k_scale", ".v_scale", ".q_scale", ".k_proj.output_scale", ".v_proj.output_scale")


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None."""
    algorithm = _settings(config).get("quant_algo")
    if algorithm not in _ALGORITHMS:
        return f"the weights are quantized (modelopt, {algorithm}); supported algorithms of modelopt are {', '.join(_ALGORITHMS)}"
    return None


def _settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entries of hf_quant_config.json, which older files nest."""
    nested = config.get("quantization")
    return nested if isinstance(nested, Mapping) else config


class ModelOpt:
    """The scheme of a supported config; implements `Scheme`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        settings = _settings(config)
        self.bits = 4 if settings["quant_algo"] in ("NVFP4", "MIXED_PRECISION") else 8
        if settings.get("kv_cache_quant_algo") or settings.get("kv_cache_scheme"):
            logger.info("the checkpoint's quantization of the KV cache is not applied; kv_dtype sets its precision")

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        for scales in stored.names():
            name = scales.removesuffix("_scale")
            if not scales.endswith(".weight_scale") or name not in stored:
                continue
            try:
                if stored.dtype(name) == "U8":
                    found[name] = _float4(stored, name, scales)
                else:
                    found[name] = float8_matrix(stored, name, scales, (_BLOCK,))
            except ValueError as error:
                raise ValueError(f"{name} {error}") from None
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return name.endswith(_DROPPED)


def _float4(stored: StoredTensors, name: str, scales: str) -> Matrix:
    num_outputs, num_bytes = matrix_shape(stored.shape(name))
    shape, factor = (num_outputs, 2 * num_bytes), f"{scales}_2"
    if factor not in stored:
        raise ValueError(f"lacks {factor}")

    def read() -> Codes:
        if stored.dtype(scales) != "F8_E4M3":
            raise ValueError(f"has scales of type {stored.dtype(scales)}; expected F8_E4M3")
        whole = one_float(stored, factor)
        layout = ScaleLayout.of(shape, stored.shape(scales), (_FLOAT4_GROUP,), ())
        if layout.sizes != (num_outputs, -(-shape[1] // _FLOAT4_GROUP)):
            raise ValueError(
                f"of shape {list(shape)} has scales of shape {list(stored.shape(scales))}; expected one for each "
                f"{_FLOAT4_GROUP} inputs"
            )
        words, small = stored.tensor(name), stored.tensor(scales)
        return float4_codes(shape, words, small, layout, row_scales=lambda first, last: whole.expand(last - first))

    return CodedMatrix(stored, (name, scales, factor), shape, read)
