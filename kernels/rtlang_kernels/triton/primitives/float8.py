"""Conversion to and from float8 e4m3 (torch's float8_e4m3fn) by integer operations, so that every processor and the interpreter support it.

Values saturate at 448; NaN becomes a NaN code, which `from_float8` reads as 480.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit

LARGEST = tl.constexpr(448.0)
DOWN, UP = (
    tl.constexpr(2.0**-120),
    tl.constexpr(256.0),
)  # shift exponents between e4m3 and float32 or float16


@jit
def from_float8(code: tl.tensor) -> tl.tensor:
    """Convert uint8 codes to float16, exactly."""
    wide = code.to(tl.uint16)
    bits = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)
    return bits.to(tl.float16, bitcast=True) * UP


@jit
def to_float8(x: tl.tensor) -> tl.tensor:
    """Convert float32 to uint8 codes, rounding to nearest even."""
    bits = (tl.minimum(tl.maximum(x, -LARGEST), LARGEST) * DOWN).to(tl.uint32, bitcast=True)
    size = bits & 0x7FFFFFFF
    code = (size + 0x7FFFF + ((size >> 20) & 1)) >> 20
    code = tl.where(x != x, 0x7F, code)
    return (((bits >> 24) & 0x80) | code).to(tl.uint8)
