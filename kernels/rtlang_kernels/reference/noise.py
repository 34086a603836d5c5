"""Sampling noise, bit for bit: Philox4x32-10 and the two logarithms of a Gumbel variate.

Every float32 operation below rounds once and none is fused, so numpy, compiled CPU code and GPU kernels give the same bits. The
logarithm is written out because library versions differ in their last bit.

Sources: Salmon et al. 2011 (Philox); Gumbel-max trick; Abramowitz & Stegun 4.1 for the series behind the polynomial, fitted by
least squares on Chebyshev nodes of [sqrt(1/2), sqrt(2)].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PHILOX_M0, PHILOX_M1 = 0xD2511F53, 0xCD9E8D57
PHILOX_W0, PHILOX_W1 = 0x9E3779B9, 0xBB67AE85
MASK_32, MASK_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
SPLITMIX_GAMMA, SPLITMIX_M0, SPLITMIX_M1 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

SQRT_HALF_BITS = 0x3F3504F3
LN_2 = np.float32(0.6931471805599453)


def mix_key(seed: int, choice: int) -> int:
    """The 64-bit Philox key of a sequence: its seed mixed with its choice number (splitmix64)."""
    z = (seed + (choice + 1) * SPLITMIX_GAMMA) & MASK_64
    z = ((z ^ (z >> 30)) * SPLITMIX_M0) & MASK_64
    z = ((z ^ (z >> 27)) * SPLITMIX_M1) & MASK_64
    return z ^ (z >> 31)


def mix_keys(seeds: NDArray[np.uint64], choices: NDArray[np.int32]) -> NDArray[np.uint64]:
    """`mix_key` of many sequences: uint64, of the same length as both arguments."""
    first, second, third = np.uint64(30), np.uint64(27), np.uint64(31)
    z = seeds + (choices.astype(np.int64) + 1).astype(np.uint64) * np.uint64(SPLITMIX_GAMMA)  # arrays wrap around
    z = (z ^ (z >> first)) * np.uint64(SPLITMIX_M0)
    z = (z ^ (z >> second)) * np.uint64(SPLITMIX_M1)
    mixed: NDArray[np.uint64] = z ^ (z >> third)
    return mixed


def philox(key: int, step: int, num_blocks: int) -> NDArray[np.uint32]:
    """Philox4x32-10 of counters (block, step low, step high, 0): uint32 [num_blocks, 4]."""
    c0 = np.arange(num_blocks, dtype=np.uint64)
    c1 = np.full(num_blocks, step & MASK_32, dtype=np.uint64)
    c2 = np.full(num_blocks, step >> 32 & MASK_32, dtype=np.uint64)
    c3 = np.zeros(num_blocks, dtype=np.uint64)
    k0, k1 = key & MASK_32, key >> 32
    low = np.uint64(MASK_32)
    shift = np.uint64(32)
    for _ in range(10):
        product_0, product_1 = c0 * np.uint64(PHILOX_M0), c2 * np.uint64(PHILOX_M1)
        c0 = (product_1 >> shift) ^ c1 ^ np.uint64(k0)
        c2 = (product_0 >> shift) ^ c3 ^ np.uint64(k1)
        c1, c3 = product_1 & low, product_0 & low
        k0, k1 = (k0 + PHILOX_W0) & MASK_32, (k1 + PHILOX_W1) & MASK_32
    return np.stack((c0, c1, c2, c3), axis=-1).astype(np.uint32)


# log(1 + f) = f - f^2/2 + f^3 * (polynomial in f, lowest power first), relative error 1e-8 before rounding
LOG_COEFFICIENTS = tuple(
    np.float32(c)
    for c in (0.33333354, -0.25000852, 0.19999827, -0.16621370, 0.14227114, -0.13202104, 0.12620327, -0.07362868)
)
# 2^f on [-1/2, 1/2], relative error 8e-8
EXP2_COEFFICIENTS = tuple(np.float32(c) for c in (1.0, 0.69314695, 0.24022122, 0.055507426, 0.0096754597, 0.0013266970))
LOG2_E = np.float32(1.4426950408889634)
EXP_FLOOR = np.float32(-87.0)  # exp is 0 below this
LOG1M_SPLIT = np.float32(0.29289321)  # 1 - sqrt(1/2): up to here log(1 - w) needs no range reduction
TWO_POW_M32 = np.float32(2.0**-32)
BELOW_ONE = np.float32(1.0 - 2.0**-24)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1.0), np.float32(0.0)


def _log_core(f: NDArray[np.float32], exponent: NDArray[np.float32]) -> NDArray[np.float32]:
    square = f * f
    series = np.full_like(f, LOG_COEFFICIENTS[-1])
    for coefficient in LOG_COEFFICIENTS[-2::-1]:
        series = series * f + coefficient
    small = (square * f) * series - HALF * square
    return exponent * LN_2 + (f + small)


def _reduced(y: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """f and e with y = (1 + f) * 2^e and 1 + f in [sqrt(1/2), sqrt(2))."""
    bits = y.view(np.int32)
    exponent = (bits - np.int32(SQRT_HALF_BITS)) >> 23
    mantissa = (bits - (exponent << 23)).astype(np.int32).view(np.float32)
    return mantissa - ONE, exponent.astype(np.float32)


def log(y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Natural logarithm of positive normal float32 values, by a fixed sequence of float32 operations."""
    return _log_core(*_reduced(y))


def exp(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Exponential of non-positive float32, in fixed float32 arithmetic; 0 below -87."""
    scaled = np.maximum(x, EXP_FLOOR) * LOG2_E
    whole = np.rint(scaled)
    rest = scaled - whole
    series = np.full_like(rest, EXP2_COEFFICIENTS[-1])
    for coefficient in EXP2_COEFFICIENTS[-2::-1]:
        series = series * rest + coefficient
    power = ((whole.astype(np.int32) + 127) << 23).astype(np.int32).view(np.float32)
    return np.where(x < EXP_FLOOR, ZERO, series * power)


def gumbel(random: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Gumbel variates -log(-log(1 - w)), w = random / 2^32, for uint32 words; between -2.82 and 22.19.

    The uniform number is represented by w, its distance from 1: the largest variates come from the smallest w, where float32 is finest.
    """
    w = np.minimum((random | np.uint32(1)).astype(np.float32) * TWO_POW_M32, BELOW_ONE)
    f, exponent = _reduced(ONE - w)
    is_small = w < LOG1M_SPLIT
    f, exponent = np.where(is_small, -w, f), np.where(is_small, ZERO, exponent)
    return -log(-_log_core(f, exponent))
