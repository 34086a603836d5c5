"""Layers over weights of few bits with float inputs: the bits of layers of floats over the same weights, each rounded once."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.cpu import float_input_linear as layers
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED
from rtlang_kernels.cpu.float8_linear import Float8Linear
from rtlang_kernels.cpu.float_input_linear import FloatInputLinear, float_input_linear
from rtlang_kernels.cpu.linear import PackedLinear, tile_code
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.cpu.low_bit_linear import rounded
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

BFLOAT16, FLOAT32 = torch.bfloat16, torch.float32
TOLERANCE = {FLOAT32: 1e-6, BFLOAT16: 3e-3}
# Exact, with an error of a sum, with one of a product; super-scales, a table, zero points; groups of 16, 32 and 64.
USUAL = ("q8_0", "q4_k", "nvfp4", "int4 of 64 with zero points")
MACHINES = {
    "avx2": Processor("", "", 1, has_avx2=True, has_fma=True),
    "plain": Processor("", "", 1),
}


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def error(y: torch.Tensor, expected: torch.Tensor) -> float:
    return float((y.double() - expected).norm() / expected.norm())


def of_floats(
    weight: HeldWeight,
    dtype: torch.dtype,
    bias: torch.Tensor | None = None,
    is_gated: bool = False,
    machine: Processor | None = None,
) -> PackedLinear:
    return PackedLinear.pack(rounded(exact_weight(weight), dtype), bias, is_gated, machine=machine)


@pytest.mark.parametrize("name", FORMATS if is_long() else USUAL)
@pytest.mark.parametrize("dtype", list(TOLERANCE) if is_long() else [BFLOAT16], ids=str)
def test_results_have_the_bits_of_a_layer_of_floats_for_any_rows_and_threads(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "WORTH_THREADS", 0)
    monkeypatch.setattr(layers, "_CACHE_BYTES", 2 * 256 * 32 * dtype.itemsize)  # two blocks
    weight, x, before = random_weight(FORMATS[name], 170, 256), noise(70, 256).to(dtype), torch.get_num_threads()
    layer, expected = FloatInputLinear.pack([weight], None, False, dtype), of_floats(weight, dtype)
    y = expected(x)
    try:
        for num_rows, count in itertools.product(range(1, 71) if is_long() else (1, 7, 70), (1, 2)):
            torch.set_num_threads(count)
            assert torch.equal(layer(x[:num_rows]), y[:num_rows])
    finally:
        torch.set_num_threads(before)
    assert error(y, x.double() @ exact_weight(weight).T) < TOLERANCE[dtype]
    assert torch.equal(layer.rows(torch.arange(170)), expected.rows(torch.arange(170)))


@pytest.mark.parametrize(
    ("machine", "name", "dtype"), [("avx2", "q8_0", BFLOAT16), ("plain", "q4_1", FLOAT32)], ids=str
)
def test_other_processors(machine: str, name: str, dtype: torch.dtype) -> None:
    weight, x, which = random_weight(FORMATS[name], 40, 64), noise(3, 64).to(dtype), MACHINES[machine]
    if machine == "avx2" and not processor().has_avx2:
        pytest.skip("no AVX2")
    layer = FloatInputLinear.pack([weight], None, False, dtype, machine=which)
    assert torch.equal(layer(x), of_floats(weight, dtype, machine=which)(x))


@pytest.mark.parametrize("tiles", [EMULATED, AMX])
def test_matrix_tiles(tiles: int) -> None:
    if tiles == AMX and usable_tiles() != AMX:
        pytest.skip("no matrix tiles")
    weight, x = random_weight(FORMATS["q8_0"], 70, 96), noise(40, 96).bfloat16()
    layer, expected = FloatInputLinear.pack([weight], None, False, BFLOAT16), of_floats(weight, BFLOAT16)
    tiled = tile_code(expected.code, tiles)
    assert tiled is not None
    layer.product.code, expected = tiled, replace(expected, code=tiled)
    for num_rows in (1, 40):
        assert torch.equal(layer(x[:num_rows]), expected(x[:num_rows]))


@pytest.mark.parametrize("is_gated", [False, True])
def test_bias_residual_gate_order_and_inputs_that_fill_no_group(is_gated: bool) -> None:
    held, order = random_weight(FORMATS["int8 of rows"], 80, 50), torch.randperm(50)
    weight, bias, x = HeldWeight(held.format, held.held, order), noise(80), noise(3, 50, seed=1).bfloat16()
    residual = None if is_gated else noise(3, 80, seed=2).bfloat16()
    layer = FloatInputLinear.pack([weight], bias, is_gated, BFLOAT16)
    # In the order of the codes, since sums are chains.
    expected = of_floats(held, BFLOAT16, bias, is_gated)(x[:, order], None if residual is None else residual.clone())
    found = layer(x, residual)
    assert torch.equal(found, expected)
    assert residual is None or found is residual
    if not is_gated:
        assert torch.equal(layer.rows(torch.arange(80)), of_floats(weight, BFLOAT16).rows(torch.arange(80)))
    with pytest.raises(ValueError, match=r"x = torch.float32 \[3, 50\]: expected torch.bfloat16"):
        layer(x.float())


def test_an_input_that_is_no_number_spoils_its_row_only() -> None:
    layer, x = FloatInputLinear.pack([random_weight(FORMATS["q8_0"], 170, 256)], None, False, BFLOAT16), noise(7, 256)
    clean = layer(x.bfloat16())
    x[3, 5], x[5, 70] = torch.nan, torch.inf
    found = layer(x.bfloat16())
    assert found[3].isnan().all()
    assert not found[5].isfinite().any()
    others = [0, 1, 2, 4, 6]
    assert torch.equal(found[others], clean[others])


@pytest.mark.parametrize(
    "fmt",
    [
        WeightFormat(8, has_offsets=True),
        WeightFormat(8, scales=ScaleType.NONE, zero=128),
        WeightFormat(8, 32, ScaleType.FLOAT32, zero=128),
    ],
    ids=["error of a sum", "error of a product", "float64"],
)
def test_weights_that_are_almost_ties_are_rounded_once(fmt: WeightFormat) -> None:
    # Between two bfloat16, and a bit more or less than a float32 resolves.
    codes, sign = torch.full((64, 32), 1 + fmt.zero, dtype=torch.uint8), torch.tensor([1, -1]).repeat(32)
    tiny = torch.linspace(-1, 1, 64).sign() * 2.0**-24
    rows = GroupedRows(codes)
    middle = sign * (1 + (2 * torch.arange(64) + 1) * 2.0**-8)
    if fmt.has_offsets:
        rows.scales, rows.offsets = middle[:, None].half(), tiny[:, None].half()
    elif fmt.scales is ScaleType.NONE:
        rows.codes, rows.row_scales = codes + 2, (middle / 3).float()
    else:
        rows.scales, rows.row_scales = torch.full((64, 1), 1 + 2.0**-23), (middle - sign * 2.0**-23).float()
        rows.scales[::3] = 1 - 2.0**-24
    weight = HeldWeight(fmt, rows)
    exact = exact_weight(weight)
    assert not torch.equal(exact.float().bfloat16(), rounded(exact, BFLOAT16))  # twice is wrong
    found = FloatInputLinear.pack([weight], None, False, BFLOAT16)(torch.eye(32).bfloat16())
    assert torch.equal(found, rounded(exact, BFLOAT16).T)


def test_the_layer_of_a_format() -> None:
    layers_of = {"q8_0": FloatInputLinear, "float8 of rows": Float8Linear}
    for name, kind in layers_of.items():
        weight = random_weight((FORMATS | FLOAT8)[name], 40, 64)
        assert type(float_input_linear([weight], None, False, BFLOAT16)) is kind
