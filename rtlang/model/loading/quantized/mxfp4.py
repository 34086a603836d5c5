"""Checkpoints of GPT-OSS: experts of float4 (e2m1) with exponents of 32 inputs (MXFP4).

A module of experts P has `P.gate_up_proj_blocks` (uint8 [experts, out, in / 32, 16], the even input in the low bits) and
`P.gate_up_proj_scales` (uint8 [experts, out, in / 32]), and so for `down_proj`. Expert e has the matrices `P.e.gate_up_proj.weight`
[2 * inner, hidden], whose outputs alternate between gate and up as in the file, and `P.e.down_proj.weight` [hidden, inner]. The biases
`P.gate_up_proj_bias` and `P.down_proj_bias` are tensors of all experts. Everything else is floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rtlang.model.loading.quantized.float4 import float4_codes
from rtlang.model.loading.quantized.matrix import CodedMatrix, Codes, Matrix
from rtlang.model.loading.quantized.scale_layout import ScaleLayout
from rtlang.model.loading.stored_tensors import StoredTensors

_BYTES = 16  # of a group
_MAX_EXPERTS = 1 << 14


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None; there is none."""
    return None


class Mxfp4:
    """The scheme of any config; implements `Scheme`."""

    bits = 4

    def __init__(self, config: Mapping[str, Any]) -> None:
        pass

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        for blocks in stored.names():
            if not blocks.endswith("_blocks"):
                continue
            stem = blocks.removesuffix("_blocks")
            scales, (parent, _, leaf) = f"{stem}_scales", stem.rpartition(".")
            if scales not in stored:
                raise ValueError(f"{stem} lacks {scales}")
            sizes, kinds = stored.shape(blocks), {stored.dtype(blocks), stored.dtype(scales)}
            if (
                len(sizes) != 4
                or min(sizes) < 1
                or sizes[0] > _MAX_EXPERTS
                or sizes[3] != _BYTES
                or stored.shape(scales) != sizes[:3]
                or kinds != {"U8"}
            ):
                raise ValueError(
                    f"{stem} has blocks of shape {list(sizes)} and scales of shape {list(stored.shape(scales))}; expected U8 of shape "
                    f"[experts, out, in / 32, {_BYTES}] without and with the last size, for up to {_MAX_EXPERTS} experts"
                )
            for expert in range(sizes[0]):
                found[f"{parent}.{expert}.{leaf}.weight"] = _Expert(stored, blocks, scales, expert)
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return False


class _Expert(CodedMatrix):
    """The matrix of one expert, a part of the tensors of all."""

    def __init__(self, stored: StoredTensors, blocks: str, scales: str, expert: int) -> None:
        self._num_experts, num_outputs, num_groups, _ = stored.shape(blocks)
        shape = num_outputs, num_groups * 2 * _BYTES
        super().__init__(stored, (blocks, scales), shape, partial(_codes, stored, blocks, scales, expert, shape))

    def num_bytes(self) -> int:
        """See `Matrix`."""
        return super().num_bytes() // self._num_experts


def _codes(stored: StoredTensors, blocks: str, scales: str, expert: int, shape: tuple[int, int]) -> Codes:
    words, exponents = stored.tensor(blocks)[expert].flatten(1), stored.tensor(scales)[expert]
    return float4_codes(shape, words, exponents, ScaleLayout.of(shape, tuple(exponents.shape), (2 * _BYTES,), ()))
