"""Patterns of instructions that flush subnormal numbers find those and no others, in the kernels in which bits count."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rtlang_kernels.contract.low_bit import ScaleType, WeightFormat
from rtlang_kernels.triton.aot.variant import ANY_FLUSH, ARITHMETIC_FLUSH, CompiledVariant
from rtlang_kernels.triton.linear.stored_codes import stored_format

FLOAT8 = stored_format(WeightFormat(8, scales=ScaleType.NONE, is_float8=True), 512)
Q4 = stored_format(WeightFormat(4, zero=8), 512)


def test_patterns_of_flushing_instructions() -> None:
    pattern = re.compile(ARITHMETIC_FLUSH)
    assert pattern.search("mul.ftz.f32 %f1, %f2, %f3;")
    assert pattern.search("cvt.rn.ftz.f16.f32 %h1, %f1;")
    assert not pattern.search("ex2.approx.ftz.f32 %f1, %f2; mul.rn.f16 %h1, %h2, %h3;")
    assert re.search(ANY_FLUSH, "fma.rn.ftz.f32 %f1, %f2, %f3, %f4;")


@pytest.mark.parametrize(
    ("name", "constants", "pattern"),
    [
        ("sample_finish fp32 1000", {}, ANY_FLUSH),
        ("sample_stats fp32 1000", {}, None),
        ("rect_attn bf16 kv8", {"KV_FLOAT8": True}, ARITHMETIC_FLUSH),
        ("rect_attn bf16", {"KV_FLOAT8": False}, None),
        ("rope_append bf16", {"TO_FLOAT8": True}, ARITHMETIC_FLUSH),
        ("low_bit_product bf16", {"FORMAT": FLOAT8}, ARITHMETIC_FLUSH),
        ("low_bit_rows bf16", {"FORMAT": Q4}, ANY_FLUSH),
    ],
)
def test_kernels_that_must_keep_subnormal_numbers(name: str, constants: dict[str, Any], pattern: str | None) -> None:
    assert CompiledVariant(name, None, {}, constants).flush_pattern == pattern
