"""Unpacks codes of 1 to 8 bits from words, the first code in the lowest bits."""

from __future__ import annotations

import torch
from torch import Tensor

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
    if bits == 4:
        return torch.stack((rows & 15, rows >> 4), 2).view(num_rows, rows.shape[1] * 8 // bits)[:, :count]
    missing = -rows.shape[1] % bits
    if missing:
        rows = torch.nn.functional.pad(rows, (0, missing))
    units = rows.view(num_rows, rows.shape[1] // bits, bits)  # 8 codes each
    codes = torch.empty(*units.shape[:2], 8, dtype=torch.uint8)
    for place in range(8):
        byte, shift = divmod(place * bits, 8)
        code = units[:, :, byte] >> shift
        if shift + bits > 8:
            code |= units[:, :, byte + 1] << (8 - shift)
        codes[:, :, place] = code & ((1 << bits) - 1)
    return codes.view(num_rows, rows.shape[1] * 8 // bits)[:, :count]


def power_of_two(exponents: Tensor, shift: int = 0) -> Tensor:
    """2 ** (e - 127 + shift) of uint8 exponents as bfloat16, exactly; `shift` is at most 0 and at least -6."""
    return torch.ldexp(torch.ones((), dtype=torch.float64), exponents.double() - 127 + shift).bfloat16()
