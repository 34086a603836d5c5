"""Takes blocks of weights apart: codes, scales and offsets of their groups, without rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.low_bit import GroupedRows

Bytes: TypeAlias = NDArray[np.integer[Any]]
"""uint8, which type checkers lose in shifts."""


def unpacked(kind: str, blocks: Bytes) -> GroupedRows:
    """The rows of some blocks.

    Args:
        kind: name of the `BlockType`.
        blocks: [rows, blocks of a row, bytes of a block].
    """
    return _UNPACKERS[kind](blocks)


def _q4_0(blocks: Bytes) -> GroupedRows:
    return GroupedRows(_nibbles(blocks[..., 2:], 16), _float16(blocks, 0))


def _q4_1(blocks: Bytes) -> GroupedRows:
    return GroupedRows(_nibbles(blocks[..., 4:], 16), _float16(blocks, 0), _float16(blocks, 2))


def _q5_0(blocks: Bytes) -> GroupedRows:
    codes = _nibbles(blocks[..., 6:], 16, _bits(blocks[..., 2:6]))
    return GroupedRows(codes, _float16(blocks, 0))


def _q5_1(blocks: Bytes) -> GroupedRows:
    codes = _nibbles(blocks[..., 8:], 16, _bits(blocks[..., 4:8]))
    return GroupedRows(codes, _float16(blocks, 0), _float16(blocks, 2))


def _q8_0(blocks: Bytes) -> GroupedRows:
    return GroupedRows(_rows(blocks[..., 2:] ^ np.uint8(128)), _float16(blocks, 0))


def _q2_k(blocks: Bytes) -> GroupedRows:
    scales = blocks[..., :16]
    return GroupedRows(
        _planes(blocks[..., 16:80]),
        _rows(scales & 15).view(torch.int8),
        _rows(scales >> 4),
        super_scales=_float16(blocks, 80),
        super_offsets=_float16(blocks, 82),
    )


def _q3_k(blocks: Bytes) -> GroupedRows:
    high = blocks[..., None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    codes = _planes(blocks[..., 32:96]) + (_rows(high) << 2)
    packed = blocks[..., 96:108]
    low = np.concatenate([packed[..., :8] & 15, packed[..., :8] >> 4], -1)
    top = packed[..., None, 8:] >> np.array([[0], [2], [4], [6]], np.uint8) & 3
    scales = _rows(low | _merged(top) << 4).view(torch.int8) - 32
    return GroupedRows(codes, scales, super_scales=_float16(blocks, 108))


def _q4_k(blocks: Bytes) -> GroupedRows:
    return GroupedRows(_nibbles(blocks[..., 16:], 32), **_scales_of_6_bits(blocks))


def _q5_k(blocks: Bytes) -> GroupedRows:
    high = blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return GroupedRows(_nibbles(blocks[..., 48:], 32, _merged(high)), **_scales_of_6_bits(blocks))


def _scales_of_6_bits(blocks: Bytes) -> dict[str, Tensor]:
    first, second, third = (blocks[..., start : start + 4] for start in (4, 8, 12))
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], -1)
    offsets = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], -1)
    return {
        "scales": _rows(scales).view(torch.int8),
        "offsets": _rows(offsets),
        "super_scales": _float16(blocks, 0),
        "super_offsets": _float16(blocks, 2),
    }


def _q6_k(blocks: Bytes) -> GroupedRows:
    low = blocks[..., :128].reshape(*blocks.shape[:2], 2, 1, 64) >> np.array([[0], [4]], np.uint8) & 15
    codes = _rows(low) | _planes(blocks[..., 128:192]) << 4
    return GroupedRows(codes, _rows(blocks[..., 192:208]).view(torch.int8), super_scales=_float16(blocks, 208))


def _iq4_xs(blocks: Bytes) -> GroupedRows:
    low = blocks[..., 4:8, None] >> np.array([0, 4], np.uint8) & 15
    high = blocks[..., 2:4, None] >> np.array([0, 2, 4, 6], np.uint8) & 3
    scales = _rows(_merged(low) | _merged(high) << 4).view(torch.int8) - 32
    return GroupedRows(_nibbles(blocks[..., 8:], 16), scales, super_scales=_float16(blocks, 0))


def _mxfp4(blocks: Bytes) -> GroupedRows:
    exponents = _rows(blocks[..., :1]).int()  # of 2, plus 127; half of the value, since the table is doubled
    bits = torch.where(exponents < 2, 32 << exponents, (exponents - 1).clamp(min=0) << 7)
    return GroupedRows(_nibbles(blocks[..., 1:], 16), bits.to(torch.int16).view(torch.bfloat16))


def _nvfp4(blocks: Bytes) -> GroupedRows:
    return GroupedRows(_nibbles(blocks[..., 4:], 8), _UE4M3[_rows(blocks[..., :4]).long()])


def _ue4m3_halves() -> Tensor:
    """float16 [256]: half of the values of unsigned float8 e4m3, as ggml reads them: the top bit is ignored, and 127 is 0."""
    numbers = torch.arange(256)
    exponents, mantissas = (numbers >> 3 & 15).float(), (numbers & 7).float()
    values = torch.where(exponents == 0, mantissas * 2**-9, (1 + mantissas / 8) * (exponents - 7).exp2())
    values[127] = 0
    return (values / 2).half()


_UE4M3 = _ue4m3_halves()


def _nibbles(packed: Bytes, half: int, fifth: Bytes | None = None) -> Tensor:
    """Codes [n, in] of 4 bits, or of 5 with `fifth` [n, blocks, codes]: low halves of `half` bytes, then their high halves."""
    chunks = packed.reshape(*packed.shape[:2], packed.shape[2] // half, 1, half)
    codes = _merged(chunks >> np.array([[0], [4]], np.uint8) & 15)
    return _rows(codes if fifth is None else codes | fifth << 4)


def _planes(packed: Bytes) -> Tensor:
    """Codes [n, in] of 2 bits: the lowest bits of 32 bytes, then the next higher ones."""
    return _rows(
        packed.reshape(*packed.shape[:2], packed.shape[2] // 32, 1, 32) >> np.array([[0], [2], [4], [6]], np.uint8) & 3
    )


def _bits(packed: Bytes) -> Bytes:
    return np.unpackbits(np.ascontiguousarray(packed), axis=-1, bitorder="little")


def _float16(blocks: Bytes, start: int) -> Tensor:
    return _rows(blocks[..., start : start + 2]).view(torch.float16)


def _merged(values: Bytes) -> Bytes:
    return values.reshape(*values.shape[:2], math.prod(values.shape[2:]))


def _rows(values: Bytes) -> Tensor:
    """A tensor [n, all of a row]."""
    num_rows, size = values.shape[0], math.prod(values.shape[1:])
    return torch.from_numpy(np.ascontiguousarray(values).reshape(num_rows, size))


_UNPACKERS: dict[str, Callable[[Bytes], GroupedRows]] = {
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
