"""Languages of JSON numbers, by value: bounds, multiples and digits at once.

The syntax of JSON numbers and the rules of `number_rules` run side by side; all their states are explored, and those from which no number
can be completed are cut. Without any demand the language is that of all JSON numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import IntEnum, auto
from fractions import Fraction
from functools import lru_cache

from rtlang_grammars.limits import Budget
from rtlang_grammars.regular import code_points, syntax
from rtlang_grammars.regular.code_points import CodePoints
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.number_rules import Bound, Form, Multiple, Rule
from rtlang_grammars.spec import GrammarError

_MAX_MODULUS = 5000


class _Phase(IntEnum):
    START = auto()
    MINUS = auto()
    ZERO = auto()
    WHOLE = auto()
    POINT = auto()
    FRACTION = auto()
    EXPONENT = auto()
    EXPONENT_SIGN = auto()
    EXPONENT_DIGITS = auto()


_ENDS = frozenset({_Phase.ZERO, _Phase.WHOLE, _Phase.FRACTION, _Phase.EXPONENT_DIGITS})
_SYMBOLS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "-", "+", ".", "eE")
_MINUS, _PLUS, _POINT, _LETTER = 10, 11, 12, 13
_SETS: tuple[CodePoints, ...] = tuple(code_points.of_text(symbol) for symbol in _SYMBOLS)


def number_language(
    minimum: Fraction | int | None = None,
    maximum: Fraction | int | None = None,
    *,
    exclusive_minimum: bool = False,
    exclusive_maximum: bool = False,
    multiple_of: Fraction | int | None = None,
    not_multiple_of: Sequence[Fraction | int] = (),
    integer: bool = False,
    integer_form: bool = False,
    fraction_form: bool = False,
    max_digits: int | None = None,
    budget: Budget | None = None,
) -> Language:
    """JSON spellings of the numbers that meet all demands, whatever their form: 1, 1.0 and 1e0 are one number.

    Exponents are allowed where the value can still be told exactly: with bounds, after one digit other than 0 before the point; with
    multiples, after a mantissa that is itself a multiple and without a minus. `-0` counts as 0.

    Args:
        minimum, maximum: bounds, inclusive unless the flag beside them says otherwise; any finite decimals.
        multiple_of: a positive decimal whose digits, without zeros at the end, are at most 5000.
        not_multiple_of: positive decimals; the value is a multiple of none of them.
        integer: the same as a `multiple_of` of 1, beside another one.
        integer_form, fraction_form: written without, or with, a fraction or an exponent.
        max_digits: digits before and after the point together.
    Returns:
        The language, possibly empty.
    Raises:
        GrammarError: a bound or step is out of reach, or the budget ran out.
    """
    steps = [Fraction(1)] if integer else []
    if multiple_of is not None:
        steps.append(Fraction(multiple_of))
    return _made(
        None if minimum is None else Fraction(minimum),
        None if maximum is None else Fraction(maximum),
        exclusive_minimum,
        exclusive_maximum,
        tuple(sorted(set(steps))),
        tuple(sorted({Fraction(step) for step in not_multiple_of})),
        Form(not integer_form, fraction_form, max_digits),
        budget or Budget(),
    )


def _made(
    minimum: Fraction | None,
    maximum: Fraction | None,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    steps: tuple[Fraction, ...],
    forbidden: tuple[Fraction, ...],
    form: Form,
    budget: Budget,
) -> Language:
    rules: list[Rule] = []
    if form != Form():
        rules.append(form)
    if minimum is not None:
        rules.append(Bound(minimum, is_minimum=True, is_exclusive=exclusive_minimum))
    if maximum is not None:
        rules.append(Bound(maximum, is_minimum=False, is_exclusive=exclusive_maximum))
    for step in (*steps, *forbidden):
        if step <= 0:
            raise GrammarError(f"a step of numbers must be greater than 0, not {step}")
    multiples = [Multiple(step) for step in steps] + [Multiple(step, is_negated=True) for step in forbidden]
    for multiple in multiples:
        if multiple.modulus > _MAX_MODULUS:
            raise GrammarError(f"multiples are supported up to a step of {_MAX_MODULUS}, zeros at its end not counted")
    rules += multiples
    return _any_number() if not rules else Language(_explored(rules, budget))


@lru_cache(maxsize=1)
def _any_number() -> Language:
    return compile_regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _explored(rules: Sequence[Rule], budget: Budget) -> syntax.Node:
    """The machine of all rules together, without dead ends."""
    start = (_Phase.START, tuple(rule.start() for rule in rules))
    numbers: dict[tuple[_Phase, tuple[Hashable, ...]], int] = {start: 0}
    states = [start]
    rows: list[list[int]] = []
    sources: list[list[int]] = [[]]
    for phase, values in states:  # grows while it is walked
        budget.spend(states=1)
        row = [-1] * len(_SYMBOLS)
        for symbol in range(len(_SYMBOLS)):
            after = _next_phase(phase, symbol)
            if after is None:
                continue
            told = _told(rules, values, after, symbol)
            if told is None:
                continue
            number = numbers.get((after, told))
            if number is None:
                number = numbers[after, told] = len(states)
                states.append((after, told))
                sources.append([])
            row[symbol] = number
            sources[number].append(len(rows))
        rows.append(row)
    accepting = [
        phase in _ENDS and all(rule.accepts(value) for rule, value in zip(rules, values, strict=True))
        for phase, values in states
    ]
    live = [number for number, accepts in enumerate(accepting) if accepts]
    is_live = list(accepting)
    while live:
        for source in sources[live.pop()]:
            if not is_live[source]:
                is_live[source] = True
                live.append(source)
    if not is_live[0]:
        return syntax.NOTHING
    trimmed = tuple(tuple([target if target >= 0 and is_live[target] else -1 for target in row]) for row in rows)
    return syntax.Machine(_SETS, trimmed, tuple(accepting))


def _next_phase(phase: _Phase, symbol: int) -> _Phase | None:
    """The syntax of JSON numbers."""
    if symbol < 10:
        if phase in (_Phase.START, _Phase.MINUS):
            return _Phase.WHOLE if symbol else _Phase.ZERO
        if phase in (_Phase.POINT, _Phase.FRACTION):
            return _Phase.FRACTION
        if phase in (_Phase.EXPONENT, _Phase.EXPONENT_SIGN, _Phase.EXPONENT_DIGITS):
            return _Phase.EXPONENT_DIGITS
        return _Phase.WHOLE if phase is _Phase.WHOLE else None
    if symbol == _MINUS and phase is _Phase.START:
        return _Phase.MINUS
    if symbol in (_MINUS, _PLUS):
        return _Phase.EXPONENT_SIGN if phase is _Phase.EXPONENT else None
    if symbol == _POINT:
        return _Phase.POINT if phase in (_Phase.ZERO, _Phase.WHOLE) else None
    return _Phase.EXPONENT if phase in (_Phase.ZERO, _Phase.WHOLE, _Phase.FRACTION) else None


def _told(
    rules: Sequence[Rule], values: tuple[Hashable, ...], after: _Phase, symbol: int
) -> tuple[Hashable, ...] | None:
    """The rules' states after a symbol; None where one of them gives up."""
    told = []
    for rule, value in zip(rules, values, strict=True):
        result: Hashable | None
        if after is _Phase.EXPONENT_DIGITS:
            result = rule.exponent_digit(value, symbol)
        elif symbol < 10:
            result = rule.digit(value, symbol, after is _Phase.FRACTION)
        elif after is _Phase.MINUS:
            result = rule.minus(value)
        elif after is _Phase.POINT:
            result = rule.point(value)
        elif after is _Phase.EXPONENT:
            result = rule.exponent(value)
        else:
            result = rule.exponent_minus(value) if symbol == _MINUS else value
        if result is None:
            return None
        told.append(result)
    return tuple(told)
