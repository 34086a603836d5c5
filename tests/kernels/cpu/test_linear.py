"""Packed linear layers against float64, and the independence of a row's bits from everything else."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu import linear as linear_module
from rtlang_kernels.cpu.linear import (
    ROW_COUNTS,
    PackedLinear,
    Prefetch,
    PrefetchDistance,
    lines_of,
    pack_blocks,
    tiling,
)
from rtlang_kernels.host.processor import Processor, processor
from tests.support.long_tests import crossed

ROOT = Path(__file__).parents[3]
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}
MACHINES = {
    "this": processor(),
    "no bfloat16": Processor("", "", 1, has_avx512=processor().has_avx512, has_fma=True),
    "narrow": Processor("", "", 1),
}
SHAPES = [(32, 2), (96, 64), (131, 40), (1, 172), (515, 385), (256, 1152), (33, 7)]
ROWS = (1, 2, 3, 5, 8, 9, 16, 23, 31, 33, 64, 65, 70)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def random(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize(("machine", "dtype", "shape"), crossed(list(MACHINES), list(TOLERANCE), SHAPES), ids=str)
def test_every_row_agrees_with_float64_and_has_the_same_bits_alone(
    machine: str, dtype: torch.dtype, shape: tuple[int, int]
) -> None:
    num_outputs, num_inputs = shape
    weight, bias = random(dtype, num_outputs, num_inputs), random(dtype, num_outputs, seed=1)
    linear = PackedLinear.pack(weight, bias, machine=MACHINES[machine])
    x = random(dtype, max(ROWS), num_inputs, seed=2)
    alone = torch.cat([linear(row) for row in x.split(1)])
    assert alone.dtype == dtype
    assert relative_error(alone, x.double() @ weight.double().T + bias.double()) < TOLERANCE[dtype]
    for rows in ROWS if machine == "this" else (3, 8, 23, 70):
        y = linear(x[:rows])
        assert y.is_contiguous()
        assert torch.equal(y, alone[:rows])


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_threads_change_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_module, "WORTH_THREADS", 0)
    linear, x = PackedLinear.pack(random(dtype, 300, 100)), random(dtype, 20, 100, seed=1)
    with threads(1):
        expected = linear(x)
    for count in (2, 3, 64):  # more threads than blocks as well
        with threads(count):
            assert torch.equal(linear(x), expected)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_not_a_number_stays_in_its_row_and_output(dtype: torch.dtype) -> None:
    weight, x = random(dtype, 70, 64), random(dtype, 19, 64, seed=1)
    clean = PackedLinear.pack(weight)(x)
    x[4, 63], x[11, 0], weight[68, 5] = float("nan"), float("nan"), float("nan")
    found = PackedLinear.pack(weight)(x)
    is_bad = torch.zeros(19, 70, dtype=torch.bool)
    is_bad[4], is_bad[11], is_bad[:, 68] = True, True, True
    assert torch.equal(found.isnan(), is_bad)
    assert torch.equal(found[~is_bad], clean[~is_bad])


def test_memory_around_rows_and_results_is_left_alone() -> None:
    """Rows lie inside a larger tensor full of NaN; 45 outputs end in the middle of a block."""
    linear = PackedLinear.pack(random(torch.bfloat16, 45, 34))
    x = random(torch.bfloat16, 11, 34, seed=1)
    room = torch.full((13, 50), float("nan"), dtype=torch.bfloat16)
    room[1:12, 8:42] = x
    assert torch.equal(linear(room[1:12, 8:42]), linear(x))
    target = torch.full((13, 45), 7.0, dtype=torch.bfloat16)
    linear(x, target[1:12])
    assert bool((target[[0, 12]] == 7).all())


@pytest.mark.parametrize(
    ("machine", "dtype", "num_outputs"), crossed(list(MACHINES), list(TOLERANCE), [64, 45]), ids=str
)
def test_the_result_is_added_to_a_residual(machine: str, dtype: torch.dtype, num_outputs: int) -> None:
    weight, x = random(dtype, num_outputs, 40), random(dtype, 21, 40, seed=1)
    residual = random(dtype, 21, num_outputs, seed=2)
    expected = residual.double() + x.double() @ weight.double().T
    linear = PackedLinear.pack(weight, machine=MACHINES[machine])
    alone = torch.cat([linear(x[row : row + 1], residual[row : row + 1].clone()) for row in range(21)])
    assert linear(x, residual) is residual
    assert relative_error(residual, expected) < TOLERANCE[dtype]
    assert torch.equal(alone, residual)


@pytest.mark.parametrize(("machine", "dtype", "half"), crossed(list(MACHINES), list(TOLERANCE), [16, 96, 41]), ids=str)
def test_gated_results(machine: str, dtype: torch.dtype, half: int) -> None:
    weight, bias = random(dtype, 2 * half, 40), random(dtype, 2 * half, seed=1)
    x = random(dtype, 13, 40, seed=2)
    linear = PackedLinear.pack(weight, bias, True, machine=MACHINES[machine])
    gate, up = (x.double() @ weight.double().T + bias.double()).chunk(2, 1)
    y = linear(x)
    assert y.shape == (13, half)
    assert relative_error(y, functional.silu(gate) * up) < TOLERANCE[dtype]
    assert torch.equal(y, torch.cat([linear(row) for row in x.split(1)]))


def test_gates_far_from_zero() -> None:
    linear = PackedLinear.pack(torch.eye(2), None, True)
    x = torch.tensor([[-1e4, 1.0], [1e4, 1.0], [float("nan"), 1.0], [-88.0, 1.0]])
    expected = functional.silu(x[:, :1])
    assert torch.allclose(linear(x), expected, rtol=1e-5, atol=1e-33, equal_nan=True)


@pytest.mark.parametrize(
    "ahead", [PrefetchDistance(0, 3), PrefetchDistance(4096, 2), PrefetchDistance(1 << 40, 3)], ids=str
)
def test_prefetch_changes_no_result(ahead: PrefetchDistance) -> None:
    linear, x = PackedLinear.pack(random(torch.bfloat16, 64, 40)), random(torch.bfloat16, 3, 40, seed=1)
    expected = linear(x)
    linear.prefetch = Prefetch(ahead, ahead, ahead)
    assert torch.equal(linear(x), expected)


def test_no_rows_give_no_results() -> None:
    assert PackedLinear.pack(torch.ones(4, 4))(torch.ones(0, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    ("x", "residual"),
    [
        (torch.ones(1, 5), None),
        (torch.ones(1, 4).bfloat16(), None),
        (torch.ones(4), None),
        (torch.ones(2, 4), torch.ones(1, 32)),
        (torch.ones(2, 4), torch.ones(2, 32).bfloat16()),
        (torch.ones(2, 4), torch.ones(32, 2).T),
    ],
    ids=str,
)
def test_other_shapes_types_and_layouts_are_rejected(x: torch.Tensor, residual: torch.Tensor | None) -> None:
    with pytest.raises(ValueError, match=r"expected (contiguous )?torch.float32 \["):
        PackedLinear.pack(torch.ones(32, 4))(x, residual)


def test_a_gated_layer_adds_to_no_residual() -> None:
    with pytest.raises(ValueError, match="residual"):
        PackedLinear.pack(torch.ones(32, 4), None, True)(torch.ones(1, 4), torch.ones(1, 16))


def test_blocks_hold_each_weight_once_in_the_order_of_use() -> None:
    weight = torch.arange(2 * BLOCK * 4, dtype=torch.float32).view(2 * BLOCK, 4)
    blocks = pack_blocks(weight)  # block, step, output, input of the step
    assert blocks.shape == (2, 4, BLOCK, 1)
    assert torch.equal(blocks[1, 3, :, 0], weight[BLOCK:, 3])
    pairs = pack_blocks(weight.bfloat16())
    assert pairs.shape == (2, 2, BLOCK, 2)
    assert torch.equal(pairs[1, 1, :, 0], weight[BLOCK:, 2].bfloat16())
    assert pack_blocks(weight[:33, :3].bfloat16()).shape == (2, 2, BLOCK, 2)
    gated = pack_blocks(weight, is_gated=True)
    assert torch.equal(gated[1, 0, :16, 0], weight[16:32, 0])
    assert torch.equal(gated[1, 0, 16:, 0], weight[BLOCK + 16 :, 0])


@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize("num_inputs", [1, 200, 201])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_threads_and_parts_make_no_difference_to_blocks(
    dtype: torch.dtype, num_inputs: int, is_gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, width = (77, 16) if is_gated else (154, BLOCK)
    whole = random(dtype, 154, num_inputs)
    steps, per_word = -(-num_inputs * dtype.itemsize // 4), 4 // dtype.itemsize
    expected = torch.zeros(-(-size // width), steps, BLOCK, per_word, dtype=dtype)
    for row, column in itertools.product(range(154), range(num_inputs)):
        half, within = divmod(row, size)
        place = within // width, column // per_word, half * width + within % width, column % per_word
        expected[place] = whole[row, column]
    monkeypatch.setattr(linear_module, "_PACKED_BYTES", 40 * num_inputs * dtype.itemsize)
    odd = torch.empty(1 + 54 * num_inputs, dtype=dtype)[1:].view(54, num_inputs).copy_(whole[100:])
    strided = torch.stack([whole[:33], whole[:33]], 2)[..., 0]
    for num_threads in (1, 4):
        with threads(num_threads):
            assert torch.equal(pack_blocks([strided, whole[33:100], odd], is_gated=is_gated), expected)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize(("num_outputs", "num_inputs"), [*SHAPES, (BLOCK - 1, 7), (2 * BLOCK + 5, 3)], ids=str)
def test_rows_of_the_weight_are_read_from_its_blocks(num_outputs: int, num_inputs: int, dtype: torch.dtype) -> None:
    weight = random(dtype, num_outputs, num_inputs)
    linear = PackedLinear.pack(weight)
    generator = torch.Generator().manual_seed(3)
    indices = torch.cat([torch.randint(0, num_outputs, (40,), generator=generator), torch.tensor([num_outputs - 1, 0])])
    for wanted in (indices, indices[:1], indices[:0]):
        found = linear.rows(wanted)
        assert found.is_contiguous()
        assert torch.equal(found, weight[wanted])
    for invalid in (-1, num_outputs):
        with pytest.raises(IndexError, match=rf"indices\[1\] = {invalid}: expected 0 to {num_outputs - 1}"):
            linear.rows(torch.tensor([0, invalid]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/clear_refs")
def test_packing_takes_the_memory_of_one_copy() -> None:
    weight, peaks = torch.ones(8192, 2048), []
    for _ in range(2):  # the first call may load code
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _status("VmRSS")
        kept = pack_blocks(weight)
        peaks.append(_status("VmHWM") - before)
        del kept
    assert peaks[1] < 1.3 * weight.nbytes


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def test_rows_are_cut_into_equal_tiles_and_chunks() -> None:
    for max_rows in (4, 8):
        for num_rows in range(1, 2000):
            rows, passes = tiling(num_rows, max_rows)
            assert 1 <= rows <= max_rows
            assert 1 <= passes <= linear_module.MAX_PASSES
            tiles = -(-num_rows // rows)
            assert tiles * rows - num_rows <= max(num_rows // 4, max_rows - 1)  # idle rows
            assert passes == 1 or tiles > 1
    kernels = {(cut.rows, lines_of(cut.passes)) for cut in (tiling(rows, 8) for rows in range(1, 2000))}
    assert {(cut.rows, lines_of(cut.passes)) for cut in (tiling(rows, 8) for rows in ROW_COUNTS)} == kernels
    assert [tiling(rows, 8)[0] for rows in (1, 7, 8, 9, 20, 64, 70, 512)] == [1, 7, 8, 5, 7, 8, 7, 8]
    assert [lines_of(passes) for passes in (1, 2, 3, 4, 8)] == [4, 2, 2, 1, 1]


@pytest.mark.skipif(not processor().has_avx2, reason="the instructions are those of x86")
def test_code_for_an_older_processor_has_the_same_results() -> None:
    """The whole library compiled for AVX2: widened products in 256-bit vectors."""
    code = """
import torch
from rtlang_kernels.cpu.linear import PackedLinear
g = torch.Generator().manual_seed(0)
weight, x = torch.randn(50, 70, generator=g).bfloat16(), torch.randn(11, 70, generator=g).bfloat16()
y = PackedLinear.pack(weight)(x)
assert all(torch.equal(PackedLinear.pack(weight)(row), y[i:i + 1]) for i, row in enumerate(x.split(1)))
exact = x.double() @ weight.double().T
print(float((y.double() - exact).norm() / exact.norm()))
"""
    environment = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi2,+f16c"}
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(ROOT / "kernels")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert float(found.stdout) < TOLERANCE[torch.bfloat16]
