"""Weights of few bits as readers hand them out: what a format may be, and parts of weights."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from rtlang_kernels.contract.low_bit import (
    GroupedRows,
    HeldWeight,
    ScaleType,
    StackedWeight,
    WeightFormat,
    WeightSlice,
    can_stack,
)
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

ALL = FORMATS | FLOAT8


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"bits": 7}, "bits = 7"),
        ({"bits": 4, "group": 48}, "group = 48"),
        ({"bits": 4, "group": 8}, "group = 8"),
        ({"bits": 4, "group": 96, "scales": ScaleType.SUPER}, "group = 96"),
        ({"bits": 4, "table": (0,) * 8}, "table = 8 values"),
        ({"bits": 4, "zero": 8, "has_offsets": True}, "expected one of"),
        ({"bits": 4, "is_float8": True}, "expected 8 for float8"),
        ({"bits": 8, "scales": ScaleType.NONE, "has_zero_points": True}, "expected scales"),
    ],
)
def test_a_format_that_cannot_be_is_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        WeightFormat(**fields)


@pytest.mark.parametrize("fmt", ALL.values(), ids=ALL)
def test_outputs_of_stacked_weights_follow_one_another(fmt: WeightFormat) -> None:
    parts = [random_weight(fmt, size, 512, seed) for seed, size in enumerate((3, 16, 5))]
    stacked = StackedWeight(parts)
    assert stacked.shape == (24, 512)
    whole = torch.cat([exact_weight(part) for part in parts])
    assert torch.equal(exact_weight(stacked), whole)
    assert torch.equal(exact_weight(stacked, 2, 20), whole[2:20])


def test_weights_that_differ_are_not_stacked() -> None:
    a, b = (random_weight(FORMATS[name], 4, 64) for name in ("q4_0", "q4_1"))
    ordered = HeldWeight(a.format, a.held, torch.arange(64))
    assert not can_stack(a, b)
    assert not can_stack(a, random_weight(a.format, 4, 128))
    assert not can_stack(a, ordered)
    assert can_stack(ordered, HeldWeight(a.format, a.held, torch.arange(64)))
    with pytest.raises(ValueError, match="expected one format"):
        StackedWeight([a, b])


def test_missing_row_scales_are_ones() -> None:
    fmt = WeightFormat(8, scales=ScaleType.NONE, zero=128)
    codes = torch.tensor([[130] * 32], dtype=torch.uint8)
    parts = [HeldWeight(fmt, GroupedRows(codes)), HeldWeight(fmt, GroupedRows(codes, row_scales=torch.tensor([3.0])))]
    assert exact_weight(StackedWeight(parts))[:, 0].tolist() == [2.0, 6.0]


@pytest.mark.parametrize("fmt", ALL.values(), ids=ALL)
def test_a_slice_has_some_outputs_and_inputs(fmt: WeightFormat) -> None:
    weight = random_weight(fmt, 20, 768)
    whole = exact_weight(weight)
    assert torch.equal(exact_weight(WeightSlice(weight, (4, 12), (0, 768))), whole[4:12])
    assert torch.equal(exact_weight(WeightSlice(weight, (4, 12), (256, 512)), 1, 3), whole[5:7, 256:512])


def test_inputs_are_cut_between_groups_only() -> None:
    with pytest.raises(ValueError, match="multiples of 256"):
        WeightSlice(random_weight(FORMATS["q4_k"], 4, 512), (0, 4), (128, 512))
    with pytest.raises(ValueError, match="multiples of 32"):
        WeightSlice(random_weight(FORMATS["nvfp4"], 4, 512), (0, 4), (16, 512))
    weight = random_weight(FORMATS["q4_0"], 4, 64)
    with pytest.raises(ValueError, match="their own order"):
        WeightSlice(HeldWeight(weight.format, weight.held, torch.arange(64)), (0, 4), (0, 32))
