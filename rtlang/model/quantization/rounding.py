"""Rounds a float matrix to codes with a scale per group of inputs, searching the scales of the least error.

The largest magnitude of a group is a poor scale: cutting off an outlier often costs less than rounding all others coarsely. For each
group some fractions of it are tried, and the best one is refined by least squares for the codes that it gives. With `importance`, the
mean square of each input over a text, errors count by how much they change the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, ScaleType, WeightFormat

# Fractions of the range of a group that are tried, and then others around the best one.
_COARSE = {4: torch.linspace(0.5, 1.25, 16).tolist(), 8: torch.linspace(0.94, 1.0, 4).tolist()}
_FINE = {4: (-0.03, -0.015, 0.015, 0.03), 8: (-0.01, 0.01)}
_SHIFTS = (-1.0, 0.0, 1.0)  # of zero points
_NUM_REFINED = 2
_CHUNK = 1 << 22  # elements of a matrix at a time
_TINY = 1e-30


@dataclass(frozen=True, slots=True)
class Rounding:
    """How matrices are rounded.

    Attributes:
        bits: 4 or 8.
        group: inputs that share a scale, a multiple of 32.
        has_zero_points: codes around a zero point of each group instead of around the middle.
        scales: the type of the scales.
    """

    bits: int
    group: int
    has_zero_points: bool = False
    scales: ScaleType = ScaleType.BFLOAT16

    @property
    def format(self) -> WeightFormat:
        """The format of rounded weights."""
        zero = 0 if self.has_zero_points else 1 << (self.bits - 1)
        return WeightFormat(self.bits, self.group, self.scales, zero, has_zero_points=self.has_zero_points)

    @property
    def most(self) -> int:
        """The largest code."""
        return (1 << self.bits) - 1


def rounded(weight: Tensor, rounding: Rounding, importance: Tensor | None = None) -> HeldWeight:
    """Round a matrix [out, in], of which `in` is a multiple of the group.

    Args:
        importance: [in], how much the squared error of each input counts; default: all the same.
    """
    num_outputs, num_inputs = weight.shape
    factors = None if importance is None else importance.float().view(1, -1, rounding.group) + _TINY
    step = max(1, _CHUNK // num_inputs)
    parts = [
        _rounded(
            weight[start : start + step].float().view(-1, num_inputs // rounding.group, rounding.group),
            rounding,
            factors,
        )
        for start in range(0, num_outputs, step)
    ]
    codes, scales, zeros = (torch.cat(each) for each in zip(*parts, strict=True))
    rows = GroupedRows(codes.view(num_outputs, num_inputs), scales.squeeze(-1).contiguous())
    if rounding.has_zero_points:
        rows.zero_points = zeros.squeeze(-1).to(torch.uint8).contiguous()
    return HeldWeight(rounding.format, rows)


def _rounded(values: Tensor, rounding: Rounding, factors: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Codes, scales and zero points of groups [n, groups, group]."""
    search = _Search(values, rounding, factors)
    for fraction in _COARSE[rounding.bits]:
        search.attempt_fraction(torch.full_like(search.scale, fraction))
    middle = search.fraction.clone()
    for shift in _FINE[rounding.bits]:
        search.attempt_fraction(middle + shift)
    for _ in range(_NUM_REFINED):
        search.refine()
    codes = _codes(values, search.scale, search.zero, rounding.most).to(torch.uint8)
    return codes, search.scale.to(getattr(torch, rounding.scales.value)), search.zero


class _Search:
    """The best scale and zero point of each group so far."""

    def __init__(self, values: Tensor, rounding: Rounding, factors: Tensor | None) -> None:
        self._values, self._rounding, self._factors = values, rounding, factors
        self._low = values.amin(-1, keepdim=True).clamp(max=0.0)
        self._high = values.amax(-1, keepdim=True).clamp(min=0.0)
        self._error = torch.full_like(self._low, float("inf"))
        self.scale, self.zero, self.fraction = (torch.zeros_like(self._low) for _ in range(3))

    def attempt_fraction(self, fraction: Tensor) -> None:
        """Try these fractions of the range of each group."""
        most, middle = self._rounding.most, float(1 << (self._rounding.bits - 1))
        if not self._rounding.has_zero_points:  # the lowest code is one step farther from the middle than the highest
            scale = torch.maximum(-self._low / middle, self._high / (middle - 1)) * fraction
            self._attempt(scale, torch.full_like(scale, middle), fraction)
            return
        scale = (self._high - self._low) * (fraction / most)
        zero = (-self._low * fraction / scale.clamp(min=_TINY)).round()
        for shift in _SHIFTS:
            self._attempt(scale, (zero + shift).clamp(0.0, most), fraction)

    def refine(self) -> None:
        """Try the scales of the least squared error for the best codes so far."""
        values = self._values
        steps = _codes(values, self.scale, self.zero, self._rounding.most) - self.zero
        counted = steps if self._factors is None else steps * self._factors
        scale = (counted * values).sum(-1, keepdim=True) / (counted * steps).sum(-1, keepdim=True).clamp(min=_TINY)
        self._attempt(scale, self.zero.clone(), self.fraction)

    def _attempt(self, scale: Tensor, zero: Tensor, fraction: Tensor) -> None:
        """Keep what is better than before."""
        scale = scale.to(getattr(torch, self._rounding.scales.value)).float()
        errors = _codes(self._values, scale, zero, self._rounding.most).sub_(zero).mul_(scale).sub_(self._values)
        errors = errors.square_() if self._factors is None else errors.square_().mul_(self._factors)
        error = errors.sum(-1, keepdim=True)
        is_better = error < self._error
        for best, found in ((self._error, error), (self.scale, scale), (self.zero, zero), (self.fraction, fraction)):
            torch.where(is_better, found, best, out=best)


def _codes(values: Tensor, scale: Tensor, zero: Tensor, most: int) -> Tensor:
    inverse = torch.where(scale == 0.0, 0.0, 1.0 / scale.clamp(min=_TINY))
    return (values * inverse).round_().add_(zero).clamp_(0.0, most)
