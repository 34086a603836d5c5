"""Conversions to and from bfloat16 in compiled code, and calls by address."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba.core import types

from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, narrow, source_digest, widen
from rtlang_kernels.host.numba_jit import kernel


def test_bfloat16_conversions_are_those_of_torch() -> None:
    @kernel(is_exact=True)
    def round_trip(source: Any, stored: Any, back: Any) -> None:
        for i in range(len(source)):
            stored[i] = narrow(source[i], stored[i])
            back[i] = widen(stored[i])

    bits = np.random.default_rng(0).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, 1.00390625], np.float32)
    source = np.concatenate((bits.view(np.float32), special))
    stored, back = np.empty(len(source), np.uint16), np.empty_like(source)
    round_trip(source, stored, back)
    want = torch.from_numpy(source).bfloat16()
    got = torch.from_numpy(stored.view(np.int16)).view(torch.bfloat16)
    assert torch.equal(torch.isnan(got), torch.isnan(want))
    assert torch.equal(got[~torch.isnan(want)], want[~torch.isnan(want)])
    assert np.array_equal(back, got.float().numpy(), equal_nan=True)


def test_the_digest_is_stable_and_not_negative() -> None:
    assert source_digest() == source_digest() >= 0


def test_a_kernel_calls_another_by_its_address() -> None:
    @kernel()
    def scale(values: Any, factor: Any, count: Any) -> None:
        for i in range(count):
            values[i] *= factor

    address = address_of(scale, (types.Array(types.float32, 1, "C"), types.float32, types.int64))
    assert address == address_of(scale, (types.Array(types.float32, 1, "C"), types.float32, types.int64))

    @kernel()
    def twice(values: Any, factor: Any, code: Any) -> None:
        invoke(code, (values, factor, 2))
        invoke(code, (values, factor, len(values)))

    values = np.ones(4, np.float32)
    twice(values, np.float32(3.0), address)
    assert values.tolist() == [9.0, 9.0, 3.0, 3.0]
