"""Conversion to and from float8 e4m3 (torch's float8_e4m3fn): by integer operations, which every processor and the interpreter support.

Values saturate at 448; NaN becomes a NaN code. From sm_89 on, NVIDIA converts codes of two elements with one instruction; triton has it for
sm_90. A loop over 64 keys then takes 897 instructions instead of 1,890 (triton 3.9, heads of 128, one row; 947 and 2,189 with 3.6).
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
    """Convert uint8 codes to float16, exactly; a NaN code becomes 480."""
    wide = code.to(tl.uint16)
    bits = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)
    return bits.to(tl.float16, bitcast=True) * UP


@jit
def read_float8(code: tl.tensor, IS_NATIVE: tl.constexpr) -> tl.tensor:
    """Convert uint8 codes to float16, exactly; a NaN code becomes NaN. IS_NATIVE: by the processor's instruction."""
    if IS_NATIVE:
        return code.to(tl.float8e4nv, bitcast=True).to(tl.float16)
    else:
        return tl.where((code & 0x7F) == 0x7F, float("nan"), from_float8(code))


@jit
def to_float8(x: tl.tensor) -> tl.tensor:
    """Convert float32 to uint8 codes, rounding to nearest even."""
    bits = (tl.minimum(tl.maximum(x, -LARGEST), LARGEST) * DOWN).to(tl.uint32, bitcast=True)
    size = bits & 0x7FFFFFFF
    code = (size + 0x7FFFF + ((size >> 20) & 1)) >> 20
    code = tl.where(x != x, 0x7F, code)
    return (((bits >> 24) & 0x80) | code).to(tl.uint8)
