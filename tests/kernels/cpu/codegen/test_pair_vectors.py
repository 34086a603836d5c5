"""Products of packed pairs and rounding, in the processor's form and in the widened one, against float64 and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen import pair_vectors
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT32
from rtlang_kernels.cpu.codegen.vector_builder import literal_values, load, store, typed_intrinsic
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import processor

FORMS = [0, pytest.param(1, marks=pytest.mark.skipif(not processor().has_bf16_dot, reason="needs vdpbf16ps"))]


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def one_dot(typing_context: Any, total: Any, a: Any, b: Any, is_native: Any) -> Any:
    constants = literal_values(is_native)
    if constants is None:
        return None

    def emit(builder: Any, total: Any, a: Any, b: Any) -> None:
        floats, words = ir.VectorType(FLOAT, 16), ir.VectorType(INT32, 16)
        pair_vectors.prefetch(builder, a, pair_vectors.SECOND)
        sums = load(builder, floats, total, 0)
        pairs = load(builder, words, a, 0), load(builder, words, b, 0)
        store(builder, pair_vectors.dot(builder, sums, *pairs, is_native=bool(constants[0])), total, 0)

    return typed_intrinsic(types.void, (types.int64, types.int64, types.int64, is_native), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def one_narrow(typing_context: Any, line: Any, target: Any, is_native: Any) -> Any:
    constants = literal_values(is_native)
    if constants is None:
        return None

    def emit(builder: Any, line: Any, target: Any) -> None:
        floats = load(builder, ir.VectorType(FLOAT, 16), line, 0)
        store(builder, pair_vectors.narrow(builder, floats, is_native=bool(constants[0])), target, 0)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_native), 1, emit)


@kernel(is_exact=True)
def dot(total: Any, a: Any, b: Any, is_native: Any) -> None:
    if is_native:
        one_dot(total, a, b, 1)
    else:
        one_dot(total, a, b, 0)


@kernel(is_exact=True)
def narrow(line: Any, target: Any, is_native: Any) -> None:
    if is_native:
        one_narrow(line, target, 1)
    else:
        one_narrow(line, target, 0)


@pytest.mark.parametrize("is_native", FORMS)
def test_pairs_are_multiplied_and_added(is_native: int) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(16, 2, generator=generator).bfloat16() for _ in range(2))
    total = torch.randn(16, generator=generator)
    expected = total.double() + (a.double() * b.double()).sum(1)
    dot(total.data_ptr(), a.data_ptr(), b.data_ptr(), is_native)
    assert torch.allclose(total.double(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("is_native", FORMS)
def test_a_nan_stays_in_its_lane(is_native: int) -> None:
    a, b, total = torch.ones(16, 2).bfloat16(), torch.ones(16, 2).bfloat16(), torch.zeros(16)
    a[3, 1], b[5, 0], total[7] = float("nan"), float("inf"), float("nan")
    dot(total.data_ptr(), a.data_ptr(), b.data_ptr(), is_native)
    assert total.isnan().nonzero().flatten().tolist() == [3, 7]
    assert total[5] == float("inf")
    assert total[0] == 2


@pytest.mark.parametrize("is_native", FORMS)
def test_rounding_agrees_with_torch(is_native: int) -> None:
    rng = np.random.default_rng(0)
    for turn in range(200):
        line = torch.from_numpy((rng.standard_normal(16) * 10.0 ** rng.integers(-30, 30)).astype(np.float32))
        if turn % 2:  # exactly between two neighbours
            line = ((line.view(torch.int32) & -0x10000) | 0x8000).view(torch.float32)
        target = torch.zeros(16, dtype=torch.bfloat16)
        narrow(line.data_ptr(), target.data_ptr(), is_native)
        assert torch.equal(target, line.bfloat16())
    line = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0] * 4)
    narrow(line.data_ptr(), target.data_ptr(), is_native)
    assert torch.equal(target.float().nan_to_num(7.0), line.nan_to_num(7.0))
    assert bool(target[3].signbit())
