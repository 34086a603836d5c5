"""Codes are taken out of words as one number of all bits has them."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.loading.quantized.packed_bits import power_of_two, unpacked


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_codes_follow_one_another_from_the_lowest_bit(bits: int, dtype: torch.dtype) -> None:
    torch.manual_seed(bits)
    num_words = 5 if dtype is torch.int32 else 11
    data = torch.randint(0, 256, (7, num_words * dtype.itemsize), dtype=torch.uint8)
    packed = data.view(dtype)
    whole = [int.from_bytes(bytes(row.tolist()), "little") for row in data]
    for count in (1, 8, 9, num_words * dtype.itemsize * 8 // bits):
        expected = [[number >> place * bits & (1 << bits) - 1 for place in range(count)] for number in whole]
        assert unpacked(packed, bits, count).tolist() == expected
    assert unpacked(packed[:, :1].t().contiguous().t(), bits, 1).shape == (7, 1)
    assert unpacked(packed[:0], bits, 8).shape == (0, 8)


@pytest.mark.parametrize("shift", [0, -1])
def test_all_exponents_are_exact(shift: int) -> None:
    found = power_of_two(torch.arange(256, dtype=torch.uint8), shift).double()
    expected = [2.0 ** (each - 127 + shift) for each in range(256)]
    expected[255] = expected[255] if shift else float("inf")
    assert found.tolist() == expected
