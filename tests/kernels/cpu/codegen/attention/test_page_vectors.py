"""Packed keys are transposed, and packed values lie in steps of one or two keys, for any head size and distance between keys."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang_kernels.contract.kv_lines import line_bytes, scale_offset
from rtlang_kernels.cpu.codegen.attention.page_vectors import (
    BLOCK,
    BYTES_BFLOAT16,
    BYTES_FLOAT32,
    FLOAT32,
    GROUP,
    INT8_POOL,
    PAIRED,
    WIDENED,
    PageForm,
    byte_order,
    copy_line,
    halves_order,
    pack_group,
)


def packed(form: PageForm, keys: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Keys [steps, 64 keys] and values [steps, vectors, 16] as words, from lines [16, size]; words that were not written are 7."""
    kind, head_dim, v_head_dim = form.kind, form.head_dim, form.v_head_dim

    @numba.njit
    def run(places: Any) -> None:
        pack_group(places[0], places[1], places[2], places[3], places[4], places[5], kind, head_dim, v_head_dim)

    key_words = np.full((form.key_bytes // (4 * BLOCK), BLOCK), 7, np.uint32)
    value_words = np.full((form.value_steps, form.value_vectors, 16), 7, np.uint32)
    arrays = keys, values, key_words, value_words
    addresses = [array.ctypes.data for array in arrays]
    run(np.array([*addresses[:2], keys.strides[0], values.strides[0], *addresses[2:]], np.int64))
    return key_words, value_words


@pytest.mark.parametrize(("head_dim", "v_head_dim"), [(64, 64), (40, 24), (6, 5)], ids=str)
@pytest.mark.parametrize("kind", [FLOAT32, WIDENED, PAIRED], ids=["float32", "widened", "paired"])
def test_a_group_is_packed(kind: int, head_dim: int, v_head_dim: int) -> None:
    form, rng = PageForm(kind, head_dim, v_head_dim), np.random.default_rng(head_dim)
    if kind == FLOAT32:
        keys, values = (rng.standard_normal((GROUP, size + 3), np.float32) for size in (head_dim, v_head_dim))
        words, value_words = keys.view(np.uint32), values.view(np.uint32)
    else:
        keys, values = (rng.integers(0, 1 << 16, (GROUP, size + 4), np.uint16) for size in (head_dim, v_head_dim))
        words, value_words = keys.astype(np.uint32) << 16, values.astype(np.uint32) << 16
    got_keys, got_values = packed(form, keys, values)
    words, value_words = words[:, :head_dim], value_words[:, :v_head_dim]
    assert np.all(got_keys[:, GROUP:] == 7)
    num_steps = GROUP * form.value_steps // BLOCK
    assert np.all(got_values[num_steps:] == 7)
    got_keys, got_values = got_keys[:, :GROUP], got_values[:num_steps]
    if kind != PAIRED:
        assert np.array_equal(got_keys, words.T)
        assert np.array_equal(got_values.reshape(GROUP, -1)[:, :v_head_dim], value_words)
        assert not got_values.reshape(GROUP, -1)[:, v_head_dim:].any()
        return
    assert np.array_equal(got_keys, (words[:, 0::2] >> 16 | words[:, 1::2]).T)
    for step, vectors in enumerate(got_values):
        vector = 0
        while vector < form.value_vectors:
            count = 32 if form.is_unpacked(vector) else 16
            pair = np.zeros((2, count), np.uint16)
            part = values[2 * step : 2 * step + 2, 16 * vector : min(v_head_dim, 16 * vector + count)]
            pair[:, : part.shape[1]] = part
            if form.is_unpacked(vector):
                order = halves_order(False) + halves_order(True)
                want = pair.reshape(-1)[order].view(np.uint32).reshape(2, 16)
                assert np.array_equal(vectors[vector : vector + 2], want)
            else:
                assert np.array_equal(vectors[vector], pair.T.reshape(-1).copy().view(np.uint32))
            vector += count // 16


@pytest.mark.parametrize(
    ("kind", "head_dim", "v_head_dim"),
    [
        (INT8_POOL + FLOAT32, 70, 21),
        (INT8_POOL + WIDENED, 5, 5),
        (INT8_POOL + PAIRED, 70, 40),
        (BYTES_BFLOAT16, 144, 144),
        (BYTES_FLOAT32, 16, 48),
    ],
    ids=str,
)
def test_a_group_of_int8_is_packed_with_its_scales(kind: int, head_dim: int, v_head_dim: int) -> None:
    form, rng = PageForm(kind, head_dim, v_head_dim), np.random.default_rng(head_dim)
    keys, values = (
        rng.integers(-128, 128, (GROUP, line_bytes(size) + 4)).astype(np.int8) for size in (head_dim, v_head_dim)
    )
    got_keys, got_values = packed(form, keys, values)
    scales = [
        np.ascontiguousarray(lines[:, scale_offset(size) :][:, :2]).view(np.uint16)[:, 0].astype(np.uint32) << 16
        for lines, size in ((keys, head_dim), (values, v_head_dim))
    ]
    assert np.all(got_keys[:, GROUP:] == 7)
    assert np.array_equal(got_keys[form.key_steps :, :GROUP], scales)
    got_keys, got_values = got_keys[: form.key_steps, :GROUP], got_values[: GROUP * form.value_steps // BLOCK]
    keys, values = keys[:, :head_dim], values[:, :v_head_dim]
    if form.is_bytes:
        assert np.array_equal(got_keys, (np.ascontiguousarray(keys) ^ np.int8(-128)).view(np.uint32).T)
        order = [first + i for first in range(0, v_head_dim // 64 * 64, 64) for i in byte_order(64)]
        order += [first + i for first in range(len(order), v_head_dim, 16) for i in byte_order(16)]
        for step, words in enumerate(got_values):
            four = np.ascontiguousarray(values[4 * step : 4 * step + 4, order].T)
            assert np.array_equal(words.reshape(-1), four.view(np.uint32)[:, 0])
        return
    if not form.is_paired:
        assert np.array_equal(got_keys.view(np.float32), keys.T)
        assert np.array_equal(got_values.view(np.float32).reshape(GROUP, -1)[:, :v_head_dim], values)
        return
    wide, wide_values = (lines.astype(np.float32).view(np.uint32) for lines in (keys, values))
    assert np.array_equal(got_keys, (wide[:, 0::2] >> 16 | wide[:, 1::2]).T)
    pairs = wide_values[0::2] >> 16 | wide_values[1::2]
    assert np.array_equal(got_values.reshape(GROUP // 2, -1)[:, :v_head_dim], pairs)


@pytest.mark.parametrize(("item", "size"), [(2, 21), (4, 16), (4, 7)], ids=str)
def test_a_line_is_copied_and_nothing_else(item: int, size: int) -> None:
    @numba.njit
    def run(source: Any, target: Any) -> None:
        copy_line(source, target, item, size)

    source = np.arange(1, 65, dtype=np.uint16 if item == 2 else np.uint32)
    target = np.zeros_like(source)
    run(source.ctypes.data, target.ctypes.data)
    assert np.array_equal(target[:size], source[:size])
    assert not target[size:].any()
