"""Layers over float8 weights: exact weights, sums of float layers, and the same bits for any rows and threads."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional

from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.cpu import float8_linear as layers
from rtlang_kernels.cpu.float8_linear import Float8Linear, is_covered, low_bit_linear
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels.cpu.low_bit_linear import LowBitLinear, joined_linear
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 3e-3}
MACHINES = {"this": processor(), "plain": Processor("", "", 1)}


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def error(y: torch.Tensor, expected: torch.Tensor) -> float:
    return float((y.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_every_code_is_the_number_it_stands_for(dtype: torch.dtype, machine: str) -> None:
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    is_nan = codes.view(torch.float8_e4m3fn).float().isnan()
    weight = HeldWeight(
        FLOAT8["float8 of rows"], GroupedRows(torch.where(is_nan, 0, codes).expand(16, 256).contiguous())
    )
    layer = Float8Linear.pack([weight], None, False, dtype, machine=MACHINES[machine])
    found = layer(torch.eye(256).to(dtype))  # a row per code
    expected = torch.where(is_nan, 0, codes.view(torch.float8_e4m3fn).to(dtype))
    assert torch.equal(found, expected[:, None].expand(256, 16))


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_results_agree_with_float64_and_rows_and_threads_change_no_bit(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "WORTH_THREADS", 0)
    weight, x, before = random_weight(FLOAT8[name], 90, 256), noise(70, 256).to(dtype), torch.get_num_threads()
    layer = Float8Linear.pack([weight], None, False, dtype)
    y = layer(x)
    assert error(y, x.double() @ exact_weight(weight).T) < TOLERANCE[dtype]
    try:
        for num_rows, count in itertools.product(range(1, 71) if is_long() else (1, 70), (1, 2)):
            torch.set_num_threads(count)
            assert torch.equal(layer(x[:num_rows]), y[:num_rows])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(layer.rows(torch.arange(90)), exact_weight(weight).to(dtype))


def test_bias_residual_gate_and_inputs_that_fill_no_group() -> None:
    weight = random_weight(FLOAT8["float8 of rows"], 80, 50)
    bias, x, residual = noise(80), noise(3, 50, seed=1), noise(3, 80, seed=2)
    sums = x.double() @ exact_weight(weight).T + bias
    expected = sums + residual
    assert error(Float8Linear.pack([weight], bias, False, torch.float32)(x, residual), expected) < 1e-6
    gated = Float8Linear.pack([weight], bias, True, torch.float32)
    assert error(gated(x), functional.silu(sums[:, :40]) * sums[:, 40:]) < 1e-6
    with pytest.raises(ValueError, match=r"x = torch.bfloat16 \[3, 50\]: expected torch.float32"):
        gated(x.bfloat16())


def test_columns_in_another_order() -> None:
    held, order = random_weight(FLOAT8["float8 of 128"], 33, 128), torch.randperm(128)
    weight, x = HeldWeight(held.format, held.held, order), noise(3, 128)
    layer = Float8Linear.pack([weight], None, False, torch.float32)
    assert error(layer(x), x.double() @ exact_weight(weight).T) < 1e-6


@pytest.mark.parametrize("code", [127, 255])
def test_an_output_with_a_weight_that_is_no_number_is_none(code: int) -> None:
    weight = random_weight(FLOAT8["float8 of rows"], 40, 64)
    layer, x = Float8Linear.pack([weight], None, False, torch.float32), noise(3, 64)
    clean = layer(x)
    weight.held.codes[7, 60] = code
    found = Float8Linear.pack([weight], None, False, torch.float32)(x)
    assert found[:, 7].isnan().all()
    assert torch.equal(torch.cat([found[:, :7], found[:, 8:]], 1), torch.cat([clean[:, :7], clean[:, 8:]], 1))


def test_the_layer_of_a_format() -> None:
    small = WeightFormat(8, 16, ScaleType.FLOAT16, is_float8=True)
    assert not is_covered(small)
    weight, x = random_weight(small, 40, 64), noise(3, 64)
    layer = low_bit_linear([weight], None, False, torch.float32)
    assert isinstance(layer, PackedLinear)
    assert error(layer(x), x.double() @ exact_weight(weight).T) < 1e-6
    one = low_bit_linear([random_weight(FLOAT8["float8 of rows"], 40, 64)], None, False, torch.float32)
    assert isinstance(one, Float8Linear)
    assert one.part.packed.codes.nbytes == 64 * 64  # padded to 64 outputs
    other = low_bit_linear([random_weight(FORMATS["q4_0"], 40, 64)], None, False, torch.float32)
    assert type(other) is LowBitLinear
    assert joined_linear([other, one]) is None
    with pytest.raises(ValueError, match="expected one format"):
        low_bit_linear([random_weight(FORMATS[name], 40, 64) for name in ("q4_0", "q8_0")], None, False, torch.float32)
