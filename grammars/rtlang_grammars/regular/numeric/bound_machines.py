"""Machines of the numbers on one side of a bound, built digit by digit.

A number compares with a bound by its sign, then by its plain digits. With an exponent, numbers must be written with one digit other than
0 before the point, or be zero: then the exponents compare first, and what may follow the letter is an interval of them. Exponents are
from -324 to 308. Beside a bound that is very large or very small, numbers must have an exponent where they have many digits in common
with it. `-0` counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from rtlang_grammars.regular.numeric.decimal_order import EQUAL, GREATER, LESS, decimal_digits, order_of

NUM_SYMBOLS = 14
_MINUS, _PLUS, _POINT, _LETTER = 10, 11, 12, 13
"""Symbols behind the ten digits."""
_NONE = -1
_LOWEST, _HIGHEST = -324, 308
_EXPONENT_DIGITS = 3
_MAX_PLAIN_PLACES = 40

Table: TypeAlias = tuple[list[tuple[int, ...]], list[bool]]
"""Rows over the symbols, -1 for no state, and for each state whether it accepts. State 0 is the first."""
_Place: TypeAlias = tuple[int, int]
"""How many digits are like those of a constant, and how the first different one compares; then they are counted no more."""
_Suffixes: TypeAlias = tuple[tuple[int, int] | None, ...]
"""For each number of further digits, first none, the interval of what they may be."""


def bound_table(bound: Fraction, *, is_minimum: bool, is_exclusive: bool) -> Table:
    """The table of a bound. Some of its states may lead nowhere.

    Raises:
        GrammarError: the bound has no decimal form, or a very long one.
    """
    return _Builder(bound, is_minimum, is_exclusive).table()


class _Builder:
    """Builds one table: a state is numbered when something first leads to it, and filled in when its turn comes."""

    def __init__(self, bound: Fraction, is_minimum: bool, is_exclusive: bool) -> None:
        self._bound, self._is_minimum, self._is_exclusive = bound, is_minimum, is_exclusive
        magnitude = abs(bound)
        whole, fraction = decimal_digits(magnitude)
        self._whole, self._fraction = list(map(int, whole)), list(map(int, fraction))
        self._mantissa = list(map(int, (whole + fraction).strip("0") or "0"))
        self._exponent = len(whole) - 1 if magnitude >= 1 else len(fraction.lstrip("0")) - len(fraction) - 1
        is_extreme = abs(self._exponent) > _MAX_PLAIN_PLACES
        self._most_places = _MAX_PLAIN_PLACES if is_extreme else len(whole) + len(fraction)
        self._numbers: dict[Hashable, int] = {}
        self._waiting: list[Callable[[list[int]], bool] | None] = []
        self._rows: list[tuple[int, ...]] = []
        self._accepting: list[bool] = []

    def table(self) -> Table:
        """See `bound_table`."""
        self._state("start", lambda row: self._start(row, False))
        for number, fill in enumerate(self._waiting):  # grows while it is walked
            if fill is not None:
                row = [_NONE] * NUM_SYMBOLS
                self._accepting[number] = fill(row)
                self._rows[number] = tuple(row)
        return self._rows, self._accepting

    def _state(self, key: Hashable, fill: Callable[[list[int]], bool]) -> int:
        """The number of a state; `fill` makes its row and says whether it accepts."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._waiting)
            self._waiting.append(fill)
            self._rows.append(())
            self._accepting.append(False)
        return number

    def _accepts(self, is_negative: bool, order: int) -> bool:
        """Whether a number is allowed whose magnitude compares so with the bound's, which has the same sign."""
        order = -order if is_negative else order
        return not self._is_exclusive if order == EQUAL else order == (GREATER if self._is_minimum else LESS)

    def _accepts_zero(self) -> bool:
        return self._accepts(False, order_of(0, self._bound.numerator))

    def _start(self, row: list[int], is_negative: bool) -> bool:
        """Before the first digit."""
        if not is_negative:
            row[_MINUS] = self._state("minus", lambda row: self._start(row, True))
        row[0] = self._state(("zero", is_negative), lambda row: self._zero(row, is_negative))
        if self._bound == 0 or is_negative != (self._bound < 0):  # the sign says it all
            if self._accepts(False, LESS if is_negative else GREATER):
                row[1:10] = [self._state(("any", False, True), lambda row: self._any(row, False, True))] * 9
            return False
        for digit in range(1, 10):
            order = order_of(digit, self._whole[0])
            difference = order_of(digit, self._mantissa[0])
            row[digit] = self._whole_part(is_negative, 1, order, (1 - abs(difference), difference))
        return False

    def _any(self, row: list[int], is_fraction: bool, may_scale: bool) -> bool:
        """Whatever follows, the number is allowed; `may_scale`: there may be an exponent, before a second digit if this is no fraction."""
        if is_fraction:
            row[:10] = [self._state(("any", True, may_scale), lambda row: self._any(row, True, may_scale))] * 10
        else:
            row[:10] = [self._state(("any", False, False), lambda row: self._any(row, False, False))] * 10
            row[_POINT] = self._any_point(may_scale)
        if may_scale:
            row[_LETTER] = self._scaled(_LOWEST, _HIGHEST)
        return True

    def _any_point(self, may_scale: bool) -> int:
        def fill(row: list[int]) -> bool:
            row[:10] = [self._state(("any", True, may_scale), lambda row: self._any(row, True, may_scale))] * 10
            return False

        return self._state(("any point", may_scale), fill)

    def _zero(self, row: list[int], is_negative: bool) -> bool:
        """Behind the one digit 0."""
        place = (0, EQUAL if self._whole == [0] else LESS)
        row[_POINT] = self._zero_fraction(is_negative, place, True)
        if self._accepts_zero():
            row[_LETTER] = self._scaled(_LOWEST, _HIGHEST)
        return self._accepts_zero()

    def _zero_fraction(self, is_negative: bool, place: _Place, is_point: bool) -> int:
        """Behind the point, where there were only zeros; `is_point`: not even those."""
        told = self._bound == 0 or is_negative != (self._bound < 0)
        if told:
            place = (0, LESS)

        def fill(row: list[int]) -> bool:
            for digit in range(10):
                after = self._next_place(place, self._fraction, digit)
                if digit == 0:
                    row[0] = _NONE if after is None else self._zero_fraction(is_negative, after, False)
                elif not told:
                    row[digit] = _NONE if after is None else self._fraction_part(is_negative, after, None, False)
                elif self._accepts(False, LESS if is_negative else GREATER):
                    row[digit] = self._state(("any", True, False), lambda row: self._any(row, True, False))
            if not is_point and self._accepts_zero():
                row[_LETTER] = self._scaled(_LOWEST, _HIGHEST)
            return not is_point and self._accepts_zero()

        return self._state(("zeros", is_negative, place, is_point), fill)

    def _whole_part(self, is_negative: bool, position: int, order: int, mantissa: _Place | None) -> int:
        """Behind `position` digits before the point, the first of them not 0; `mantissa` where there is only one."""
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
            row[_LETTER] = self._exponent_part(is_negative, mantissa)
            return self._accepts(is_negative, LESS if total == EQUAL and self._fraction else total)

        return self._state(("whole", is_negative, position, order, mantissa), fill)

    def _fraction_part(self, is_negative: bool, plain: _Place, mantissa: _Place | None, is_point: bool) -> int:
        """Behind the point of a number that is not zero, or not yet; `mantissa` where one digit was before the point, and that not 0."""
        if plain[1] != EQUAL and mantissa is None:
            if not self._accepts(is_negative, plain[1]):
                return _NONE
            if is_point:
                return self._any_point(False)
            return self._state(("any", True, False), lambda row: self._any(row, True, False))

        def fill(row: list[int]) -> bool:
            for digit in range(10):
                after = self._next_place(plain, self._fraction, digit)
                scaled = None if mantissa is None else _place_after(mantissa, self._mantissa, digit)
                row[digit] = _NONE if after is None else self._fraction_part(is_negative, after, scaled, False)
            if is_point:
                return False
            row[_LETTER] = self._exponent_part(is_negative, mantissa)
            return self._accepts(is_negative, _order(plain, self._fraction))

        return self._state(("fraction", is_negative, plain, mantissa, is_point), fill)

    def _next_place(self, place: _Place, digits: Sequence[int], digit: int) -> _Place | None:
        """The place behind one more digit; None where there would be too many."""
        after = _place_after(place, digits, digit)
        return after if after[0] <= self._most_places else None

    def _exponent_part(self, is_negative: bool, mantissa: _Place | None) -> int:
        """Behind the letter."""
        if mantissa is None:
            return _NONE
        is_like = self._accepts(is_negative, _order(mantissa, self._mantissa))
        if self._accepts(is_negative, GREATER):
            return self._scaled(self._exponent + (not is_like), _HIGHEST)
        return self._scaled(_LOWEST, self._exponent - (not is_like))

    def _scaled(self, low: int, high: int) -> int:
        """Behind the letter, where the exponent must be in an interval."""
        low, high = max(low, _LOWEST), min(high, _HIGHEST)
        if low > high:
            return _NONE
        number = self._numbers.get((low, high))
        if number is None:
            rows, accepting = _exponent_table(low, high)
            number = self._numbers[low, high] = len(self._rows)
            self._rows += [tuple([each if each < 0 else each + number for each in row]) for row in rows]
            self._accepting += accepting
            self._waiting += [None] * len(rows)
        return number


def _place_after(place: _Place, digits: Sequence[int], digit: int) -> _Place:
    """The place in the digits of a constant behind one more digit; behind its last one it has zeros."""
    position, order = place
    if order:
        return place
    if position >= len(digits):
        return (0, GREATER) if digit else place
    order = order_of(digit, digits[position])
    return (0, order) if order else (position + 1, EQUAL)


def _order(place: _Place, digits: Sequence[int]) -> int:
    """How the digits compare if no more come."""
    return LESS if place[1] == EQUAL and place[0] < len(digits) else place[1]


@lru_cache(maxsize=1024)
def _exponent_table(low: int, high: int) -> Table:
    """The table of the spellings of exponents in an interval, one sign and up to three digits."""
    rows: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    numbers: dict[_Suffixes, int] = {}
    waiting: list[_Suffixes] = []

    def state(suffixes: _Suffixes) -> int:
        if not any(suffixes):
            return _NONE
        number = numbers.get(suffixes)
        if number is None:
            number = numbers[suffixes] = 3 + len(waiting)
            waiting.append(suffixes)
        return number

    def digits(suffixes: _Suffixes) -> list[int]:
        return [state(_after_digit(suffixes, digit)) for digit in range(10)]

    def signed(least: int, most: int) -> list[int]:
        intervals = [_cut(least, most, 10**count - 1) for count in range(1, _EXPONENT_DIGITS + 1)]
        return digits((None, *intervals))

    nowhere = [_NONE] * (NUM_SYMBOLS - 10)
    positive, negative = signed(max(low, 0), high), signed(max(-high, 0), -low)
    has_minus, has_plus = max(negative) != _NONE, max(positive) != _NONE
    rows.append((*positive, 2 if has_minus else _NONE, 1 if has_plus else _NONE, _NONE, _NONE))
    rows += [(*positive, *nowhere), (*negative, *nowhere)]
    accepting += [False] * 3
    for suffixes in waiting:  # grows while it is walked
        rows.append((*digits(suffixes), *nowhere))
        accepting.append(suffixes[0] is not None)
    return rows, accepting


def _cut(low: int, high: int, most: int) -> tuple[int, int] | None:
    low, high = max(low, 0), min(high, most)
    return (low, high) if low <= high else None


def _after_digit(suffixes: _Suffixes, digit: int) -> _Suffixes:
    found = []
    for count, interval in enumerate(suffixes[1:]):
        size: int = 10**count
        found.append(interval and _cut(interval[0] - digit * size, interval[1] - digit * size, size - 1))
    return tuple(found)
