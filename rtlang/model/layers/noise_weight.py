"""Seeded noise in the form of a weight of few bits, for models without weights ("dummy")."""

from __future__ import annotations

import zlib

import torch
from torch import Tensor

from rtlang_kernels.contract.low_bit import GroupedRows, ScaleType, WeightFormat

# Codes; every weight is a part of them. Sampling a code for each weight would take longer than packing it.
_POOL = 1 << 23
_DEVIATION, _SPREAD = 0.02, 0.4  # of weights, and of scales, which differ by this share


class NoisePool:
    """Codes of a format, sampled once.

    Args:
        fmt: without super-scales, offsets or a table.
    """

    def __init__(self, fmt: WeightFormat, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.format = fmt
        codes = torch.randint(0, 1 << fmt.bits, (_POOL,), generator=generator, dtype=torch.uint8)
        if fmt.is_float8:
            codes[(codes & 127) == 127] = 0  # not a number
            values = codes.view(torch.float8_e4m3fn).float()
        else:
            values = codes.float() - (1 << fmt.bits - 1)
        self.codes = codes
        self.scale = _DEVIATION / float(values.square().mean().sqrt())
        self.factors = 1 + _SPREAD * (torch.rand(_POOL >> 4, generator=generator) - 0.5)

    def weight(self, name: str, shape: tuple[int, int]) -> NoiseWeight | None:
        """The weight of a name, a part of the pool; None if its inputs are not a multiple of the group."""
        group = 32 if self.format.scales is ScaleType.NONE else self.format.group
        return None if shape[1] % group else NoiseWeight(self, zlib.crc32(name.encode()), shape)


class NoiseWeight:
    """Random codes with random scales; implements `LowBitWeight`."""

    input_order: Tensor | None = None

    def __init__(self, pool: NoisePool, start: int, shape: tuple[int, int]) -> None:
        self.format, self.shape = pool.format, shape
        self._pool, self._start = pool, start

    def rows(self, first: int, last: int) -> GroupedRows:
        """See `LowBitWeight`."""
        fmt, pool = self.format, self._pool
        count, num_inputs = last - first, self.shape[1]
        codes = self._part(pool.codes, first * num_inputs, count * num_inputs).view(count, num_inputs)
        if fmt.scales is ScaleType.NONE:
            return GroupedRows(codes, row_scales=pool.scale * self._part(pool.factors, first, count))
        groups = num_inputs // fmt.group
        factors = self._part(pool.factors, first * groups, count * groups).view(count, groups)
        rows = GroupedRows(codes, (pool.scale * factors).to(getattr(torch, fmt.scales.value)))
        if fmt.has_zero_points:  # around the middle
            rows.zero_points = ((1 << fmt.bits - 1) - (factors > 1).int()).to(torch.uint8)
        return rows

    def _part(self, pool: Tensor, first: int, count: int) -> Tensor:
        """`count` elements from a place on that depends on the weight and on `first`; the pool repeats."""
        start = (self._start + first) % len(pool)
        if start + count <= len(pool):
            return pool[start : start + count]
        repeats = -(-(start + count) // len(pool))
        return pool.repeat(repeats)[start : start + count]
