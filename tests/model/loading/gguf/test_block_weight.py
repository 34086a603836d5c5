"""Matrices over bytes of a file: which rows they have, and their values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from rtlang.model.loading.gguf.block_types import BLOCK_TYPES
from rtlang.model.loading.gguf.block_weight import BlockWeight
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.gguf_files import random_blocks

Q4_1 = next(each for each in BLOCK_TYPES.values() if each.name == "Q4_1")


def test_any_range_of_rows_is_read() -> None:
    found = random_blocks("Q4_1", (6, 64))
    expected = torch.from_numpy(found.values)
    weight = BlockWeight(Q4_1, found.data.reshape(-1), (6, 64))
    assert weight.shape == (6, 64)
    for first, last in ((0, 6), (2, 3), (3, 6)):
        assert torch.equal(exact_weight(weight, first, last).float(), expected[first:last])
    assert weight.rows(4, 4).codes.shape == (0, 64)
    assert torch.equal(weight.multiplied_out(), expected)


def test_an_order_may_leave_out_and_repeat_rows() -> None:
    found = random_blocks("Q4_1", (6, 64))
    weight = BlockWeight(Q4_1, found.data.reshape(-1), (6, 64), np.array([5, 0, 0]), torch.tensor([0.25, 2, 3]))
    assert weight.shape == (3, 64)
    expected = torch.from_numpy(found.values[[5, 0, 0]]).double() * torch.tensor([[0.25], [2], [3]])
    torch.testing.assert_close(exact_weight(weight), expected, rtol=2**-23, atol=0)
    assert torch.equal(exact_weight(weight, 1, 3), exact_weight(weight)[1:])


def test_threads_read_rows_at_once() -> None:
    found = random_blocks("Q4_1", (64, 256))
    weight = BlockWeight(Q4_1, found.data.reshape(-1), (64, 256))
    with ThreadPoolExecutor(4) as threads:
        parts = threads.map(lambda first: exact_weight(weight, first, first + 2), range(0, 64, 2))
        assert torch.equal(torch.cat(list(parts)).float(), torch.from_numpy(found.values))
