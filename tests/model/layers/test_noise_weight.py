"""Noise in the form of weights of few bits: as large as that of floats, the same for the same seed, and in any rows."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.layers.noise_weight import NoisePool
from rtlang_kernels.contract.low_bit import HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.reference.low_bit import exact_weight

FORMATS = {
    "float8 of rows": WeightFormat(8, scales=ScaleType.NONE, is_float8=True),
    "float8 of 128": WeightFormat(8, 128, ScaleType.FLOAT32, is_float8=True),
    "int4 of 64": WeightFormat(4, 64, ScaleType.BFLOAT16, zero=8),
    "int4 of 128 with zero points": WeightFormat(4, 128, has_zero_points=True),
    "int8 of 32": WeightFormat(8, 32, ScaleType.BFLOAT16, zero=128),
}


def values(pool: NoisePool, name: str, first: int = 0, last: int = 40) -> torch.Tensor:
    weight = pool.weight(name, (40, 256))
    assert weight is not None
    return exact_weight(HeldWeight(weight.format, weight.rows(first, last)))


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_noise_is_that_of_its_seed_and_name(fmt: WeightFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pool that is smaller than the weight, too, whose parts then repeat."""
    for pool_size in (1 << 16, 1 << 12):
        monkeypatch.setattr("rtlang.model.layers.noise_weight._POOL", pool_size)
        pool, again, other = NoisePool(fmt, 3), NoisePool(fmt, 3), NoisePool(fmt, 4)
        whole = values(pool, "a")
        assert bool(whole.isfinite().all())
        assert float(whole.mean().abs()) < 0.004
        assert float(whole.std()) == pytest.approx(0.02, rel=0.15)
        assert torch.equal(values(again, "a"), whole)
        assert not torch.equal(values(other, "a"), whole)
        assert not torch.equal(values(pool, "b"), whole)
        assert torch.equal(torch.cat([values(pool, "a", 0, 7), values(pool, "a", 7, 40)]), whole)


def test_inputs_that_do_not_fit_have_no_noise() -> None:
    pool = NoisePool(FORMATS["int4 of 64"], 0)
    assert pool.weight("a", (8, 96)) is None
    assert pool.weight("a", (8, 128)) is not None
