"""What may be demanded of a JSON number, each demand as a small machine that reads its spelling digit by digit.

A rule's state is any hashable value. It is told of the sign, of digits before and after the point, and of the exponent; None from it means
that no way of going on can meet the demand, in the spellings that are allowed. Values are compared exactly, in decimal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

from rtlang_grammars.regular.decimal_order import (
    EQUAL,
    GREATER,
    LESS,
    Comparator,
    Compared,
    alike_between,
    decimal_digits,
    order_of,
)

_MAX_PLAIN_PLACES = 40
_ALL_DIFFERENT = tuple(range(10))


class Rule(Protocol):
    """One demand. Every method gives the state after, or None."""

    def start(self) -> Hashable:
        """Before anything is read."""

    def alike(self, state: Hashable) -> Sequence[int]:
        """For each digit the least digit that leads to the same state, wherever it stands next; 0 is like no other."""

    def minus(self, state: Hashable) -> Hashable | None:
        """After the sign of the number."""

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """After a digit before or after the point."""

    def point(self, state: Hashable) -> Hashable | None:
        """After the decimal point."""

    def exponent(self, state: Hashable) -> Hashable | None:
        """After the letter of an exponent."""

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """After the minus of an exponent."""

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """After a digit of the exponent."""

    def accepts(self, state: Hashable) -> bool:
        """Whether the number so far meets the demand."""


class _BoundState(NamedTuple):
    """Of `Bound`. Before the exponent: both comparisons; within it: the mantissa's order, and the comparison of the exponent's digits."""

    is_negative: bool
    is_zero: bool
    plain: Compared | None
    mantissa: Compared | None
    mantissa_order: int = 0
    has_exponent_minus: bool = False
    exponent: Compared | None = None


class Bound:
    """The value is on one side of a bound.

    With an exponent, numbers must be written with one digit other than 0 before the point, or be zero: then the exponents compare first.
    Beside a bound that is very large or very small, numbers must have an exponent where they have many digits.
    """

    def __init__(self, bound: Fraction, *, is_minimum: bool, is_exclusive: bool) -> None:
        """
        Raises:
            GrammarError: the bound has no decimal form, or a very long one.
        """
        self.bound, self.is_minimum, self.is_exclusive = bound, is_minimum, is_exclusive
        magnitude = abs(bound)
        whole, fraction = decimal_digits(magnitude)
        if magnitude >= 1:
            self._exponent = len(whole) - 1
        else:
            self._exponent = len(fraction.lstrip("0")) - len(fraction) - 1
        self._is_extreme = abs(self._exponent) > _MAX_PLAIN_PLACES
        self._plain = Comparator(magnitude)
        self._mantissa = Comparator(magnitude / Fraction(10) ** self._exponent if magnitude else magnitude)
        self._exponents = Comparator(Fraction(abs(self._exponent)))

    def start(self) -> Hashable:
        """Before anything is read."""
        return _BoundState(False, True, self._plain.start, self._mantissa.start)

    def alike(self, state: Hashable) -> Sequence[int]:
        """Digits are alike between those that the next one is compared with."""
        assert isinstance(state, _BoundState)
        compared = self._exponents.next_digits(state.exponent or self._exponents.start)
        if state.plain is not None:
            compared += self._plain.next_digits(state.plain)
        if state.mantissa is not None:
            compared += self._mantissa.next_digits(state.mantissa)
        return alike_between(frozenset(compared))

    def minus(self, state: Hashable) -> Hashable | None:
        """After the sign of the number."""
        assert isinstance(state, _BoundState)
        return state._replace(is_negative=True)

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """After a digit before or after the point."""
        assert isinstance(state, _BoundState)
        assert state.plain is not None
        mantissa = state.mantissa
        if mantissa is not None:
            is_normal = is_fraction or (mantissa.position == 0 and digit != 0)
            mantissa = self._mantissa.digit(mantissa, digit, is_fraction) if is_normal else None
        plain = self._plain.digit(state.plain, digit, is_fraction)
        if self._is_extreme and plain.position > _MAX_PLAIN_PLACES:
            return None
        return _BoundState(state.is_negative, state.is_zero and digit == 0, plain, mantissa)

    def point(self, state: Hashable) -> Hashable | None:
        """After the decimal point."""
        return state

    def exponent(self, state: Hashable) -> Hashable | None:
        """After the letter of an exponent."""
        assert isinstance(state, _BoundState)
        if state.is_zero:
            return _BoundState(False, True, None, None)
        if state.mantissa is None:
            return None
        order = self._mantissa.order(state.mantissa) if self.bound else GREATER
        return _BoundState(state.is_negative, False, None, None, order)

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """After the minus of an exponent."""
        assert isinstance(state, _BoundState)
        return state if state.is_zero or not self.bound else state._replace(has_exponent_minus=True)

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """After a digit of the exponent."""
        assert isinstance(state, _BoundState)
        if state.is_zero or not self.bound or (state.exponent is None and digit == 0):
            return state
        return state._replace(exponent=self._exponents.digit(state.exponent or self._exponents.start, digit, False))

    def accepts(self, state: Hashable) -> bool:
        """Whether the value is on the right side."""
        assert isinstance(state, _BoundState)
        order = self._order(state)
        return not self.is_exclusive if order == EQUAL else order == (GREATER if self.is_minimum else LESS)

    def _order(self, state: _BoundState) -> int:
        """How the value compares with the bound."""
        if state.is_zero:
            return order_of(0, self.bound.numerator)
        if state.is_negative != (self.bound < 0) or not self.bound:
            return LESS if state.is_negative else GREATER
        order = (
            self._plain.order(state.plain)
            if state.plain is not None
            else self._exponent_order(state) or state.mantissa_order
        )
        return -order if state.is_negative else order

    def _exponent_order(self, state: _BoundState) -> int:
        """How the exponent compares with the bound's."""
        if state.exponent is None:
            return order_of(0, self._exponent)
        if state.has_exponent_minus != (self._exponent < 0):
            return LESS if state.has_exponent_minus else GREATER
        order = self._exponents.order(state.exponent)
        return -order if state.has_exponent_minus else order


class _MultipleState(NamedTuple):
    """Of `Multiple`: the digits so far without their last `zeros` zeros, modulo the step's odd part; and how many are behind the point."""

    remainder: int
    zeros: int
    places: int
    is_zero: bool = True
    is_beyond: bool = False  # a digit other than 0 behind the last place of the step
    is_scaled: bool = False  # the exponent is not 0
    has_exponent_minus: bool = False
    num_whole: int = 0  # of a negated rule: digits before the point, up to 2


class Multiple:
    """The value is an integer multiple of a step, or is none where negated.

    With an exponent, the mantissa must be a multiple by itself and the exponent not negative. Where negated, the exponent must be 0, or
    negative behind one digit before the point beside a step of at least 1, as such a number is smaller than the step.
    """

    def __init__(self, step: Fraction, *, is_negated: bool = False) -> None:
        """
        Raises:
            GrammarError: the step has no decimal form, or a very long one.
        """
        whole, fraction = decimal_digits(step)
        self.places, self.is_negated = len(fraction), is_negated
        scaled = int(whole + fraction)
        self.zeros = len(str(scaled)) - len(str(scaled).rstrip("0"))
        self.modulus = scaled // 10**self.zeros

    def start(self) -> Hashable:
        """Before anything is read."""
        return _MultipleState(0, 0, 0)

    def alike(self, state: Hashable) -> Sequence[int]:
        """Every digit may leave another remainder."""
        return _ALL_DIFFERENT

    def minus(self, state: Hashable) -> Hashable | None:
        """After the sign of the number."""
        return state

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """After a digit before or after the point."""
        assert isinstance(state, _MultipleState)
        if self.is_negated and not is_fraction:
            state = state._replace(num_whole=min(2, state.num_whole + 1))
        if state.is_beyond or (is_fraction and state.places == self.places):
            if not digit or state.is_beyond:
                return state
            beyond = _MultipleState(0, 0, 0, is_zero=False, is_beyond=True, num_whole=state.num_whole)
            return beyond if self.is_negated else None
        places = state.places + is_fraction
        if digit:
            remainder = (state.remainder * 10 ** (state.zeros + 1) + digit) % self.modulus
            return _MultipleState(remainder, 0, places, is_zero=False, num_whole=state.num_whole)
        if state.zeros < self.zeros:
            return state._replace(zeros=state.zeros + 1, places=places)
        return state._replace(remainder=state.remainder * 10 % self.modulus, places=places)

    def point(self, state: Hashable) -> Hashable | None:
        """After the decimal point."""
        return state

    def exponent(self, state: Hashable) -> Hashable | None:
        """After the letter of an exponent."""
        assert isinstance(state, _MultipleState)
        is_small = self.is_negated and state.num_whole == 1 and self.modulus * 10**self.zeros >= 10**self.places
        if self._is_multiple(state) is self.is_negated and (state.is_zero or not is_small):
            return None
        beyond = not self._is_multiple(state)
        return _MultipleState(0, 0, 0, is_zero=state.is_zero, is_beyond=beyond, num_whole=int(is_small))

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """After the minus of an exponent."""
        assert isinstance(state, _MultipleState)
        return state._replace(has_exponent_minus=True)

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """After a digit of the exponent."""
        assert isinstance(state, _MultipleState)
        if not digit or state.is_zero or state.is_scaled:
            return state
        if self.is_negated:  # from 1 on a number of one digit before the point is smaller than the step
            return (
                state._replace(is_scaled=True, is_beyond=True) if state.has_exponent_minus and state.num_whole else None
            )
        return None if state.has_exponent_minus else state

    def accepts(self, state: Hashable) -> bool:
        """Whether the value is (not) a multiple."""
        assert isinstance(state, _MultipleState)
        return self._is_multiple(state) is not self.is_negated

    def _is_multiple(self, state: _MultipleState) -> bool:
        if state.is_zero or state.is_beyond:
            return state.is_zero
        missing = self.places - state.places
        zeros = min(state.zeros + missing, self.zeros)
        left = state.zeros + missing - zeros
        return zeros == self.zeros and state.remainder * 10**left % self.modulus == 0


@dataclass(frozen=True, slots=True)
class Form:
    """How the number is written.

    Attributes:
        allows_fraction: with a point or an exponent.
        needs_fraction: the same, demanded.
        max_digits: digits before and after the point together; None without limit. The exponent then has at most 3.
    """

    allows_fraction: bool = True
    needs_fraction: bool = False
    max_digits: int | None = None

    def start(self) -> Hashable:
        """(digits, is fraction, digits of the exponent)."""
        return (0, False, 0)

    def alike(self, state: Hashable) -> Sequence[int]:
        """Digits are counted only."""
        return alike_between(frozenset())

    def minus(self, state: Hashable) -> Hashable | None:
        """After the sign of the number."""
        return state

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """After a digit before or after the point."""
        assert isinstance(state, tuple)
        if self.max_digits is None:
            return state
        return None if state[0] >= self.max_digits else (state[0] + 1, state[1], 0)

    def point(self, state: Hashable) -> Hashable | None:
        """After the decimal point."""
        assert isinstance(state, tuple)
        return (state[0], True, 0) if self.allows_fraction else None

    def exponent(self, state: Hashable) -> Hashable | None:
        """After the letter of an exponent."""
        return (0, True, 0) if self.allows_fraction else None

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """After the minus of an exponent."""
        return state

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """After a digit of the exponent."""
        assert isinstance(state, tuple)
        if self.max_digits is None:
            return state
        return None if state[2] >= 3 else (0, True, state[2] + 1)

    def accepts(self, state: Hashable) -> bool:
        """Whether it is written as demanded."""
        assert isinstance(state, tuple)
        return bool(state[1]) or not self.needs_fraction
