"""Kernels compute the same without numba, in plain Python; their values are tested in test_unpacking.py."""

from __future__ import annotations

import numpy as np
import pytest

from rtlang.model.loading.gguf import block_kernels as kernels

CODES = {
    "nibbles_of_8": (36, 64, (4,)),
    "nibbles_of_16": (18, 32, (2,)),
    "nibbles_of_32": (144, 256, (16,)),
    "five_bits": (24, 32, (4,)),
    "two_bits": (84, 256, (16,)),
    "codes_of_q3_k": (110, 256, ()),
    "codes_of_q5_k": (176, 256, ()),
    "codes_of_q6_k": (210, 256, ()),
}


@pytest.mark.parametrize("name", CODES)
def test_codes_are_those_of_plain_python(name: str) -> None:
    block_bytes, block, start = CODES[name]
    blocks = np.random.default_rng(0).integers(0, 256, (3, block_bytes), dtype=np.uint8)
    found, expected = np.empty((2, 3, block), np.uint8)
    write = getattr(kernels, name)
    write(blocks, *start, found)
    getattr(write, "py_func", write)(blocks, *start, expected)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("name", "count"), [("scales_of_q3_k", 16), ("scales_of_iq4_xs", 8), ("scales_of_q4_k", 8)])
def test_scales_are_those_of_plain_python(name: str, count: int) -> None:
    blocks = np.random.default_rng(0).integers(0, 256, (3, 144), dtype=np.uint8)
    dtypes = [np.uint8, np.uint8] if name == "scales_of_q4_k" else [np.int8]
    found, expected = ([np.empty((3, count), dtype) for dtype in dtypes] for _ in range(2))
    write = getattr(kernels, name)
    write(blocks, *found)
    getattr(write, "py_func", write)(blocks, *expected)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)
