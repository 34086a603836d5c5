"""The conversions to and from bfloat16 in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rtlang_kernels.cpu.compiled import narrow, source_digest, widen
from rtlang_kernels.cpu.host_code import kernel


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
