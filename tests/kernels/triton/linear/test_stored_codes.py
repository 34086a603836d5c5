"""Weights of few bits take the bytes of their files, whatever the sizes of the layer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rtlang_kernels.contract.low_bit import SUPER_GROUP, GroupedRows, HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.triton.linear.stored_codes import store, stored_format
from tests.support.kernels.gpu import DEVICE
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

FILE_BYTES = {
    "q4_0": (18, 32),
    "q4_1": (20, 32),
    "q5_0": (22, 32),
    "q5_1": (24, 32),
    "q8_0": (34, 32),
    "q2_k": (84, 256),
    "q3_k": (110, 256),
    "q4_k": (144, 256),
    "q5_k": (176, 256),
    "q6_k": (210, 256),
    "iq4_nl": (18, 32),
    "iq4_xs": (136, 256),
    "mxfp4": (17, 32),
    "nvfp4": (36, 64),
    "int4 of 128": (66, 128),
    "int4 of 64 with zero points": (34.5, 64),  # 4 bits a zero point
    "int4 of 32, float32 scales": (20, 32),
    "int8 of rows": (1, 1),
    "int8 of 128": (130, 128),
    "int8 of 32 with zero points": (35, 32),
    "float8 of rows": (1, 1),
    "float8 of 128": (128 + 4 / 128, 128),  # a scale of 128 x 128 weights
}
"""Bytes of a number of weights in a file."""


def as_in_files(name: str, num_outputs: int, num_inputs: int) -> HeldWeight:
    """A random weight whose scales have no more bits than those of files."""
    weight = random_weight((FORMATS | FLOAT8)[name], num_outputs, num_inputs)
    held = weight.held
    if name == "q2_k":
        assert held.scales is not None
        assert held.offsets is not None
        held = replace(held, scales=held.scales & 15, offsets=held.offsets & 15)
    if name == "nvfp4":
        assert held.scales is not None
        held = replace(held, scales=held.scales.to(torch.float8_e4m3fn).half())
    return replace(weight, held=held)


@pytest.mark.parametrize("name", FILE_BYTES)
def test_the_device_holds_hardly_more_than_the_file(name: str) -> None:
    fmt, (num_bytes, count) = (FORMATS | FLOAT8)[name], FILE_BYTES[name]
    border = {ScaleType.SUPER: SUPER_GROUP, ScaleType.NONE: 1}.get(fmt.scales, fmt.group)
    for num_inputs in (576, 896, 2048, 2880):
        if num_inputs % border == 0:
            stored = store(as_in_files(name, 48, num_inputs), DEVICE)
            assert stored.num_bytes <= 1.05 * (48 * num_inputs * num_bytes / count), num_inputs


def test_scales_take_one_byte_only_where_that_is_exact() -> None:
    fmt = WeightFormat(4, scales=ScaleType.BFLOAT16, zero=8)
    codes = torch.zeros(2, 64, dtype=torch.uint8)
    found = {}
    for name, values in {
        "powers": [2.0**-127, 0.5, 2.0**127, 1.0],
        "zero": [2.0**-127, 0.5, 2.0**127, 0.0],
        "negative": [-(2.0**30), 1.0, 1.0, 1.0],
        "small": [-1.125, 0.0, 448.0, 2.0**-9],
        "not a number": [torch.nan, 1.0, 1.0, 1.0],
        "infinite": [torch.inf, 1.0, 1.0, 1.0],
    }.items():
        scales = torch.tensor(values).view(2, 2).bfloat16()
        found[name] = store(HeldWeight(fmt, GroupedRows(codes, scales)), DEVICE).format.scales
    assert found.pop("powers") == "e8m0"
    assert found.pop("small") == "e4m3"
    assert set(found.values()) == {"bfloat16"}


def test_integers_take_half_a_byte_only_where_all_fit() -> None:
    weight = as_in_files("q2_k", 4, 256)
    assert store(weight, DEVICE).format.has_nibbles
    assert weight.held.scales is not None
    for value in (16, -1):
        scales = weight.held.scales.clone()
        scales[3, 7] = value
        assert not store(replace(weight, held=replace(weight.held, scales=scales)), DEVICE).format.has_nibbles


def test_equal_zero_points_take_no_memory() -> None:
    weight = random_weight(FORMATS["int4 of 64 with zero points"], 4, 128)
    for zeros, is_stored in ((torch.full((4, 2), 8), False), (torch.tensor([[8, 8]] * 3 + [[8, 7]]), True)):
        rows = replace(weight.held, zero_points=zeros.to(torch.uint8))
        stored = store(HeldWeight(weight.format, rows), DEVICE)
        assert stored.format.has_zero_points == is_stored == (stored.held.zero_points is not None)
        assert stored.format.zero == (0 if is_stored else 8)


def test_a_step_has_no_more_inputs_than_a_layer_needs() -> None:
    """Slices are as long as the number of inputs allows without unused bits in the words of the wide plane."""
    q4_0, q5_0, q6_k = FORMATS["q4_0"], FORMATS["q5_0"], FORMATS["q6_k"]
    steps = [
        (stored_format(fmt, size).lanes, stored_format(fmt, size).step)
        for fmt, size in ((q4_0, 896), (q4_0, 576), (q5_0, 1024), (q5_0, 896), (q6_k, 256))
    ]
    assert steps == [(32, 128), (16, 64), (32, 256), (16, 128), (16, 128)]


def test_a_weight_is_read_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from rtlang_kernels.triton.linear import stored_codes

    weight, read = random_weight(FORMATS["q5_1"], 10, 64), []

    class Watched:
        format, shape, input_order = weight.format, weight.shape, None

        def rows(self, first: int, last: int) -> GroupedRows:
            read.append((first, last))
            return weight.rows(first, last)

    whole = store(weight, DEVICE)
    monkeypatch.setattr(stored_codes, "_BLOCK", 4 * 64 + 1)
    parts = store(Watched(), DEVICE)
    assert read == [(0, 4), (4, 8), (8, 10)]
    assert parts.format == whole.format
    for a, b in zip(parts.held, whole.held, strict=True):
        assert (a is None and b is None) or (a is not None and b is not None and torch.equal(a, b))


def test_an_empty_weight_is_named() -> None:
    empty = HeldWeight(FORMATS["q4_0"], GroupedRows(torch.zeros(0, 32, dtype=torch.uint8), torch.zeros(0, 1).half()))
    with pytest.raises(ValueError, match=r"weight = \[0, 32\]"):
        store(empty, DEVICE)
