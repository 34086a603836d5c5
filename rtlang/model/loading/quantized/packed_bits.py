"""Unpacks codes of 1 to 8 bits from words, the first code in the lowest bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.host.numba_jit import kernel

E2M1_TWICE = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""Twice the values of the 16 codes of float4 (e2m1)."""


def unpacked(packed: Tensor, bits: int, count: int) -> Tensor:
    """The codes of each row, one behind the other without gaps.

    Args:
        packed: integers of any width [n, words].
        count: codes of a row, at most those that the words hold.
    Returns:
        uint8 [n, count].
    """
    num_rows, num_words = packed.shape
    rows = packed.contiguous().reshape(-1).view(torch.uint8).view(num_rows, num_words * packed.itemsize)
    if bits == 8:
        return rows[:, :count]
    codes = torch.empty(num_rows, rows.shape[1] * 8 // bits, dtype=torch.uint8)
    if bits == 4:
        _unpack_nibbles(rows.numpy(), codes.numpy())
    else:
        _unpack_bits(rows.numpy(), bits, codes.numpy())
    return codes[:, :count]


@kernel()
def _unpack_nibbles(packed: Any, codes: Any) -> None:
    """Write two codes for each byte of uint8 [n, bytes] into uint8 [n, codes]."""
    for row in range(len(packed)):
        source, target = packed[row], codes[row]
        for place in range(len(source)):
            target[2 * place] = source[place] & 15
            target[2 * place + 1] = source[place] >> 4


@kernel()
def _unpack_bits(packed: Any, bits: Any, codes: Any) -> None:
    """Write the codes of `bits` bits, fewer than 8, in uint8 [n, bytes] into uint8 [n, codes]."""
    mask = np.uint32((1 << bits) - 1)
    num_bytes = packed.shape[1]
    for row in range(len(packed)):
        for place in range(codes.shape[1]):
            byte, shift = place * bits // 8, place * bits % 8
            word = np.uint32(packed[row, byte])
            if byte + 1 < num_bytes:
                word |= np.uint32(packed[row, byte + 1]) << np.uint32(8)
            codes[row, place] = (word >> np.uint32(shift)) & mask


def power_of_two(exponents: Tensor, shift: int = 0) -> Tensor:
    """2 ** (e - 127 + shift) of uint8 exponents as bfloat16, exactly; `shift` is at most 0 and at least -6."""
    return torch.ldexp(torch.ones((), dtype=torch.float64), exponents.double() - 127 + shift).bfloat16()
