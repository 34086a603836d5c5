"""Layers over weights of few bits against float64 on what the weights are, and the independence of a row's bits from everything else.

In the interpreter, or natively with RTLANG_TEST_DEVICE=cuda.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.gpu import sync_check
from rtlang.model.layers.linear import Linear
from rtlang_kernels.contract.low_bit import WeightFormat
from rtlang_kernels.planning.tile_sizes import GFX942, SM_80, SM_90
from rtlang_kernels.reference.low_bit import exact_weight
from rtlang_kernels.triton.linear import low_bit_linear
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear, fixed_linear, product_parts, product_tile
from tests.support.kernels.attention_cases import relative_error
from tests.support.kernels.gpu import DEVICE
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

ALL = FORMATS | FLOAT8
ERROR = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 3e-3}
DTYPES = [torch.bfloat16, torch.float32]


def inputs(dtype: torch.dtype, *shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(DEVICE)


def made(name: str, num_outputs: int, num_inputs: int, dtype: torch.dtype = torch.float32) -> GpuLowBitLinear:
    return GpuLowBitLinear([random_weight(ALL[name], num_outputs, num_inputs)], None, False, dtype)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight.T in float64."""
    return x.cpu().double() @ weight.T


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the smallest layers are cut into parts."""
    monkeypatch.setattr(low_bit_linear, "PART_STEPS", 1)


@pytest.mark.parametrize("fmt", ALL.values(), ids=ALL)
def test_every_format_is_multiplied_and_looked_up(fmt: WeightFormat) -> None:
    weight = random_weight(fmt, 24, 256)
    exact = exact_weight(weight)
    for dtype in DTYPES:
        layer = GpuLowBitLinear([weight], None, False, dtype)
        x = inputs(dtype, 3, 256)
        assert relative_error(layer(x).cpu(), product(x, exact)) < ERROR[dtype]
        indices = torch.tensor([23, 0, 7, 7], device=DEVICE)
        rows = layer.rows(indices).cpu()
        assert rows.dtype == dtype
        wanted = exact[indices.cpu()]
        limit = wanted.abs() * torch.finfo(dtype).eps / 2 + wanted.abs().max() * 1e-6
        assert bool(((rows.double() - wanted).abs() <= limit).all())


@pytest.mark.parametrize(
    ("num_inputs", "dtype"),
    [(256, torch.bfloat16), (150, torch.float32), pytest.param(150, torch.float16, marks=pytest.mark.long)],
    ids=str,
)
@pytest.mark.usefixtures("few_programs")
def test_floats_are_multiplied_in_one_order(num_inputs: int, dtype: torch.dtype) -> None:
    """A row of any number of rows has the same bits; sizes need not fit tiles, and the last tile has other rows."""
    weights = [inputs(dtype, size, num_inputs, seed=size) for size in (70, 60)]
    whole = torch.cat(weights).cpu()
    layer, bias = fixed_linear(weights, None, False), inputs(dtype, 130, seed=1)
    gated = fixed_linear(weights, bias, True)
    x = inputs(dtype, 70, num_inputs)
    results, products = layer(x), gated(x)
    assert relative_error(results.cpu(), product(x, whole.double())) < ERROR[dtype]
    gate, up = (product(x, whole.double()) + bias.cpu().double()).chunk(2, 1)
    assert relative_error(products.cpu(), functional.silu(gate) * up) < 2 * ERROR[dtype]
    for num_rows in (1, 31, 64):
        assert torch.equal(layer(x[:num_rows]), results[:num_rows])
        assert torch.equal(gated(x[:num_rows]), products[:num_rows])
    assert torch.equal(layer(x[60:]), results[60:])
    assert torch.equal(layer.rows(torch.tensor([129, 0], device=DEVICE)).cpu(), whole[[129, 0]])


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16], ids=str)
@pytest.mark.parametrize(("name", "num_inputs"), [("q4_0", 96), ("q5_1", 160), ("int8 of rows", 50), ("nvfp4", 48)])
@pytest.mark.usefixtures("few_programs")
def test_sizes_need_not_fit_tiles(name: str, num_inputs: int, dtype: torch.dtype) -> None:
    weight = random_weight(ALL[name], 70, num_inputs)
    x = inputs(dtype, 5, 2 * num_inputs)[:, :num_inputs]  # rows are not next to each other
    layer = GpuLowBitLinear([weight], None, False, dtype)
    assert relative_error(layer(x).cpu(), product(x, exact_weight(weight))) < ERROR[dtype]
    assert layer(x[:0]).shape == (0, 70)


@pytest.mark.parametrize("num_rows", [3, 20])
@pytest.mark.parametrize("num_inputs", [128, 512], ids=["one part", "parts"])
@pytest.mark.usefixtures("few_programs")
def test_bias_gate_and_residual(num_rows: int, num_inputs: int) -> None:
    weights = [random_weight(ALL["q4_1"], 37, num_inputs, seed) for seed in range(2)]
    exact, bias = torch.cat([exact_weight(each) for each in weights]), torch.randn(74)
    x, residual = inputs(torch.float32, num_rows, num_inputs), inputs(torch.float32, num_rows, 74, seed=1)
    sums = product(x, exact) + bias.double()
    plain = GpuLowBitLinear(weights, bias, False, torch.float32)
    wanted = residual.cpu().double() + sums
    assert plain(x, residual) is residual
    assert relative_error(residual.cpu(), wanted) < ERROR[torch.float32]
    gated = GpuLowBitLinear(weights, bias, True, torch.float32)
    assert gated.out_features == 37
    wanted = functional.silu(sums[:, :37]) * sums[:, 37:]
    assert relative_error(gated(x).cpu(), wanted) < ERROR[torch.float32]
    wide = inputs(torch.float32, num_rows, 50, seed=2)
    before = wide.clone()
    gated(x, wide[:, 3:40])
    assert relative_error(wide[:, 3:40].cpu(), before[:, 3:40].cpu().double() + wanted) < ERROR[torch.float32]
    assert torch.equal(wide[:, 40:], before[:, 40:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["q4_k", "float8 of rows"] if not is_long() else [*ALL])
@pytest.mark.usefixtures("few_programs")
def test_a_row_has_the_same_bits_among_any_others(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows 1 to 70 go through every tile, with parts in programs of their own and in one."""
    layer = made(name, 24, 256, dtype)
    x = inputs(dtype, 70, 256)
    whole = layer(x)
    for count in (1, 16, 17, 65) if not is_long() else range(1, 70):
        assert torch.equal(layer(x[-count:]), whole[-count:])
    monkeypatch.setattr(low_bit_linear, "MAX_SPLIT_ROWS", 0)
    for count in (1, 70):
        assert torch.equal(layer(x[:count]), whole[:count])


@pytest.mark.usefixtures("few_programs")
def test_gated_rows_have_the_same_bits_too() -> None:
    weights = [random_weight(ALL["q6_k"], 40, 256, seed) for seed in range(2)]
    layer = GpuLowBitLinear(weights, torch.randn(80), True, torch.bfloat16)
    x = inputs(torch.bfloat16, 20, 256)
    whole = layer(x)
    for count in (1, 16):
        assert torch.equal(layer(x[:count]), whole[:count])


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_is_not_finite_stays_in_its_row() -> None:
    layer = made("q4_0", 24, 96)
    x = inputs(torch.float32, 4, 96)
    clean = layer(x)
    x[1, 95], x[2, 0] = torch.nan, torch.inf
    found = layer(x)
    assert torch.equal(found[[0, 3]], clean[[0, 3]])
    assert bool(found[1].isnan().all())
    assert not bool(found[2].isfinite().any())


def test_inputs_in_another_order() -> None:
    weight = random_weight(ALL["int4 of 128"], 24, 256)
    weight = replace(weight, input_order=torch.randperm(256, generator=torch.Generator().manual_seed(0)))
    layer, x = GpuLowBitLinear([weight], None, False, torch.float32), inputs(torch.float32, 3, 256)
    exact = exact_weight(weight)
    assert relative_error(layer(x).cpu(), product(x, exact)) < ERROR[torch.float32]
    assert torch.equal(layer.rows(torch.tensor([5, 2], device=DEVICE)).cpu(), exact[[5, 2]].float())


def test_wrong_arguments_are_named() -> None:
    layer = made("q4_0", 24, 96)
    with pytest.raises(ValueError, match=r"x = \[2, 64\]: expected 96 inputs"):
        layer(inputs(torch.float32, 2, 64))
    with pytest.raises(ValueError, match="residual strides"):
        layer(inputs(torch.float32, 2, 96), inputs(torch.float32, 24, 2).T)
    if DEVICE.type == "cpu":
        with pytest.raises(IndexError, match=r"indices\[1\] = 24: expected 0 to 23"):
            layer.rows(torch.tensor([0, 24]))


def test_a_graph_can_hold_a_call() -> None:
    """Nothing is read back, and nothing is copied from the host."""
    weights = [replace(random_weight(ALL["q4_1"], 24, 96, seed), input_order=torch.arange(96)) for seed in range(2)]
    layer = GpuLowBitLinear(weights, torch.randn(48), True, torch.float32)
    x, indices = inputs(torch.float32, 3, 96), torch.tensor([3, 1], device=DEVICE)
    assert sync_check.obstacle(lambda: layer(x), DEVICE) is None
    assert sync_check.obstacle(lambda: layer.rows(indices), DEVICE) is None


@pytest.mark.parametrize("num_outputs", [24, 40_000], ids=["few outputs", "many outputs"])
@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.usefixtures("few_programs")
def test_nothing_is_compiled_by_a_call(num_outputs: int, is_gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = GpuLowBitLinear([random_weight(ALL["q4_0"], num_outputs, 256)], None, is_gated, torch.bfloat16)
    launched: set[Any] = set()
    compiled: set[Any] = set()

    def note(found: set[Any], kernel: Any, grid: Any, *args: Any, **options: Any) -> None:
        found.add(
            (kernel.fn.__name__, tuple(str(each.dtype) for each in args if isinstance(each, Tensor)), *options.items())
        )

    monkeypatch.setattr(low_bit_linear, "_run", partial(note, launched))
    monkeypatch.setattr(low_bit_linear, "_compile", partial(note, compiled))
    layer.compile_kernels()
    for num_rows in (*range(1, 130), 256, 500, 512, 513, 2000):
        x = torch.empty(num_rows, 256, dtype=torch.bfloat16, device=DEVICE)
        layer(x)
        layer(x, torch.empty(num_rows, layer.out_features, dtype=torch.bfloat16, device=DEVICE))
    layer.rows(torch.tensor([0], device=DEVICE))
    assert launched == compiled


def test_wrong_indices_are_poison_where_a_check_would_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = made("q4_0", 24, 96)
    monkeypatch.setattr(layer, "device", torch.device("cuda", 0))
    monkeypatch.setattr(torch, "empty", lambda *size, dtype, device: torch.zeros(size, dtype=dtype, device=DEVICE))
    rows = layer.rows(torch.tensor([0, 24, -1, 23], device=DEVICE)).cpu()
    assert rows.isnan().all(1).tolist() == [False, True, True, False]


def test_the_backend_makes_layers_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    parts = [random_weight(ALL["q8_0"], 8, 64, seed) for seed in range(3)]
    linear = Linear.of_parts(parts, dtype=torch.float32, device=DEVICE)
    assert isinstance(linear.packed, GpuLowBitLinear)
    x = inputs(torch.float32, 2, 64)
    exact = torch.cat([exact_weight(part) for part in parts])
    assert relative_error(linear(x).cpu(), product(x, exact)) < ERROR[torch.float32]


def test_parts_depend_on_the_weight_alone_and_none_is_empty() -> None:
    for num_outputs in (1, 64, 896, 4096, 28672, 151936):
        for num_steps in (1, 3, 7, 32, 76, 224):
            parts = product_parts(num_outputs, num_steps * 128 - 32, 128)
            assert 1 <= parts <= num_steps
            part_steps = -(-num_steps // parts)
            assert (parts - 1) * part_steps < num_steps <= parts * part_steps
    assert product_parts(4096, 4096, 128) == 8
    assert product_parts(151936, 4096, 128) == 1


def test_tiles_of_gated_layers_can_be_halved() -> None:
    for arch in (SM_80, SM_90, GFX942):
        for num_rows in (1, 17, 300):
            for item_bytes in (2, 4):
                tile = product_tile(arch, num_rows, item_bytes, 128)
                assert tile.block_n % 64 == 0
                assert tile.block_m >= 16
                assert tile.num_stages >= 2 or arch != SM_90
