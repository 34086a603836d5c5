"""Takes blocks of weights apart: codes, scales and offsets of their groups, without rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.model.loading.gguf import block_kernels as kernels
from rtlang.model.loading.gguf.block_types import BlockType
from rtlang_kernels.contract.low_bit import GroupedRows

Bytes: TypeAlias = NDArray[np.uint8]


def unpacked(kind: BlockType, blocks: Bytes) -> GroupedRows:
    """The rows of some blocks.

    Args:
        kind: the type of blocks.
        blocks: [rows, blocks of a row, bytes of a block], contiguous.
    """
    return _UNPACKERS[kind.name](_Blocks(blocks, kind.block))


class _Blocks:
    """Blocks of some rows, and the parts that most types have."""

    def __init__(self, blocks: Bytes, block: int) -> None:
        self._blocks, self._block = blocks, block
        self.num_rows, self._per_row, num_bytes = blocks.shape
        self.flat = blocks.reshape(self.num_rows * self._per_row, num_bytes)

    def empty(self, count: int, dtype: torch.dtype = torch.uint8) -> tuple[Tensor, NDArray[Any]]:
        """Room for `count` values of each block: a tensor [rows, all of a row], and the same memory as [blocks, count]."""
        found = torch.empty(self.num_rows, self._per_row * count, dtype=dtype)
        return found, found.numpy().reshape(len(self.flat), count)

    def codes(self, write: Callable[..., None], *start: int) -> Tensor:
        """uint8 [rows, in], as a kernel of `block_kernels` writes them."""
        found, room = self.empty(self._block)
        write(self.flat, *start, room)
        return found

    def part(self, first: int, last: int) -> Bytes:
        """Bytes `first` to `last` - 1 of each block: [rows, all of a row]."""
        found = np.ascontiguousarray(self._blocks[..., first:last])
        return found.reshape(self.num_rows, self._per_row * (last - first))

    def float16(self, start: int) -> Tensor:
        """float16 [rows, blocks of a row], from byte `start`."""
        field: Any = {"names": ["bits"], "formats": [np.uint16], "offsets": [start], "itemsize": self._blocks.shape[2]}
        found = np.ascontiguousarray(self._blocks.view(np.dtype(field))["bits"][..., 0])
        return torch.from_numpy(found).view(torch.float16)


def _q4_0(blocks: _Blocks) -> GroupedRows:
    return GroupedRows(blocks.codes(kernels.nibbles_of_16, 2), blocks.float16(0))


def _q4_1(blocks: _Blocks) -> GroupedRows:
    return GroupedRows(blocks.codes(kernels.nibbles_of_16, 4), blocks.float16(0), blocks.float16(2))


def _q5_0(blocks: _Blocks) -> GroupedRows:
    return GroupedRows(blocks.codes(kernels.five_bits, 2), blocks.float16(0))


def _q5_1(blocks: _Blocks) -> GroupedRows:
    return GroupedRows(blocks.codes(kernels.five_bits, 4), blocks.float16(0), blocks.float16(2))


def _q8_0(blocks: _Blocks) -> GroupedRows:
    return GroupedRows(blocks.codes(kernels.signed_bytes, 2), blocks.float16(0))


def _q2_k(blocks: _Blocks) -> GroupedRows:
    packed = torch.from_numpy(blocks.part(0, 16))
    return GroupedRows(
        blocks.codes(kernels.two_bits, 16),
        (packed & 15).view(torch.int8),
        packed >> 4,
        super_scales=blocks.float16(80),
        super_offsets=blocks.float16(82),
    )


def _q3_k(blocks: _Blocks) -> GroupedRows:
    scales, room = blocks.empty(16, torch.int8)
    kernels.scales_of_q3_k(blocks.flat, room)
    return GroupedRows(blocks.codes(kernels.codes_of_q3_k), scales, super_scales=blocks.float16(108))


def _q4_k(blocks: _Blocks) -> GroupedRows:
    return _with_offsets(blocks, blocks.codes(kernels.nibbles_of_32, 16))


def _q5_k(blocks: _Blocks) -> GroupedRows:
    return _with_offsets(blocks, blocks.codes(kernels.codes_of_q5_k))


def _with_offsets(blocks: _Blocks, codes: Tensor) -> GroupedRows:
    """Rows of Q4_K and Q5_K."""
    (scales, scale_room), (offsets, offset_room) = blocks.empty(8, torch.int8), blocks.empty(8)
    kernels.scales_of_q4_k(blocks.flat, scale_room, offset_room)
    supers = {"super_scales": blocks.float16(0), "super_offsets": blocks.float16(2)}
    return GroupedRows(codes, scales, offsets, **supers)


def _q6_k(blocks: _Blocks) -> GroupedRows:
    scales = torch.from_numpy(blocks.part(192, 208)).view(torch.int8)
    return GroupedRows(blocks.codes(kernels.codes_of_q6_k), scales, super_scales=blocks.float16(208))


def _iq4_xs(blocks: _Blocks) -> GroupedRows:
    scales, room = blocks.empty(8, torch.int8)
    kernels.scales_of_iq4_xs(blocks.flat, room)
    return GroupedRows(blocks.codes(kernels.nibbles_of_16, 8), scales, super_scales=blocks.float16(0))


def _mxfp4(blocks: _Blocks) -> GroupedRows:
    scales = torch.from_numpy(_E8M0[blocks.part(0, 1)]).view(torch.bfloat16)
    return GroupedRows(blocks.codes(kernels.nibbles_of_16, 1), scales)


def _nvfp4(blocks: _Blocks) -> GroupedRows:
    scales = torch.from_numpy(_UE4M3[blocks.part(0, 4)])
    return GroupedRows(blocks.codes(kernels.nibbles_of_8, 4), scales)


def _e8m0_halves() -> NDArray[np.uint16]:
    """[256]: half of 2 ** (i - 127), as the bits of a bfloat16: halves, since the table of codes is doubled."""
    exponents = np.arange(256)
    return np.where(exponents < 2, 32 << exponents % 2, (exponents - 1) << 7).astype(np.uint16)


def _ue4m3_halves() -> NDArray[np.float16]:
    """[256]: half of the values of unsigned float8 e4m3, as ggml reads them: the top bit is ignored, and 127 is 0."""
    exponents, mantissas = np.arange(256) >> 3 & 15, np.arange(256) & 7
    values = np.where(exponents == 0, mantissas * 2.0**-9, (1 + mantissas / 8) * 2.0 ** (exponents - 7))
    values[127] = 0
    return (values / 2).astype(np.float16)


_E8M0, _UE4M3 = _e8m0_halves(), _ue4m3_halves()
_UNPACKERS: dict[str, Callable[[_Blocks], GroupedRows]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "IQ4_NL": _q4_0,
    "IQ4_XS": _iq4_xs,
    "MXFP4": _mxfp4,
    "NVFP4": _nvfp4,
}
