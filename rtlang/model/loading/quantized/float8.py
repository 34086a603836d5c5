"""Checkpoints of float8 (e4m3): `fp8` of transformers and DeepSeek, and `fbgemm_fp8` of FBGEMM.

A matrix X has `X.weight` and the factor of all weights, of rows or of blocks, `X.weight_scale_inv` or `X.weight_scale`: floats, or
exponents (ue8m0). Modules that config.json excludes have float weights. Inputs are not quantized as the checkpoint may ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from rtlang.model.loading.quantized.matrix import CodedMatrix, Codes, Matrix, matrix_shape
from rtlang.model.loading.quantized.scale_layout import ScaleLayout, scale_fields
from rtlang.model.loading.stored_tensors import StoredTensors

_SCALES = (".weight_scale_inv", ".weight_scale")
_DROPPED = (".input_scale", ".input_scale_ub", ".activation_scale", ".k_scale", ".v_scale", ".q_scale")


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None."""
    block = config.get("weight_block_size")
    if block is not None and _block_size(block) is None:
        return f"quantization_config.weight_block_size = {block!r}: expected two positive integers"
    layout = config.get("fmt", "e4m3")
    if layout != "e4m3":
        return f"quantization_config.fmt = {layout!r}: expected e4m3"
    return None


class Float8:
    """The scheme of a supported config; implements `Scheme`."""

    bits = 8

    def __init__(self, config: Mapping[str, Any]) -> None:
        block = _block_size(config.get("weight_block_size"))
        self._blocks = () if block is None else (block,)

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        for name in stored.names():
            module, _, suffix = name.rpartition(".")
            if f".{suffix}" in _SCALES and f"{module}.weight" in stored:
                weight = f"{module}.weight"
                if weight in found:
                    raise ValueError(f"{weight} has two tensors of scales")
                try:
                    found[weight] = float8_matrix(stored, weight, name, self._blocks, has_blocks=bool(self._blocks))
                except ValueError as error:
                    raise ValueError(f"{weight} {error}") from None
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return name.endswith(_DROPPED)


def float8_matrix(
    stored: StoredTensors, name: str, scales: str, blocks: tuple[tuple[int, int], ...], *, has_blocks: bool = False
) -> Matrix:
    """A matrix of e4m3.

    Args:
        scales: the name of its scales.
        blocks: the numbers of outputs and inputs that may share a scale.
        has_blocks: whether only these may.
    Raises:
        ValueError: it is not float8.
    """
    if stored.dtype(name) != "F8_E4M3":
        raise ValueError(f"is {stored.dtype(name)} with scales; only F8_E4M3 may have scales")
    shape = matrix_shape(stored.shape(name))

    def read() -> Codes:
        codes = stored.tensor(name).view(torch.uint8)
        layout = ScaleLayout.of(shape, stored.shape(scales), (), blocks)
        implied = [(-(-shape[0] // rows), -(-shape[1] // columns)) for rows, columns in blocks]
        if has_blocks and layout.sizes not in implied:
            raise ValueError(
                f"of shape {list(shape)} has scales of shape {list(stored.shape(scales))}, but weight_block_size in config.json "
                f"implies {' or '.join(str(list(each)) for each in implied)}"
            )
        fields = scale_fields(stored, scales, layout)
        return Codes(shape, 8, lambda first, last: codes[first:last], is_float8=True, **fields)

    return CodedMatrix(stored, (name, scales), shape, read)


def _block_size(block: object) -> tuple[int, int] | None:
    """The numbers of outputs and inputs of a block."""
    if not isinstance(block, list) or len(block) != 2 or not all(type(each) is int and each > 0 for each in block):
        return None
    return block[0], block[1]
