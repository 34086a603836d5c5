"""Packed linear layers in matrix tiles: with emulated instructions, and with those of the processor where it has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.nn import functional

from rtlang_kernels.cpu import linear as linear_module
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED, HEIGHT
from rtlang_kernels.cpu.linear import TILED_ROW_COUNTS, PackedLinear, code_for, lines_of, tile_code, tiling
from rtlang_kernels.cpu.linear_tuning import usable_tiles

TOLERANCE = 4e-3
ROWS = (1, 2, 15, 16, 17, 31, 32, 33, 47, 64, 65, 70, 100)


Tiled = Callable[[PackedLinear], PackedLinear]
HAS_AMX = pytest.mark.skipif(usable_tiles() != AMX, reason="the processor has no matrix tiles")


def in_tiles(linear: PackedLinear, kind: int) -> PackedLinear:
    code = tile_code(linear.code, kind)
    assert code is not None
    return replace(linear, code=code)


@pytest.fixture(params=[EMULATED, pytest.param(AMX, marks=HAS_AMX)], ids=["emulated", "processor"])
def tiled(request: pytest.FixtureRequest) -> Tiled:
    return partial(in_tiles, kind=request.param)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize(("num_outputs", "num_inputs"), [(32, 2), (96, 64), (131, 40), (1, 172), (70, 385)], ids=str)
def test_every_row_agrees_with_float64_and_has_the_same_bits_alone(
    tiled: Tiled, num_outputs: int, num_inputs: int
) -> None:
    weight, bias, x = random(num_outputs, num_inputs), random(num_outputs, seed=1), random(300, num_inputs, seed=2)
    linear = tiled(PackedLinear.pack(weight, bias))
    alone = torch.cat([linear(row) for row in x.split(1)])
    assert relative_error(alone, x.double() @ weight.double().T + bias.double()) < TOLERANCE
    for rows in (*ROWS, 300):
        assert torch.equal(linear(x[:rows]), alone[:rows])


@HAS_AMX
@pytest.mark.parametrize("num_inputs", [64, 206])
def test_the_emulation_has_the_bits_of_the_processor(num_inputs: int) -> None:
    weight, x = random(70, num_inputs), random(39, num_inputs, seed=1)
    x[3] *= 1e-20  # products below the normal numbers
    weight[5] *= 1e-20
    linear = PackedLinear.pack(weight)
    assert torch.equal(in_tiles(linear, AMX)(x), in_tiles(linear, EMULATED)(x))


def test_a_chunk_that_the_last_tiles_do_not_fill(tiled: Tiled) -> None:
    linear, x = tiled(PackedLinear.pack(random(40, 34))), random(1100, 34, seed=1)
    alone = torch.cat([linear(row) for row in x.split(1)])
    for rows in (256, 257, 289, 513, 545, 1025, 1100):
        assert torch.equal(linear(x[:rows]), alone[:rows])


def test_threads_change_no_bit(tiled: Tiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_module, "WORTH_THREADS", 0)
    linear, x, before = tiled(PackedLinear.pack(random(300, 100))), random(20, 100, seed=1), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = linear(x)
        torch.set_num_threads(3)
        assert torch.equal(linear(x), expected)
    finally:
        torch.set_num_threads(before)


def test_not_a_number_stays_in_its_row_and_output(tiled: Tiled) -> None:
    weight, x = random(70, 74), random(39, 74, seed=1)
    clean = tiled(PackedLinear.pack(weight))(x)
    x[4, 73], x[20, 0], weight[68, 5] = float("nan"), float("nan"), float("nan")
    found = tiled(PackedLinear.pack(weight))(x)
    is_bad = torch.zeros(39, 70, dtype=torch.bool)
    is_bad[4], is_bad[20], is_bad[:, 68] = True, True, True
    assert torch.equal(found.isnan(), is_bad)
    assert torch.equal(found[~is_bad], clean[~is_bad])


def test_memory_around_rows_and_results_is_left_alone(tiled: Tiled) -> None:
    linear, x = tiled(PackedLinear.pack(random(45, 34))), random(37, 34, seed=1)
    room = torch.full((39, 50), float("nan"), dtype=torch.bfloat16)
    room[1:38, 8:42] = x
    assert torch.equal(linear(room[1:38, 8:42]), linear(x))
    target = torch.full((39, 45), 7.0, dtype=torch.bfloat16)
    linear(x, target[1:38])
    assert bool((target[[0, 38]] == 7).all())


def test_rows_that_tiles_repeat_are_added_to_a_residual_once(tiled: Tiled) -> None:
    weight, x, residual = random(45, 40), random(67, 40, seed=1), random(67, 45, seed=2)
    expected = residual.double() + x.double() @ weight.double().T
    linear = tiled(PackedLinear.pack(weight))
    alone = torch.cat([linear(x[row : row + 1], residual[row : row + 1].clone()) for row in range(67)])
    assert torch.equal(linear(x, residual), alone)
    assert relative_error(residual, expected) < TOLERANCE


def test_gated_results(tiled: Tiled) -> None:
    weight, bias, x = random(82, 40), random(82, seed=1), random(35, 40, seed=2)
    linear = tiled(PackedLinear.pack(weight, bias, True))
    gate, up = (x.double() @ weight.double().T + bias.double()).chunk(2, 1)
    y = linear(x)
    assert relative_error(y, functional.silu(gate) * up) < TOLERANCE
    assert torch.equal(y, torch.cat([linear(row) for row in x.split(1)]))


def test_float32_has_no_tiles() -> None:
    assert tile_code(code_for(torch.float32, torch.float32), EMULATED) is None


def test_precompiled_numbers_of_rows_need_every_kernel() -> None:
    def kernels(counts: range | tuple[int, ...]) -> set[tuple[int, int]]:
        cuts = [tiling(rows, 2 * HEIGHT) for rows in counts]
        return {(-(-cut.rows // HEIGHT), lines_of(cut.passes)) for cut in cuts}

    assert kernels(TILED_ROW_COUNTS) == kernels(range(1, 2000))
