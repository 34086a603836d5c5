"""Sampling noise on a GPU: the words and exact variates of `reference.noise`, bit for bit, and a cheap approximation.

Exact functions repeat the reference operation for operation in float32; their kernels are compiled without fused multiply-adds. The
approximation uses the hardware logarithm and only finds the few tokens that can win; MARGIN bounds the error between two
approximate scores.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.reference import noise
from rtlang_kernels.triton.primitives.jit import jit

SQRT_HALF_BITS = tl.constexpr(noise.SQRT_HALF_BITS)
LN_2 = tl.constexpr(float(noise.LN_2))
LOG2_E = tl.constexpr(float(noise.LOG2_E))
EXP_FLOOR = tl.constexpr(float(noise.EXP_FLOOR))
LOG1M_SPLIT = tl.constexpr(float(noise.LOG1M_SPLIT))
TWO_POW_M32 = tl.constexpr(2.0**-32)
BELOW_ONE = tl.constexpr(float(noise.BELOW_ONE))
ROUNDER = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer, ties to even
L0, L1, L2, L3, L4, L5, L6, L7 = (tl.constexpr(float(c)) for c in noise.LOG_COEFFICIENTS)
E0, E1, E2, E3, E4, E5 = (tl.constexpr(float(c)) for c in noise.EXP2_COEFFICIENTS)
# The approximation error is below 5e-5 plus the rounding of a score; the margin is twice that, with room to spare.
MARGIN, RELATIVE_MARGIN = tl.constexpr(1e-3), tl.constexpr(2.0**-20)


@jit
def words(
    key_0: tl.tensor,
    key_1: tl.tensor,
    step_0: tl.tensor,
    step_1: tl.tensor,
    first_block: tl.tensor,
    NUM_BLOCKS: tl.constexpr,
) -> tl.tensor:
    """Philox words of tokens from 4 * first_block on: uint32 [4 * NUM_BLOCKS], token order."""
    block = (first_block + tl.arange(0, NUM_BLOCKS)).to(tl.uint32, bitcast=True)
    key = (key_1.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | key_0.to(tl.uint32, bitcast=True).to(tl.uint64)
    zero = block * 0
    low, high = zero + step_0.to(tl.uint32, bitcast=True), zero + step_1.to(tl.uint32, bitcast=True)
    a, b, c, d = tl.philox(key, block, low, high, zero)
    return tl.join(tl.join(a, c), tl.join(b, d)).reshape(4 * NUM_BLOCKS)


@jit
def words_at(key_0: tl.tensor, key_1: tl.tensor, step_0: tl.tensor, step_1: tl.tensor, tokens: tl.tensor) -> tl.tensor:
    """Philox words of arbitrary tokens (non-negative int32), in their shape: uint32."""
    block = (tokens >> 2).to(tl.uint32, bitcast=True)
    key = (key_1.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | key_0.to(tl.uint32, bitcast=True).to(tl.uint64)
    zero = block * 0
    low, high = zero + step_0.to(tl.uint32, bitcast=True), zero + step_1.to(tl.uint32, bitcast=True)
    a, b, c, d = tl.philox(key, block, low, high, zero)
    lane = tokens & 3
    return tl.where(lane == 0, a, tl.where(lane == 1, b, tl.where(lane == 2, c, d)))


@jit
def _log_core(f: tl.tensor, exponent: tl.tensor) -> tl.tensor:
    series = ((((((L7 * f + L6) * f + L5) * f + L4) * f + L3) * f + L2) * f + L1) * f + L0
    square = f * f
    small = (square * f) * series - 0.5 * square
    return exponent * LN_2 + (f + small)


@jit
def _reduced(y: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    bits = y.to(tl.int32, bitcast=True)
    exponent = (bits - SQRT_HALF_BITS) >> 23
    return (bits - (exponent << 23)).to(tl.float32, bitcast=True) - 1.0, exponent.to(tl.float32)


@jit
def _uniform(random: tl.tensor) -> tl.tensor:
    return tl.minimum((random | 1).to(tl.float32) * TWO_POW_M32, BELOW_ONE)


@jit
def gumbel(random: tl.tensor) -> tl.tensor:
    """`reference.noise.gumbel` of uint32 words."""
    w = _uniform(random)
    f, exponent = _reduced(1.0 - w)
    is_small = w < LOG1M_SPLIT
    inner = -_log_core(tl.where(is_small, -w, f), tl.where(is_small, 0.0, exponent))
    f, exponent = _reduced(inner)
    return -_log_core(f, exponent)


@jit
def rough_gumbel(random: tl.tensor) -> tl.tensor:
    """Approximate `gumbel` to within 5e-5, with two hardware logarithms."""
    w = _uniform(random)
    series = w * (1.0 + w * (0.5 + w * 0.33333334))  # -log(1 - w) for small w, where 1 - w loses its digits
    inner = tl.where(w < 0.02, series, -LN_2 * tl.log2(1.0 - w))
    return -LN_2 * tl.log2(inner)


@jit
def exponential(x: tl.tensor) -> tl.tensor:
    """`reference.noise.exp` of non-positive float32."""
    scaled = tl.maximum(x, EXP_FLOOR) * LOG2_E
    whole = (scaled + ROUNDER) - ROUNDER
    rest = scaled - whole
    series = ((((E5 * rest + E4) * rest + E3) * rest + E2) * rest + E1) * rest + E0
    power = ((whole.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return tl.where(x < EXP_FLOOR, 0.0, series * power)
