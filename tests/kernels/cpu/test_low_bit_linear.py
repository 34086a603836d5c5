"""Layers over weights of few bits: the bits of the definition, on every kind of processor, for any rows and threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.nn import functional

from rtlang_kernels.contract.low_bit import HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.cpu import low_bit_linear as layers
from rtlang_kernels.cpu.linear import ROW_COUNTS
from rtlang_kernels.cpu.low_bit_linear import JoinedLowBitLinear, LowBitLinear, joined_linear
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.kernels.low_bit_oracle import low_bit_sums
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FORMATS, random_weight

HAS_X86 = processor().has_avx2 and processor().has_fma
MACHINES = {"plain": Processor("", "", 1)}
if HAS_X86:
    MACHINES["avx2"] = Processor("", "", 1, has_avx2=True, has_fma=True)
if processor().has_int8_dot or processor().has_avx_vnni:
    MACHINES["vnni of 256 bits"] = Processor("", "", 1, has_avx_vnni=True, has_avx2=True, has_fma=True)
if processor().has_int8_dot:
    MACHINES["vnni"] = processor()
ROWS = (1, 3, 8, 70)
NORMAL, OUTLIERS = 0.0075, 0.014  # errors of inputs in bytes, relative to float64
DTYPES = torch.float32, torch.bfloat16


def cases() -> list[tuple[str, str, int]]:
    """Formats, processors and numbers of rows: all, or each format once, with every pair of the others. A case compiles a kernel."""
    if is_long():
        return list(itertools.product(FORMATS, MACHINES, sorted({*ROW_COUNTS, 70})))
    machines = list(MACHINES)
    return [(name, machines[i % len(machines)], ROWS[(i + i // 4) % len(ROWS)]) for i, name in enumerate(FORMATS)]


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def with_outliers(x: torch.Tensor) -> torch.Tensor:
    """One of a hundred inputs is fifty times as large."""
    return torch.where(torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.01, 50 * x, x)


def defined(weight: HeldWeight, x: torch.Tensor) -> torch.Tensor:
    """Results by the definition, in the dtype of x."""
    return torch.from_numpy(low_bit_sums(weight.format, weight.held, x.float().numpy())).to(x.dtype)


def error(y: torch.Tensor, weight: HeldWeight, x: torch.Tensor) -> float:
    exact = x.double() @ exact_weight(weight).T
    return float((y.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize(("name", "machine", "num_rows"), cases())
def test_every_bit_is_that_of_the_definition(name: str, machine: str, num_rows: int) -> None:
    weight = random_weight(FORMATS[name], 50, 512)
    for dtype in DTYPES:
        layer = LowBitLinear.pack([weight], None, False, dtype, machine=MACHINES[machine])
        for change, most in ((lambda x: x, NORMAL), (with_outliers, OUTLIERS)):
            x = change(noise(num_rows, 512)).to(dtype)
            y = layer(x)
            assert y.is_contiguous()
            assert torch.equal(y, defined(weight, x))
            if dtype == torch.float32 and num_rows >= 8:
                assert error(y, weight, x) < most


@pytest.mark.parametrize("name", ["q4_k", "int4 of 64 with zero points"])
def test_rows_and_threads_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "WORTH_THREADS", 0)
    weight, x = random_weight(FORMATS[name], 150, 256), noise(70, 256)
    layer = LowBitLinear.pack([weight], None, False, torch.float32)
    expected = defined(weight, x)
    for num_rows in range(1, 71) if is_long() else (1, 2, 70):
        for count in (1, 2, 64) if num_rows in (1, 70) else (1,):
            with threads(count):
                assert torch.equal(layer(x[:num_rows]), expected[:num_rows])
    assert torch.equal(layer(x[:140:2, :]), expected[::2])  # rows that are apart
    assert layer(x[:0]).shape == (0, 150)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["q4_0", "int8 of rows", "q4_k"])
def test_a_row_that_is_not_finite_is_no_number_in_all_outputs(name: str, bad: float) -> None:
    layer = LowBitLinear.pack([random_weight(FORMATS[name], 40, 256)], None, False, torch.float32)
    x = noise(8, 256)
    clean = layer(x)
    x[3, 200] = bad
    y = layer(x)
    assert y[3].isnan().all()
    assert torch.equal(y[[0, 1, 2, 4, 5, 6, 7]], clean[[0, 1, 2, 4, 5, 6, 7]])


def test_bias_residual_and_gate() -> None:
    parts, x = [random_weight(FORMATS["q4_0"], 40, 64, seed) for seed in range(2)], noise(3, 64)
    bias = noise(80, seed=1)
    sums = torch.cat([defined(part, x) for part in parts], 1) + bias
    plain = LowBitLinear.pack(parts, bias, False, torch.float32)
    assert torch.equal(plain(x), sums)
    residual = noise(3, 80, seed=2)
    expected = sums + residual
    assert plain(x, residual) is residual
    assert torch.equal(residual, expected)
    gated = LowBitLinear.pack(parts, bias, True, torch.float32)
    assert gated.out_features == 40
    assert torch.allclose(gated(x), functional.silu(sums[:, :40]) * sums[:, 40:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["q6_k", "iq4_nl", "int8 of rows"])
def test_rows_of_the_weight_are_rounded_once(name: str) -> None:
    weight = random_weight(FORMATS[name], 50, 256)
    index = torch.tensor([49, 0, 7, 7])
    exact = exact_weight(weight)[index]
    assert torch.equal(LowBitLinear.pack([weight], None, False, torch.float32).rows(index), exact.float())
    layer = LowBitLinear.pack([weight], None, False, torch.bfloat16)
    found = layer.rows(index)
    for step in (-1, 1):  # neither neighbor is nearer
        neighbor = (found.view(torch.int16) + step).view(torch.bfloat16)
        is_nearest = (found.double() - exact).abs() <= (neighbor.double() - exact).abs()
        assert (is_nearest | (found == 0)).all()
    assert torch.equal(found == 0, exact == 0)
    with pytest.raises(IndexError, match=r"indices\[1\] = 50"):
        layer.rows(torch.tensor([3, 50]))


def test_a_number_between_two_is_rounded_once() -> None:
    half = 1 + 2.0**-8  # what float32 takes the first three for
    exact = torch.tensor([half + 2.0**-40, half - 2.0**-40, -half - 2.0**-40, 0.0], dtype=torch.float64)
    assert layers.rounded(exact, torch.bfloat16).tolist() == [1 + 2.0**-7, 1.0, -(1 + 2.0**-7), 0.0]


def test_columns_in_another_order() -> None:
    order = torch.randperm(128, generator=torch.Generator().manual_seed(0))
    held = random_weight(FORMATS["q4_0"], 33, 128)
    layer, x = LowBitLinear.pack([HeldWeight(held.format, held.held, order)], None, False, torch.float32), noise(3, 128)
    assert torch.equal(layer(x), defined(held, x[:, order]))
    exact = exact_weight(HeldWeight(held.format, held.held, order))
    assert torch.equal(layer.rows(torch.tensor([32, 1])), exact[[32, 1]].float())


def test_numbers_of_inputs_that_fill_no_group() -> None:
    for num_inputs in (7, 33):
        weight, x = random_weight(FORMATS["int8 of rows"], 20, num_inputs), noise(3, num_inputs)
        assert torch.equal(LowBitLinear.pack([weight], None, False, torch.float32)(x), defined(weight, x))


def test_enormous_scales() -> None:
    weight = random_weight(WeightFormat(4, 32, ScaleType.BFLOAT16, zero=8), 20, 64)
    assert weight.held.scales is not None
    weight.held.scales[3] = 2.0**112
    layer, x = LowBitLinear.pack([weight], None, False, torch.float32), noise(1, 64)
    assert torch.equal(layer(x), defined(weight, x))
    assert layer(x).isfinite().all()


def test_a_joined_layer_has_the_bits_of_its_parts() -> None:
    parts = [
        LowBitLinear.pack([random_weight(FORMATS[name], size, 256)], noise(size), False, torch.bfloat16)
        for name, size in (("q6_k", 40), ("q4_0", 33), ("q4_k", 17))
    ]
    joined = joined_linear(parts)
    assert isinstance(joined, JoinedLowBitLinear)
    assert (joined.in_features, joined.out_features) == (256, 90)
    x = noise(3, 256).bfloat16()
    expected = torch.cat([part(x) for part in parts], 1)
    assert torch.equal(joined(x), expected)
    residual = noise(3, 90).bfloat16()
    wanted = torch.cat(
        [part(x, each.contiguous()) for part, each in zip(parts, residual.split((40, 33, 17), 1), strict=True)], 1
    )
    assert torch.equal(joined(x, residual), wanted)
    assert joined.rows(torch.empty(0, dtype=torch.int64)).shape == (0, 256)
    index = torch.tensor([89, 0, 45, 39])
    assert torch.equal(
        joined.rows(index), torch.cat([part.rows(torch.arange(part.out_features)) for part in parts])[index]
    )
    with pytest.raises(IndexError, match=r"indices\[1\] = 90"):
        joined.rows(torch.tensor([0, 90]))


def test_joined_parts_have_their_own_orders_of_inputs() -> None:
    orders = [torch.randperm(128, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1, 0)]
    held = [random_weight(FORMATS["q4_0"], 40, 128, seed) for seed in range(3)]
    weights = [HeldWeight(each.format, each.held, order) for each, order in zip(held, orders, strict=True)]
    parts = [LowBitLinear.pack([each], None, False, torch.float32) for each in (*weights, held[0])]
    x = noise(3, 128)
    assert torch.equal(JoinedLowBitLinear(parts)(x), torch.cat([part(x) for part in parts], 1))


def test_what_is_no_input_is_refused() -> None:
    layer = LowBitLinear.pack([random_weight(FORMATS["q4_0"], 40, 64)], None, False, torch.bfloat16)
    with pytest.raises(ValueError, match=r"x = torch.float32 \[2, 64\]: expected torch.bfloat16"):
        layer(noise(2, 64))
    with pytest.raises(ValueError, match=r"residual = torch.bfloat16 \[2, 39\]"):
        layer(noise(2, 64).bfloat16(), noise(2, 39).bfloat16())
