"""Exponentials against float64, and that they have the same bits in vectors of every width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, source_digest
from rtlang_kernels.cpu.codegen.vector_builder import literal_values, load, store, typed_intrinsic
from rtlang_kernels.cpu.recurrence import state_vectors
from rtlang_kernels.host.numba_jit import kernel

DIGEST = source_digest()


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def one_exp(typing_context: Any, source: Any, target: Any, gates: Any, width: Any) -> Any:
    constants = literal_values(gates, width)
    if constants is None:
        return None

    def emit(builder: Any, source: Any, target: Any) -> None:
        x = load(builder, ir.VectorType(FLOAT, constants[1]), source, 0)
        function = state_vectors.silu if constants[0] else state_vectors.exp
        store(builder, function(builder, x), target, 0)

    return typed_intrinsic(types.void, (types.int64, types.int64, gates, width), 2, emit)


@kernel(is_exact=True)
def exps(source: Any, target: Any, count: Any, gates: Any, width: Any) -> None:
    if DIGEST < 0:
        return
    for i in range(count // width):
        skip = 4 * i * width
        if gates:
            if width == 16:
                one_exp(source + skip, target + skip, 1, 16)
            else:
                one_exp(source + skip, target + skip, 1, 1)
        elif width == 16:
            one_exp(source + skip, target + skip, 0, 16)
        else:
            one_exp(source + skip, target + skip, 0, 1)


def run(x: NDArray[np.float32], gates: int) -> NDArray[np.float32]:
    wide, single = np.empty_like(x), np.empty_like(x)
    exps(x.ctypes.data, wide.ctypes.data, len(x), gates, 16)
    exps(x.ctypes.data, single.ctypes.data, len(x), gates, 1)
    assert np.array_equal(wide.view(np.int32), single.view(np.int32))
    return wide


def test_exp_is_within_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.uniform(-87, 88, 160_000), rng.uniform(-1, 1, 80_000), -(10.0 ** rng.uniform(-8, 1, 80_000))]
    x = np.concatenate(parts).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert float((np.abs(run(x, 0) - exact) / np.spacing(exact.astype(np.float32))).max()) < 2


def test_special_numbers() -> None:
    x = np.array([0.0, -0.0, -87.1, -1e30, -np.inf, np.nan, 88.0, 1e30, np.inf, -1e-30] + [0.0] * 6, np.float32)
    found = run(x, 0)
    assert found[:2].tolist() == [1.0, 1.0]
    assert found[2:5].tolist() == [0.0] * 3
    assert np.isnan(found[5])
    assert found[6] == found[7] == found[8] == pytest.approx(np.exp(88.0), rel=1e-6)
    assert found[9] == 1.0


def test_silu_agrees_with_float64() -> None:
    x = np.random.default_rng(0).uniform(-85, 100, 64_000).astype(np.float32)
    exact = x / (1 + np.exp(-x.astype(np.float64)))
    assert float((np.abs(run(x, 1) - exact) / np.abs(exact)).max()) < 5e-7
    ends = run(np.array([-200.0, 200.0, np.nan, 0.0] * 4, np.float32), 1)
    assert abs(ends[0]) < 1e-30
    assert ends[1] == 200.0
    assert np.isnan(ends[2])
    assert ends[3] == 0.0
