"""Products of bytes against numpy: exact sums of integers, and the same few float32 operations on them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang_kernels.cpu.codegen.attention import attention_vectors as vectors
from rtlang_kernels.cpu.codegen.attention.attention_bytes import QUERY_LIMIT, WEIGHT_LIMIT, WEIGHT_ROW
from rtlang_kernels.cpu.codegen.attention.page_vectors import BLOCK, BYTES_FLOAT32, GROUP, PageForm, pack_group
from rtlang_kernels.host.processor import processor

pytestmark = pytest.mark.skipif(not processor().has_int8_dot, reason="the processor has no products of bytes")

FORM, LINES = PageForm(BYTES_FLOAT32, 32, 80), 2
KIND, HEAD_DIM, V_HEAD_DIM, STATE = FORM.kind, FORM.head_dim, FORM.v_head_dim, FORM.state_bytes
VALUE_GROUP = FORM.value_bytes * GROUP // BLOCK
FORM_STEPS = FORM.key_steps
Line = NDArray[np.float32]


@numba.njit
def fold(places: Any, visible: Any) -> None:
    """Pack a block and fold it into two lines: addresses of query, keys, values, packed ones, scores, weights, states, and strides."""
    query, keys, values, packed_keys, packed_values, scores, weights, states = places[:8]
    for g in range(4):
        lines = keys + GROUP * g * places[8], values + GROUP * g * places[9]
        targets = packed_keys + 4 * GROUP * g, packed_values + VALUE_GROUP * g
        pack_group(lines[0], lines[1], places[8], places[9], targets[0], targets[1], KIND, HEAD_DIM, V_HEAD_DIM)
    for i in range(LINES):
        vectors.clear(states + i * STATE, V_HEAD_DIM, KIND)
        vectors.prepare(query + i * HEAD_DIM * 4, states + i * STATE, KIND, HEAD_DIM, V_HEAD_DIM)
    vectors.score(states, packed_keys, scores, 0, KIND, HEAD_DIM, V_HEAD_DIM, LINES, 4, 1)
    for i in range(LINES):
        line, state, scales = scores + 4 * BLOCK * i, states + i * STATE, packed_keys + 4 * BLOCK * FORM_STEPS
        vectors.scale_scores(line, scales, KIND)
        row, scales = weights + WEIGHT_ROW * i, scales + 4 * BLOCK
        vectors.weigh(line, row, state, scales, np.float32(1.0), visible, KIND, V_HEAD_DIM)
    vectors.gather(states, packed_values, weights, 0, 16, 0, KIND, HEAD_DIM, V_HEAD_DIM, LINES, 1)


def lines(rng: np.random.Generator, size: int) -> tuple[NDArray[np.int8], Line]:
    """A block of random lines of int8, and their scales."""
    held = rng.integers(-127, 128, (BLOCK, size + 2)).astype(np.int8)
    scales = rng.uniform(0.001, 0.02, BLOCK).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    held[:, size:] = (scales >> 16).astype(np.uint16)[:, None].view(np.int8)
    return held, scales.view(np.float32)


def folded(query: Line, keys: NDArray[np.int8], values: NDArray[np.int8], visible: int) -> tuple[Line, Any, Line]:
    """Scores [lines, 64], rows of weights, and sums [lines, v_head_dim] in the order of packed values."""
    scores, weights = np.zeros((LINES, BLOCK), np.float32), np.zeros((LINES, WEIGHT_ROW), np.uint8)
    states, packed = np.zeros((LINES, STATE), np.uint8), np.zeros(FORM.key_bytes, np.uint8)
    packed_values = np.zeros(FORM.value_bytes, np.uint8)
    arrays = query, keys, values, packed, packed_values, scores, weights, states
    fold(np.array([*(a.ctypes.data for a in arrays), keys.strides[0], values.strides[0]], np.int64), np.int64(visible))
    sums = states[:, : 64 * FORM.value_vectors].copy().view(np.float32)
    return scores, weights, sums


def test_a_block_follows_its_definition() -> None:
    rng = np.random.default_rng(0)
    query = rng.standard_normal((LINES, HEAD_DIM)).astype(np.float32) * 4
    (keys, k_scales), (values, v_scales) = lines(rng, HEAD_DIM), lines(rng, V_HEAD_DIM)
    visible = -1 & ~(0b111 << 20)
    scores, weights, sums = folded(query, keys, values, visible)
    step = np.abs(query).max(axis=1, keepdims=True) / np.float32(QUERY_LIMIT)
    numbers = np.rint(query / step).astype(np.int64)
    assert np.abs(numbers).max() == QUERY_LIMIT
    exact = (numbers @ keys[:, :HEAD_DIM].astype(np.int64).T).astype(np.float32) * step * k_scales
    assert np.array_equal(scores, exact)
    assert np.allclose(exact, query @ (keys[:, :HEAD_DIM] * k_scales[:, None]).T, atol=2e-3)

    found = weights[:, :BLOCK].astype(np.int64) * 256 + weights[:, BLOCK : 2 * BLOCK]
    steps = weights[:, 2 * BLOCK : 2 * BLOCK + 4].copy().view(np.float32)
    hidden = np.array([not visible >> i & 1 for i in range(BLOCK)])
    wanted = np.where(hidden, 0, np.exp2(exact - exact[:, ~hidden].max(axis=1, keepdims=True)) * v_scales)
    assert np.array_equal(found.max(axis=1), [WEIGHT_LIMIT] * LINES)
    assert np.all(np.abs(found * steps - wanted) <= steps * 0.51)
    assert not found[:, hidden].any()

    totals = (found @ values[:, :V_HEAD_DIM].astype(np.int64)).astype(np.float32)
    want = totals * steps  # the sums were 0, so the multiply-add is a product
    order = [v for j in range(4) for lane in range(0, 64, 16) for v in range(lane + 4 * j, lane + 4 * j + 4)]
    assert np.array_equal(sums, want[:, [*order, *range(64, 80)]])


@pytest.mark.parametrize("spoiled", ["query", "key", "value"])
def test_what_is_not_finite_is_not_lost(spoiled: str) -> None:
    rng = np.random.default_rng(1)
    query = rng.standard_normal((LINES, HEAD_DIM)).astype(np.float32)
    (keys, _), (values, _) = lines(rng, HEAD_DIM), lines(rng, V_HEAD_DIM)
    if spoiled == "query":
        query[0, 5] = np.inf
    else:
        (keys if spoiled == "key" else values)[7, -2:] = -1  # its scale is NaN
    sums = folded(query, keys, values, -1)[2]
    lost = sums if spoiled != "query" else sums[:1]
    assert np.isnan(lost).all()
    if spoiled == "query":
        assert np.isfinite(sums[1]).all()
    clear = -1 & ~(1 << 7)
    if spoiled != "query":
        assert np.isfinite(folded(query, keys, values, clear)[2]).all()


def test_what_is_tiny_counts_as_nothing() -> None:
    rng = np.random.default_rng(2)
    query = np.zeros((LINES, HEAD_DIM), np.float32)
    query[1] = 1e-38
    (keys, _), (values, _) = lines(rng, HEAD_DIM), lines(rng, V_HEAD_DIM)
    scores, _, sums = folded(query, keys, values, -1)
    assert not scores.any()
    assert np.isfinite(sums).all()
    assert sums.any()
    values[:, -2:] = 0  # scales of 0
    assert not folded(query, keys, values, -1)[2].any()
