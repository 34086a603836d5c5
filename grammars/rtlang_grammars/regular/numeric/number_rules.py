"""Rules on JSON numbers (`multipleOf`, integer form, digit limits) as automata that read the number symbol by symbol.

The state of a rule is any hashable value. A rule is fed the sign, the digits before and after the point, and the exponent; it returns
None if no continuation in an allowed form can satisfy it. Bounds have their own DFAs; see `bound_machines`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from fractions import Fraction
from typing import NamedTuple, Protocol

from rtlang_grammars.regular.numeric.decimal_order import decimal_digits

MAX_PLAIN_EXPONENT = 307
"""Maximum exponent of plain numbers: with one digit before the point, they are finite as doubles."""
MAX_EXTRA_ZEROS = 3
"""Maximum number of zeros after the last decimal place that a multiple can have."""
_ALL_DIFFERENT = tuple(range(10))
_ZERO_OR_NOT = (0, *[1] * 9)


class NumberRule(Protocol):
    """One rule. The methods that read a symbol return the next state, or None to reject."""

    def start(self) -> Hashable:
        """The start state."""

    def digit_classes(self, state: Hashable) -> Sequence[int]:
        """For each digit, the least digit that leads to the same state wherever it comes next; 0 is a class of its own."""

    def minus(self, state: Hashable) -> Hashable | None:
        """Read the sign of the number."""

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """Read a digit before or after the point."""

    def point(self, state: Hashable) -> Hashable | None:
        """Read the decimal point."""

    def exponent(self, state: Hashable) -> Hashable | None:
        """Read the letter of the exponent."""

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """Read the minus of the exponent."""

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """Read a digit of the exponent."""

    def accepts(self, state: Hashable) -> bool:
        """Whether the number read so far satisfies the rule."""


class _MultipleState(NamedTuple):
    """The state of `Multiple`: the digits without trailing zeros modulo the step, and the number of decimal places."""

    remainder: int
    zeros: int
    places: int
    is_zero: bool = True
    is_beyond: bool = False  # a nonzero digit after the last decimal place of the step
    is_scaled: bool = False  # the exponent is not 0
    has_exponent_minus: bool = False
    num_whole: int = 0  # if negated: digits before the point, at most 2
    num_extra: int = 0  # zeros after the last decimal place of the step


class Multiple:
    """The value is, or is not, an integer multiple of a step.

    With an exponent, the mantissa itself must be a multiple and the exponent must not be negative. If negated, the exponent must
    be 0; it may also be negative if the step is at least 1 and the mantissa has a single
        digit before the point, because such a number is smaller than the step.
    """

    def __init__(self, step: Fraction, *, is_negated: bool = False) -> None:
        """Build the rule.

        Args:
            step: greater than 0.
            is_negated: reject the multiples instead of requiring them.
        Raises:
            GrammarError: the step has no finite decimal form or more than 400 digits.
        """
        whole, fraction = decimal_digits(step)
        self.places, self.is_negated = len(fraction), is_negated
        scaled = int(whole + fraction)
        self.zeros = len(str(scaled)) - len(str(scaled).rstrip("0"))
        self.modulus = scaled // 10**self.zeros

    def start(self) -> Hashable:
        """The start state."""
        return _MultipleState(0, 0, 0)

    def digit_classes(self, state: Hashable) -> Sequence[int]:
        """Every digit may lead to another remainder."""
        return _ALL_DIFFERENT

    def minus(self, state: Hashable) -> Hashable | None:
        """Read the sign of the number."""
        return state

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """Read a digit before or after the point."""
        assert isinstance(state, _MultipleState)
        if self.is_negated and not is_fraction:
            state = state._replace(num_whole=min(2, state.num_whole + 1))
        if state.is_beyond or (is_fraction and state.places == self.places):
            if state.is_beyond or (not digit and self.is_negated):
                return state
            if not digit:
                return state._replace(num_extra=state.num_extra + 1) if state.num_extra < MAX_EXTRA_ZEROS else None
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
        """Read the decimal point."""
        return state

    def exponent(self, state: Hashable) -> Hashable | None:
        """Read the letter of the exponent."""
        assert isinstance(state, _MultipleState)
        is_small = self.is_negated and state.num_whole == 1 and self.modulus * 10**self.zeros >= 10**self.places
        if self._is_multiple(state) is self.is_negated and (state.is_zero or not is_small):
            return None
        beyond = not self._is_multiple(state)
        return _MultipleState(0, 0, 0, is_zero=state.is_zero, is_beyond=beyond, num_whole=int(is_small))

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """Read the minus of the exponent."""
        assert isinstance(state, _MultipleState)
        return state._replace(has_exponent_minus=True)

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """Read a digit of the exponent."""
        assert isinstance(state, _MultipleState)
        if not digit or state.is_zero or state.is_scaled:
            return state
        if self.is_negated:  # below 10 with a negative exponent: smaller than the step
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
    """The notation of the number.

    Attributes:
        allows_fraction: a point or an exponent is allowed.
        needs_fraction: a point or an exponent is required.
        max_digits: digits before and after the point together; None for no limit. With a limit, the exponent has at most 3 digits.
    """

    allows_fraction: bool = True
    needs_fraction: bool = False
    max_digits: int | None = None

    def start(self) -> Hashable:
        """The start state: (number of digits, has a point or an exponent, digits of the exponent)."""
        return (0, False, 0)

    def digit_classes(self, state: Hashable) -> Sequence[int]:
        """Digits are only counted."""
        return _ZERO_OR_NOT

    def minus(self, state: Hashable) -> Hashable | None:
        """Read the sign of the number."""
        return state

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """Read a digit before or after the point."""
        assert isinstance(state, tuple)
        if self.max_digits is None:
            return state
        return None if state[0] >= self.max_digits else (state[0] + 1, state[1], 0)

    def point(self, state: Hashable) -> Hashable | None:
        """Read the decimal point."""
        assert isinstance(state, tuple)
        return (state[0], True, 0) if self.allows_fraction else None

    def exponent(self, state: Hashable) -> Hashable | None:
        """Read the letter of the exponent."""
        return (0, True, 0) if self.allows_fraction else None

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """Read the minus of the exponent."""
        return state

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """Read a digit of the exponent."""
        assert isinstance(state, tuple)
        if self.max_digits is None:
            return state
        return None if state[2] >= 3 else (0, True, state[2] + 1)

    def accepts(self, state: Hashable) -> bool:
        """Whether the notation is allowed."""
        assert isinstance(state, tuple)
        return bool(state[1]) or not self.needs_fraction


class _Lead(IntEnum):
    """What a plain number has before its exponent."""

    NOTHING = auto()
    MINUS = auto()
    DIGIT = auto()  # one digit from 1 to 9, perhaps with a fraction: an exponent may follow
    OTHER = auto()


_BEYOND = str(MAX_PLAIN_EXPONENT + 1)
"""The only exponent of the JSON syntax here that plain numbers lack."""


@dataclass(frozen=True, slots=True)
class PlainForm:
    """The notation of plain numbers, as programs write them.

    Integers are digits alone, and zero has no sign. Of other numbers, those with an exponent have one digit from 1 to 9 before the point.

    Attributes:
        allows_fraction, allows_exponent: for integers, neither.
        is_finite: exponents are at most `MAX_PLAIN_EXPONENT`.
    """

    allows_fraction: bool = True
    allows_exponent: bool = True
    is_finite: bool = True

    def start(self) -> Hashable:
        """The start state: (what precedes the exponent, how many digits of the exponent equal `_BEYOND`)."""
        return (_Lead.NOTHING, 0)

    def digit_classes(self, state: Hashable) -> Sequence[int]:
        """Digits before the exponent are zero or not, digits of the exponent are compared with `_BEYOND`."""
        return _ALL_DIFFERENT

    def minus(self, state: Hashable) -> Hashable | None:
        """Read the sign of the number."""
        return (_Lead.MINUS, 0)

    def digit(self, state: Hashable, digit: int, is_fraction: bool) -> Hashable | None:
        """Read a digit before or after the point."""
        assert isinstance(state, tuple)
        if is_fraction:
            return state
        if state[0] is _Lead.MINUS and not digit and not self.allows_fraction:
            return None
        is_first = state[0] in (_Lead.NOTHING, _Lead.MINUS)
        return (_Lead.DIGIT if is_first and digit else _Lead.OTHER, 0)

    def point(self, state: Hashable) -> Hashable | None:
        """Read the decimal point."""
        return state if self.allows_fraction else None

    def exponent(self, state: Hashable) -> Hashable | None:
        """Read the letter of the exponent."""
        assert isinstance(state, tuple)
        return state if self.allows_exponent and state[0] is _Lead.DIGIT else None

    def exponent_minus(self, state: Hashable) -> Hashable | None:
        """Read the minus of the exponent."""
        return (_Lead.DIGIT, len(_BEYOND))

    def exponent_digit(self, state: Hashable, digit: int) -> Hashable | None:
        """Read a digit of the exponent."""
        assert isinstance(state, tuple)
        number = state[1]
        if not self.is_finite or number == len(_BEYOND) or digit != int(_BEYOND[number]):
            return (_Lead.DIGIT, len(_BEYOND))
        return (_Lead.DIGIT, number + 1) if number < len(_BEYOND) - 1 else None

    def accepts(self, state: Hashable) -> bool:
        """Every beginning that the syntax takes for a number is one."""
        return True
