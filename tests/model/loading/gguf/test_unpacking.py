"""Codes, scales and offsets have the values that the `gguf` package computes: on random bytes, with difference 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang.model.loading.gguf.block_types import BLOCK_TYPES
from rtlang.model.loading.gguf.unpacking import unpacked
from rtlang_kernels.reference.low_bit import exact_rows
from tests.support.models.gguf_files import QUANTIZED, any_blocks

KINDS = {each.name: each for each in BLOCK_TYPES.values()}


@pytest.mark.parametrize("kind", QUANTIZED)
def test_values_are_those_of_gguf(kind: str) -> None:
    """The package multiplies exactly in float32, and rounds once where it adds an offset; so its result is the exact one, rounded once.

    Its largest MXFP4 are infinite in float32; ours are not.
    """
    found = any_blocks(kind, (64, 2048), seed=1)
    fmt = KINDS[kind].format
    assert fmt is not None
    rows = unpacked(KINDS[kind], found.data.reshape(64, -1, KINDS[kind].block_bytes))
    exact = exact_rows(fmt, rows)
    with np.errstate(all="ignore"):
        expected = torch.from_numpy(found.values)
    if not fmt.has_offsets:
        is_finite = expected.isfinite()
        assert torch.equal(exact[is_finite], expected[is_finite].double())
    torch.testing.assert_close(exact.float(), expected, rtol=0, atol=0, equal_nan=True)
    assert expected.isfinite().float().mean() > 0.8


@pytest.mark.parametrize("kind", QUANTIZED)
def test_parts_are_as_the_interface_says(kind: str) -> None:
    fmt = KINDS[kind].format
    assert fmt is not None
    rows = unpacked(KINDS[kind], any_blocks(kind, (3, 512)).data.reshape(3, -1, KINDS[kind].block_bytes))
    supers = fmt.scales.value == "super"
    expected = {
        "codes": (torch.uint8, 512),
        "scales": (torch.int8 if supers else getattr(torch, fmt.scales.value), 512 // fmt.group),
        "offsets": (torch.uint8 if supers else torch.float16, 512 // fmt.group) if fmt.has_offsets else None,
        "zero_points": None,
        "super_scales": (torch.float16, 2) if supers else None,
        "super_offsets": (torch.float16, 2) if supers and fmt.has_offsets else None,
        "row_scales": None,
    }
    for name, part in expected.items():
        value = getattr(rows, name)
        assert (value is None) == (part is None), name
        if part is not None:
            assert (value.dtype, tuple(value.shape)) == (part[0], (3, part[1])), name
            assert value.is_contiguous(), name
    assert int(rows.codes.max()) < 1 << fmt.bits
