"""Packed weights of few bits: nothing is rounded, and packing takes little memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields

import pytest
import torch

from rtlang_kernels.contract.low_bit import (
    GroupedRows,
    HeldWeight,
    ScaleType,
    StackedWeight,
    WeightFormat,
    joined_rows,
)
from rtlang_kernels.cpu import low_bit_layout
from rtlang_kernels.cpu.codegen.low_bit_vectors import LANES
from rtlang_kernels.cpu.low_bit_layout import LowBitLayout
from rtlang_kernels.host.processor import Processor, processor
from tests.support.models.low_bit_weights import FORMATS, random_weight

MACHINES = {"this": processor(), "plain": Processor("", "", 1)}
CASES = [
    (name, machine)
    for name, machine in itertools.product(FORMATS, MACHINES)
    if machine == "this" or FORMATS[name].table
]


def check(weight: HeldWeight, machine: Processor, is_gated: bool, outputs: Sequence[int]) -> None:
    layout = LowBitLayout.of(weight.format, weight.shape[1], machine)
    packed = layout.pack(weight, is_gated=is_gated)
    index = torch.tensor(outputs)
    found, held = layout.rows_of(packed, index, is_gated=is_gated), weight.held
    for name in (each.name for each in fields(GroupedRows)):
        expected, value = getattr(held, name), getattr(found, name)
        if name == "row_scales":
            expected = torch.ones(len(held.codes)) if expected is None else expected
        if name == "codes" and layout.fmt != weight.format:  # a table that was looked up
            assert weight.format.table is not None
            expected, value = torch.tensor(weight.format.table)[expected.int()], value.int() - layout.fmt.zero
        if expected is None:
            assert value is None
            continue
        assert torch.equal(value, expected[index]), name


@pytest.mark.parametrize(("name", "machine"), CASES)
def test_every_format_comes_back_as_it_was(name: str, machine: str) -> None:
    for (num_outputs, num_inputs), is_gated in zip(
        [(37, 512), (84, 768), (64, 256)], (False, True, False), strict=True
    ):
        weight = random_weight(FORMATS[name], num_outputs, num_inputs)
        check(weight, MACHINES[machine], is_gated, torch.randperm(num_outputs).tolist())


@pytest.mark.parametrize("num_inputs", [1, 31, 33, 100])
def test_rows_without_groups_may_have_any_number_of_inputs(num_inputs: int) -> None:
    weight = random_weight(FORMATS["int8 of rows"], 5, num_inputs)
    check(weight, processor(), False, range(5))


@pytest.mark.parametrize("group", [64, 1024])
def test_large_groups_have_one_scale(group: int) -> None:
    fmt = WeightFormat(4, group, ScaleType.FLOAT16, zero=8)
    weight = random_weight(fmt, 33, 1024)
    check(weight, processor(), False, range(33))
    packed = LowBitLayout.of(fmt, 1024, processor()).pack(weight)
    assert packed.records.nbytes == 64 * 1024 // group * 2  # padded to 64 outputs


def test_a_weight_is_read_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_bit_layout, "_CHUNK_CODES", 256 * 20)
    weight, asked = random_weight(FORMATS["q4_k"], 70, 256), []

    class Watched:
        format, shape, input_order = weight.format, weight.shape, None

        def rows(self, first: int, last: int) -> GroupedRows:
            asked.append((first, last))
            return weight.rows(first, last)

    layout = LowBitLayout.of(weight.format, 256, processor())
    packed = layout.pack(Watched())
    assert sorted(asked) == [(0, 16), (16, 32), (32, 48), (48, 64), (64, 70)]
    whole = LowBitLayout.of(weight.format, 256, processor()).pack(weight)
    assert torch.equal(packed.codes, whole.codes)
    assert torch.equal(packed.records, whole.records)


@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize("name", ["q4_k", "q5_0", "mxfp4", "int8 of rows"])
def test_threads_and_chunks_make_no_difference(name: str, is_gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [random_weight(FORMATS[name], size, 256, seed=size) for size in (48, 9, 71)]
    layout, whole = LowBitLayout.of(FORMATS[name], 256, processor()), HeldWeight(FORMATS[name], joined(weights))
    expected = layout.pack(whole, is_gated=is_gated)
    monkeypatch.setattr(low_bit_layout, "_CHUNK_CODES", 256 * 20)
    before = torch.get_num_threads()
    try:
        for num_threads in (1, 4):
            torch.set_num_threads(num_threads)
            found = layout.pack(StackedWeight(weights), is_gated=is_gated)
            assert all(torch.equal(a, b) for a, b in zip(found[:3], expected[:3], strict=True))
            assert found.largest_scale == expected.largest_scale
    finally:
        torch.set_num_threads(before)


def joined(weights: Sequence[HeldWeight]) -> GroupedRows:
    return joined_rows([weight.held for weight in weights])


def test_rows_of_parts_that_start_at_a_block_are_not_joined() -> None:
    asked: list[tuple[int, int]] = []

    class Watched(HeldWeight):
        def rows(self, first: int, last: int) -> GroupedRows:
            asked.append((first, last))
            return super().rows(first, last)

    parts = [Watched(FORMATS["q4_0"], random_weight(FORMATS["q4_0"], size, 64).held) for size in (32, 16, 20, 16)]
    LowBitLayout.of(FORMATS["q4_0"], 64, processor()).pack(StackedWeight(parts))
    assert sorted(asked) == [(0, 16), (0, 16), (0, 20), (0, 32)]


def test_an_error_of_a_reader_ends_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_bit_layout, "_CHUNK_CODES", 256 * 16)

    class Damaged(HeldWeight):
        def rows(self, first: int, last: int) -> GroupedRows:
            if first == 32:
                raise OSError("damaged")
            return super().rows(first, last)

    weight = Damaged(FORMATS["q4_0"], random_weight(FORMATS["q4_0"], 256, 256).held)
    with pytest.raises(OSError, match="damaged"):
        LowBitLayout.of(FORMATS["q4_0"], 256, processor()).pack(weight)


@pytest.mark.parametrize(
    ("name", "bits"), [("q4_0", 4.5), ("q5_0", 5.5), ("q6_k", 6.5625), ("q4_k", 4.625), ("int8 of rows", 8)]
)
def test_a_weight_takes_no_more_than_its_format(name: str, bits: float) -> None:
    packed = LowBitLayout.of(FORMATS[name], 512, processor()).pack(random_weight(FORMATS[name], 2 * LANES, 512))
    assert packed.codes.nbytes + packed.records.nbytes == bits / 8 * 2 * LANES * 512


def test_large_bfloat16_scales_are_not_shifted() -> None:
    layout = LowBitLayout.of(FORMATS["mxfp4"], 64, processor())
    assert layout.code_for(1.0).is_shifted
    assert not layout.code_for(2.0**110).is_shifted
