"""DFAs for the JSON numbers on one side of a bound, built digit by digit.

A number compares with a bound by its sign, then by its digits. Numbers with an exponent must be normalized: zero, or one nonzero
digit before the point. Their exponents are compared first, so the digits after the letter only have to lie in an interval. Every
other number may have an exponent of zero. Exponents range from -324 to 308. For a bound that is very large or very small,
numbers that share many digits with it must be written with an exponent. `-0` counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from rtlang_grammars.regular.numeric.decimal_order import EQUAL, GREATER, LESS, decimal_digits, order_of

NUM_SYMBOLS = 14
_MINUS, _PLUS, _POINT, _LETTER = 10, 11, 12, 13
"""Symbols after the ten digits."""
_NONE = -1
_LOWEST, _HIGHEST = -324, 308
_EXPONENT_DIGITS = 3
_MAX_PLAIN_PLACES = 40

Table: TypeAlias = tuple[list[tuple[int, ...]], list[bool]]
"""Transition rows over the symbols (-1: no transition) and an acceptance flag per state. State 0 is the start state."""
_Comparison: TypeAlias = tuple[int, int]
"""The number of leading digits shared with a constant, and the order at the first different digit; the count is 0 once they differ."""
_Suffixes: TypeAlias = tuple[tuple[int, int] | None, ...]
"""For each number of remaining digits, starting at 0: the interval of values that they may form, or None."""


def bound_table(bound: Fraction, *, is_minimum: bool, is_exclusive: bool, has_all_places: bool = False) -> Table:
    """Build the transition table of a bound; it may contain dead states.

    Args:
        bound: the bound, a finite decimal.
        is_minimum: whether numbers must be at least `bound` rather than at most.
        is_exclusive: whether `bound` itself is rejected.
        has_all_places: compare all digits of a very large or very small bound without an exponent, too.
    Raises:
        GrammarError: the bound has no finite decimal form or more than 400 digits.
    """
    return _Builder(bound, is_minimum, is_exclusive, has_all_places).table()


class _Builder:
    """Builds one table. A state gets its number on first use, and its row when the worklist reaches it."""

    def __init__(self, bound: Fraction, is_minimum: bool, is_exclusive: bool, has_all_places: bool) -> None:
        self._bound, self._is_minimum, self._is_exclusive = bound, is_minimum, is_exclusive
        magnitude = abs(bound)
        whole, fraction = decimal_digits(magnitude)
        self._whole, self._fraction = list(map(int, whole)), list(map(int, fraction))
        self._mantissa = list(map(int, (whole + fraction).strip("0") or "0"))
        self._exponent = len(whole) - 1 if magnitude >= 1 else len(fraction.lstrip("0")) - len(fraction) - 1
        is_extreme = abs(self._exponent) > _MAX_PLAIN_PLACES and not has_all_places
        self._most_places = _MAX_PLAIN_PLACES if is_extreme else len(whole) + len(fraction)
        self._numbers: dict[Hashable, int] = {}
        self._worklist: list[Callable[[list[int]], bool] | None] = []
        self._rows: list[tuple[int, ...]] = []
        self._accepting: list[bool] = []

    def table(self) -> Table:
        """See `bound_table`."""
        self._state("start", lambda row: self._start(row, False))
        for number, fill in enumerate(self._worklist):  # grows during iteration
            if fill is not None:
                row = [_NONE] * NUM_SYMBOLS
                self._accepting[number] = fill(row)
                self._rows[number] = tuple(row)
        return self._rows, self._accepting

    def _state(self, key: Hashable, fill: Callable[[list[int]], bool]) -> int:
        """Return the number of a state; `fill` writes its row and returns whether it accepts."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._worklist)
            self._worklist.append(fill)
            self._rows.append(())
            self._accepting.append(False)
        return number

    def _accepts(self, is_negative: bool, order: int) -> bool:
        """Whether to accept a number with the sign of the bound whose magnitude compares as `order` with the bound's."""
        order = -order if is_negative else order
        return not self._is_exclusive if order == EQUAL else order == (GREATER if self._is_minimum else LESS)

    def _accepts_zero(self) -> bool:
        return self._accepts(False, order_of(0, self._bound.numerator))

    def _start(self, row: list[int], is_negative: bool) -> bool:
        """Before the first digit."""
        if not is_negative:
            row[_MINUS] = self._state("minus", lambda row: self._start(row, True))
        row[0] = self._state(("zero", is_negative), lambda row: self._zero(row, is_negative))
        if self._bound == 0 or is_negative != (self._bound < 0):  # the sign decides
            if self._accepts(False, LESS if is_negative else GREATER):
                row[1:10] = [self._state(("any", False, True), lambda row: self._any(row, False, True))] * 9
            return False
        for digit in range(1, 10):
            order = order_of(digit, self._whole[0])
            difference = order_of(digit, self._mantissa[0])
            row[digit] = self._whole_part(is_negative, 1, order, (1 - abs(difference), difference))
        return False

    def _any(self, row: list[int], is_fraction: bool, may_scale: bool) -> bool:
        """The comparison is decided: accept any continuation. `may_scale`: an exponent may follow directly or after the fraction."""
        if is_fraction:
            row[:10] = [self._state(("any", True, may_scale), lambda row: self._any(row, True, may_scale))] * 10
        else:
            row[:10] = [self._state(("any", False, False), lambda row: self._any(row, False, False))] * 10
            row[_POINT] = self._any_point(may_scale)
        row[_LETTER] = self._scaled(_LOWEST, _HIGHEST) if may_scale else self._scaled(0, 0)
        return True

    def _any_point(self, may_scale: bool) -> int:
        def fill(row: list[int]) -> bool:
            row[:10] = [self._state(("any", True, may_scale), lambda row: self._any(row, True, may_scale))] * 10
            return False

        return self._state(("any point", may_scale), fill)

    def _zero(self, row: list[int], is_negative: bool) -> bool:
        """After the single digit 0 of the integer part."""
        comparison = (0, EQUAL if self._whole == [0] else LESS)
        row[_POINT] = self._zero_fraction(is_negative, comparison, True)
        if self._accepts_zero():
            row[_LETTER] = self._scaled(_LOWEST, _HIGHEST)
        return self._accepts_zero()

    def _zero_fraction(self, is_negative: bool, comparison: _Comparison, is_point: bool) -> int:
        """After the point of a fraction that has only zeros so far; `is_point`: no digit yet."""
        is_decided = self._bound == 0 or is_negative != (self._bound < 0)
        if is_decided:
            comparison = (0, LESS)

        def fill(row: list[int]) -> bool:
            for digit in range(10):
                after = self._next_comparison(comparison, self._fraction, digit)
                if digit == 0:
                    row[0] = _NONE if after is None else self._zero_fraction(is_negative, after, False)
                elif not is_decided:
                    row[digit] = _NONE if after is None else self._fraction_part(is_negative, after, None, False)
                elif self._accepts(False, LESS if is_negative else GREATER):
                    row[digit] = self._state(("any", True, False), lambda row: self._any(row, True, False))
            if not is_point and self._accepts_zero():
                row[_LETTER] = self._scaled(_LOWEST, _HIGHEST)
            return not is_point and self._accepts_zero()

        return self._state(("zeros", is_negative, comparison, is_point), fill)

    def _whole_part(self, is_negative: bool, position: int, order: int, mantissa: _Comparison | None) -> int:
        """After `position` digits of the integer part, the first nonzero; `mantissa` is given while there is only one."""
        if position > len(self._whole):
            if not self._accepts(is_negative, GREATER):
                return _NONE
            return self._state(("any", False, False), lambda row: self._any(row, False, False))
        if position > self._most_places:
            return _NONE
        total = LESS if position < len(self._whole) else order

        def fill(row: list[int]) -> bool:
            for digit in range(10):
                if position < len(self._whole):
                    after = order or order_of(digit, self._whole[position])
                    row[digit] = self._whole_part(is_negative, position + 1, after, None)
                else:
                    row[digit] = self._whole_part(is_negative, position + 1, GREATER, None)
            row[_POINT] = self._fraction_part(is_negative, (0, total), mantissa, True)
            accepts = self._accepts(is_negative, LESS if total == EQUAL and self._fraction else total)
            row[_LETTER] = self._exponent_part(is_negative, mantissa, accepts)
            return accepts

        return self._state(("whole", is_negative, position, order, mantissa), fill)

    def _fraction_part(
        self, is_negative: bool, plain: _Comparison, mantissa: _Comparison | None, is_point: bool
    ) -> int:
        """In the fraction; `mantissa` is given where a single nonzero digit precedes the point."""
        if plain[1] != EQUAL and mantissa is None:
            if not self._accepts(is_negative, plain[1]):
                return _NONE
            if is_point:
                return self._any_point(False)
            return self._state(("any", True, False), lambda row: self._any(row, True, False))

        def fill(row: list[int]) -> bool:
            for digit in range(10):
                after = self._next_comparison(plain, self._fraction, digit)
                scaled = None if mantissa is None else _compare_next(mantissa, self._mantissa, digit)
                row[digit] = _NONE if after is None else self._fraction_part(is_negative, after, scaled, False)
            if is_point:
                return False
            accepts = self._accepts(is_negative, _order(plain, self._fraction))
            row[_LETTER] = self._exponent_part(is_negative, mantissa, accepts)
            return accepts

        return self._state(("fraction", is_negative, plain, mantissa, is_point), fill)

    def _next_comparison(self, comparison: _Comparison, digits: Sequence[int], digit: int) -> _Comparison | None:
        """The comparison after one more digit; None if that exceeds the digit limit."""
        after = _compare_next(comparison, digits, digit)
        return after if after[0] <= self._most_places else None

    def _exponent_part(self, is_negative: bool, mantissa: _Comparison | None, accepts: bool) -> int:
        """After the letter of the exponent; `accepts`: of the number without it."""
        if mantissa is None:
            return self._scaled(0, 0) if accepts else _NONE
        is_like = self._accepts(is_negative, _order(mantissa, self._mantissa))
        if self._accepts(is_negative, GREATER):
            return self._scaled(self._exponent + (not is_like), _HIGHEST)
        return self._scaled(_LOWEST, self._exponent - (not is_like))

    def _scaled(self, low: int, high: int) -> int:
        """After the letter of an exponent that must lie in an interval."""
        low, high = max(low, _LOWEST), min(high, _HIGHEST)
        if low > high:
            return _NONE
        number = self._numbers.get((low, high))
        if number is None:
            rows, accepting = _exponent_table(low, high)
            number = self._numbers[low, high] = len(self._rows)
            self._rows += [tuple([each if each < 0 else each + number for each in row]) for row in rows]
            self._accepting += accepting
            self._worklist += [None] * len(rows)
        return number


def _compare_next(comparison: _Comparison, digits: Sequence[int], digit: int) -> _Comparison:
    """Advance a comparison with the digits of a constant by one digit; the constant is padded with zeros."""
    position, order = comparison
    if order:
        return comparison
    if position >= len(digits):
        return (0, GREATER) if digit else comparison
    order = order_of(digit, digits[position])
    return (0, order) if order else (position + 1, EQUAL)


def _order(comparison: _Comparison, digits: Sequence[int]) -> int:
    """The order of the digits if none follow."""
    return LESS if comparison[1] == EQUAL and comparison[0] < len(digits) else comparison[1]


@lru_cache(maxsize=1024)
def _exponent_table(low: int, high: int) -> Table:
    """The table of the exponents in an interval: an optional sign and up to three digits."""
    rows: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    numbers: dict[_Suffixes, int] = {}
    worklist: list[_Suffixes] = []

    def state(suffixes: _Suffixes) -> int:
        if not any(suffixes):
            return _NONE
        number = numbers.get(suffixes)
        if number is None:
            number = numbers[suffixes] = 3 + len(worklist)
            worklist.append(suffixes)
        return number

    def digits(suffixes: _Suffixes) -> list[int]:
        return [state(_after_digit(suffixes, digit)) for digit in range(10)]

    def signed(least: int, most: int) -> list[int]:
        intervals = [_clip(least, most, 10**count - 1) for count in range(1, _EXPONENT_DIGITS + 1)]
        return digits((None, *intervals))

    no_moves = [_NONE] * (NUM_SYMBOLS - 10)
    positive, negative = signed(max(low, 0), high), signed(max(-high, 0), -low)
    has_minus, has_plus = max(negative) != _NONE, max(positive) != _NONE
    rows.append((*positive, 2 if has_minus else _NONE, 1 if has_plus else _NONE, _NONE, _NONE))
    rows += [(*positive, *no_moves), (*negative, *no_moves)]
    accepting += [False] * 3
    for suffixes in worklist:  # grows during iteration
        rows.append((*digits(suffixes), *no_moves))
        accepting.append(suffixes[0] is not None)
    return rows, accepting


def _clip(low: int, high: int, most: int) -> tuple[int, int] | None:
    low, high = max(low, 0), min(high, most)
    return (low, high) if low <= high else None


def _after_digit(suffixes: _Suffixes, digit: int) -> _Suffixes:
    found = []
    for count, interval in enumerate(suffixes[1:]):
        size: int = 10**count
        found.append(interval and _clip(interval[0] - digit * size, interval[1] - digit * size, size - 1))
    return tuple(found)
