"""Patterns of instructions that flush subnormal numbers find those and no others."""

from __future__ import annotations

import re

from rtlang_kernels.triton.aot.variant import ANY_FLUSH, ARITHMETIC_FLUSH


def test_patterns_of_flushing_instructions() -> None:
    pattern = re.compile(ARITHMETIC_FLUSH)
    assert pattern.search("mul.ftz.f32 %f1, %f2, %f3;")
    assert pattern.search("cvt.rn.ftz.f16.f32 %h1, %f1;")
    assert not pattern.search("ex2.approx.ftz.f32 %f1, %f2; mul.rn.f16 %h1, %h2, %h3;")
    assert re.search(ANY_FLUSH, "fma.rn.ftz.f32 %f1, %f2, %f3, %f4;")
