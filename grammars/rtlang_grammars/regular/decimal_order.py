"""How the digits of a number, read one by one, compare with a constant; exactly, in decimal."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from rtlang_grammars.spec import GrammarError

LESS, EQUAL, GREATER = -1, 0, 1
_MAX_DIGITS = 400


def decimal_digits(value: Fraction) -> tuple[str, str]:
    """The digits of a value >= 0 before and after the point, without needless zeros.

    Raises:
        GrammarError: it has no finite decimal form, or a very long one.
    """
    places, denominator = 0, value.denominator
    while denominator % 10 == 0:
        denominator //= 10
        places += 1
    while denominator != 1:
        factor = 2 if denominator % 2 == 0 else 5
        if denominator % factor:
            raise GrammarError(f"the number {value} has no finite decimal form")
        denominator //= factor
        places += 1
    if places > _MAX_DIGITS or value >= Fraction(10) ** _MAX_DIGITS:
        raise GrammarError(f"bounds and steps of numbers may have at most {_MAX_DIGITS} digits")
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:].rstrip("0")) if places else (digits, "")
    return whole, fraction


class Compared(NamedTuple):
    """How a magnitude compares so far: digits read of the part, and the first difference."""

    is_fraction: bool
    position: int
    order: int


class Comparator:
    """Compares a magnitude with a constant, digit by digit."""

    def __init__(self, constant: Fraction) -> None:
        self.whole, self.fraction = decimal_digits(constant)
        self.start = Compared(False, 0, EQUAL)

    def digit(self, state: Compared, digit: int, is_fraction: bool) -> Compared:
        """After one more digit."""
        _, position, order = state
        if not is_fraction:
            if position >= len(self.whole):  # more digits than the constant: greater whatever follows
                return Compared(False, len(self.whole) + 1, GREATER)
            return Compared(False, position + 1, order or order_of(digit, int(self.whole[position])))
        if not state.is_fraction:
            position, order = 0, self._whole_order(state)
        if order:
            return Compared(True, 0, order)
        if position >= len(self.fraction):
            return Compared(True, position, GREATER if digit else EQUAL)
        order = order_of(digit, int(self.fraction[position]))
        return Compared(True, 0 if order else position + 1, order)

    def next_digits(self, state: Compared) -> str:
        """The digits of the constant that the next one may be compared with."""
        if state.is_fraction:
            return self.fraction[state.position : state.position + 1]
        return self.whole[state.position : state.position + 1] + self.fraction[:1]

    def order(self, state: Compared) -> int:
        """How the whole number compares."""
        order = state.order if state.is_fraction else self._whole_order(state)
        missing = self.fraction and not (state.is_fraction and state.position >= len(self.fraction))
        return LESS if order == EQUAL and missing else order

    def _whole_order(self, state: Compared) -> int:
        return LESS if state.position < len(self.whole) else state.order


def order_of(one: int, other: int) -> int:
    """How two numbers compare."""
    return (one > other) - (one < other)


@lru_cache(maxsize=1024)
def alike_between(compared: frozenset[str]) -> tuple[int, ...]:
    """For each digit the least one that compares alike with some digits, and with 0."""
    edges = {0, *map(int, compared)}
    found: list[int] = []
    for digit in range(10):
        is_like_last = digit not in edges and digit - 1 not in edges
        found.append(found[-1] if is_like_last else digit)
    return tuple(found)
