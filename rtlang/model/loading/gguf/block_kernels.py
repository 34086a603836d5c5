"""Loops over blocks that write their codes, a byte each, and the scales that are packed in bits.

`blocks` is uint8 [blocks, bytes of a block], outputs are uint8 [blocks, values of a block].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_kernels.host.numba_jit import kernel

Bytes: TypeAlias = NDArray[np.uint8]
Parts: TypeAlias = NDArray[np.integer[Any]]


def _nibbles(half: int) -> Callable[[Bytes, int, Bytes], None]:
    @kernel()
    def write(blocks: Bytes, start: int, codes: Parts) -> None:
        for b in range(blocks.shape[0]):
            for chunk in range(codes.shape[1] // (2 * half)):
                packed = blocks[b, start + chunk * half : start + chunk * half + half]
                low = codes[b, 2 * chunk * half : 2 * chunk * half + half]
                high = codes[b, 2 * chunk * half + half : 2 * chunk * half + 2 * half]
                for j in range(half):
                    low[j] = packed[j] & 15
                    high[j] = packed[j] >> 4

    return write


nibbles_of_8, nibbles_of_16, nibbles_of_32 = _nibbles(8), _nibbles(16), _nibbles(32)
"""Codes of 4 bits, from byte `start`: the low halves of 8, 16 or 32 bytes, then their high halves, and so on."""


@kernel()
def signed_bytes(blocks: Bytes, start: int, codes: Parts) -> None:
    """32 signed bytes from byte `start`, plus 128."""
    for b in range(blocks.shape[0]):
        block, out = blocks[b], codes[b]
        for j in range(32):
            out[j] = block[start + j] ^ 128


@kernel()
def five_bits(blocks: Bytes, start: int, codes: Parts) -> None:
    """32 codes of 5 bits: from byte `start`, 32 fifth bits, then 16 bytes as of `nibbles_of_16`."""
    for b in range(blocks.shape[0]):
        block, out = blocks[b], codes[b]
        fifth = np.uint32(0)
        for j in range(4):
            fifth |= np.uint32(block[start + j]) << np.uint32(8 * j)
        for j in range(16):
            packed = block[start + 4 + j]
            out[j] = packed & 15 | (fifth >> np.uint32(j) & 1) << 4
            out[16 + j] = packed >> 4 | (fifth >> np.uint32(16 + j) & 1) << 4


@kernel()
def two_bits(blocks: Bytes, start: int, codes: Parts) -> None:
    """256 codes of 2 bits, from byte `start`: bits 0 and 1 of 32 bytes, then bits 2 and 3, and so on; then those of the next 32."""
    for b in range(blocks.shape[0]):
        block, out = blocks[b], codes[b]
        for half in range(2):
            for j in range(32):
                packed = block[start + 32 * half + j]
                out[128 * half + j] = packed & 3
                out[128 * half + 32 + j] = packed >> 2 & 3
                out[128 * half + 64 + j] = packed >> 4 & 3
                out[128 * half + 96 + j] = packed >> 6


@kernel()
def codes_of_q3_k(blocks: Bytes, codes: Parts) -> None:
    """Codes of 3 bits: bit i of 32 bytes is the third of codes 32 i to 32 i + 31; then 2 bits as of `two_bits`."""
    for b in range(blocks.shape[0]):
        block, out = blocks[b], codes[b]
        for part in range(8):
            low = np.uint8(part % 4 * 2)
            for j in range(32):
                third = block[j] >> np.uint8(part) & 1
                out[32 * part + j] = block[32 + part // 4 * 32 + j] >> low & 3 | third << 2


@kernel()
def codes_of_q5_k(blocks: Bytes, codes: Parts) -> None:
    """Codes of 5 bits: bit i of 32 bytes is the fifth of codes 32 i to 32 i + 31; then 4 bits as of `nibbles_of_32`."""
    for b in range(blocks.shape[0]):
        block, out = blocks[b], codes[b]
        for chunk in range(4):
            for j in range(32):
                packed, fifth = block[48 + 32 * chunk + j], block[16 + j] >> np.uint8(2 * chunk)
                out[64 * chunk + j] = packed & 15 | (fifth & 1) << 4
                out[64 * chunk + 32 + j] = packed >> 4 | (fifth & 2) << 3


@kernel()
def codes_of_q6_k(blocks: Bytes, codes: Parts) -> None:
    """Codes of 6 bits: 4 low bits as of nibbles of 64, and 2 high bits as of `two_bits`."""
    for b in range(blocks.shape[0]):
        block, out = blocks[b], codes[b]
        for half in range(2):
            for j in range(32):
                first, second = block[64 * half + j], block[64 * half + 32 + j]
                top = block[128 + 32 * half + j]
                out[128 * half + j] = first & 15 | (top & 3) << 4
                out[128 * half + 32 + j] = second & 15 | (top & 12) << 2
                out[128 * half + 64 + j] = first >> 4 | top & 48
                out[128 * half + 96 + j] = second >> 4 | (top & 192) >> 2


@kernel()
def scales_of_q4_k(blocks: Bytes, scales: Parts, offsets: Parts) -> None:
    """8 scales and 8 offsets of 6 bits in bytes 4 to 15."""
    for b in range(blocks.shape[0]):
        packed = blocks[b, 4:16]
        for j in range(4):
            scales[b, j] = packed[j] & 63
            offsets[b, j] = packed[4 + j] & 63
            scales[b, 4 + j] = packed[8 + j] & 15 | packed[j] >> 6 << 4
            offsets[b, 4 + j] = packed[8 + j] >> 4 | packed[4 + j] >> 6 << 4


@kernel()
def scales_of_q3_k(blocks: Bytes, scales: NDArray[np.int8]) -> None:
    """16 scales of 6 bits, less 32, in bytes 96 to 107: 4 low bits as of nibbles of 8, and 2 high bits in the last 4 bytes."""
    for b in range(blocks.shape[0]):
        packed = blocks[b, 96:108]
        for j in range(16):
            low = packed[j % 8] >> np.uint8(j // 8 * 4) & 15
            top = packed[8 + j % 4] >> np.uint8(j // 4 * 2) & 3
            scales[b, j] = np.int8(low | top << 4) - 32


@kernel()
def scales_of_iq4_xs(blocks: Bytes, scales: NDArray[np.int8]) -> None:
    """8 scales of 6 bits, less 32: 2 high bits of each in bytes 2 and 3, 4 low bits in bytes 4 to 7."""
    for b in range(blocks.shape[0]):
        packed = blocks[b, 2:8]
        for j in range(8):
            low = packed[2 + j // 2] >> np.uint8(j % 2 * 4) & 15
            top = packed[j // 4] >> np.uint8(j % 4 * 2) & 3
            scales[b, j] = np.int8(low | top << 4) - 32
