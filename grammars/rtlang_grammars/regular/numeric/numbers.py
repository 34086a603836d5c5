"""Languages of JSON numbers by value: bounds, multiples and digit limits combined.

The language is the product of the DFAs of the bounds (`bound_machines`) and of the other rules (`number_rules`), each restricted to the
JSON syntax of numbers, with dead states removed. Without constraints it is the language of all JSON numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from enum import IntEnum, auto
from fractions import Fraction
from functools import lru_cache

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.numeric.bound_machines import bound_table
from rtlang_grammars.regular.numeric.number_rules import MAX_PLAIN_EXPONENT, Form, Multiple, NumberRule, PlainForm
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_MODULUS = 2000
_MAX_CACHED, _MAX_CACHED_STATES = 256, 400
"""Limits of the cache shared by all schemas. Some bounds (0 to 100, a port, 32 bits) are very common; large DFAs are not worth keeping."""
_FAR = 10**40
"""Bounds beyond it are compared with an exponent, where there may be one: multiples with hundreds of digits need many states."""
_cache: dict[Hashable, Language] = {}
_cache_lock = threading.Lock()


class _Phase(IntEnum):
    START = auto()
    MINUS = auto()
    ZERO = auto()
    WHOLE = auto()
    POINT = auto()
    FRACTION = auto()
    EXPONENT = auto()
    EXPONENT_PLUS = auto()
    EXPONENT_MINUS = auto()
    # Digits of the exponent, by the digits that may follow: it ranges from -324 to 308.
    UP_TO_TWO = auto()
    THREE = auto()
    MINUS_THREE = auto()
    FOUR_TO_NINE = auto()
    ONE_MORE = auto()
    THIRTY = auto()
    MINUS_THIRTY_TWO = auto()
    NO_MORE = auto()


_EXPONENT_DIGITS = frozenset(range(_Phase.UP_TO_TWO, _Phase.NO_MORE + 1))
_ACCEPTING_PHASES = frozenset({_Phase.ZERO, _Phase.WHOLE, _Phase.FRACTION}) | _EXPONENT_DIGITS
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
    is_plain: bool = False,
    budget: Budget | None = None,
) -> Language:
    """The JSON numbers that satisfy all constraints, in every notation: 1, 1.0 and 1e0 are the same number.

    Exponents are allowed where the value can be checked exactly: with bounds, in numbers with one nonzero digit before the point; with
    multiples, if the mantissa itself is a multiple and the exponent is not negative. They range from -324 to 308, the range of a double.
    `-0` counts as 0.

    Args:
        minimum, maximum: bounds with a finite decimal form.
        exclusive_minimum, exclusive_maximum: whether the bound itself is rejected.
        multiple_of: a decimal greater than 0, whose digits without trailing zeros form a number of at most 2000.
        not_multiple_of: decimals of the same kind; multiples of any of them are rejected.
        integer: require an integer value, in addition to `multiple_of`.
        integer_form, fraction_form: reject, or require, a fraction or an exponent.
        max_digits: the maximal number of digits before and after the point together.
        is_plain: only the notation that programs write: integers as digits alone, multiples without an exponent, and other numbers with an
            exponent only after a single digit, and finite as doubles unless a bound is beyond them; see `PlainForm`.
        budget: the limits of the construction.
    Returns:
        The language, possibly empty.
    Raises:
        GrammarError: an unsupported bound or step, or the budget ran out.
    """
    demand = (minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of, tuple(not_multiple_of))
    key = (*demand, integer, integer_form, fraction_form, max_digits, is_plain)
    cached = _cache.get(key)
    if cached is not None:
        return cached
    budget = budget or Budget()
    dfas = []
    form = Form(not integer_form, fraction_form, max_digits)
    if form != Form():
        dfas.append(_form_dfa(form))
    steps = {Fraction(1)} if integer else set()
    if multiple_of is not None:
        steps.add(Fraction(multiple_of))
    is_whole = is_plain and not fraction_form and any(step.denominator == 1 for step in steps)
    if is_plain:
        is_beyond = any(bound is not None and abs(bound) >= 10**MAX_PLAIN_EXPONENT for bound in (minimum, maximum))
        is_between = minimum is not None and maximum is not None
        dfas.append(_form_dfa(PlainForm(not is_whole, not steps, not (is_beyond or is_between))))
    is_far = (minimum is not None and minimum > _FAR) or (maximum is not None and maximum < -_FAR)
    has_all_places = is_plain and (steps == {1} or (is_far and bool(steps)))  # multiples have no exponent
    if minimum is not None:
        dfas.append(_bound_dfa(Fraction(minimum), True, exclusive_minimum, has_all_places))
    if maximum is not None:
        dfas.append(_bound_dfa(Fraction(maximum), False, exclusive_maximum, has_all_places))
    dfas += [_multiple_dfa(step, False) for step in sorted(steps)]
    dfas += [_multiple_dfa(Fraction(step), True) for step in not_multiple_of]
    if not dfas:
        return _all_numbers()
    product = dfas[0]
    for dfa in dfas[1:]:
        product = _product(product, dfa, budget)
    language = Language(syntax.NOTHING if not product.rows else product)
    if len(product.rows) <= _MAX_CACHED_STATES:
        with _cache_lock:
            if len(_cache) >= _MAX_CACHED:
                del _cache[next(iter(_cache))]
            _cache[key] = language
    return language


def is_supported_step(step: Fraction) -> bool:
    """Whether `multiple_of` supports a step."""
    modulus: int = Multiple(step).modulus
    return modulus <= _MAX_MODULUS


@lru_cache(maxsize=1)
def _all_numbers() -> Language:
    small = "[0-2][0-9]{0,2}|[4-9][0-9]?"
    exponent = rf"(?:\+?(?:{small}|3(?:0[0-8]?|[1-9])?)|-(?:{small}|3(?:[01][0-9]?|2[0-4]?|[3-9])?))"
    return compile_regex(rf"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]{exponent})?")


@lru_cache(maxsize=256)
def _bound_dfa(bound: Fraction, is_minimum: bool, is_exclusive: bool, has_all_places: bool) -> syntax.Dfa:
    return _trim(*bound_table(bound, is_minimum=is_minimum, is_exclusive=is_exclusive, has_all_places=has_all_places))


@lru_cache(maxsize=64)
def _form_dfa(form: Form | PlainForm) -> syntax.Dfa:
    return _build_dfa(form)


@lru_cache(maxsize=64)
def _multiple_dfa(step: Fraction, is_negated: bool) -> syntax.Dfa:
    if step <= 0:
        raise GrammarError(f"multiples of {step} are not supported: the step must be greater than 0")
    multiple = Multiple(step, is_negated=is_negated)
    if multiple.modulus > _MAX_MODULUS:
        raise GrammarError(
            f"multiples of {step} are not supported: ignoring its decimal point and trailing zeros, the step may be at most {_MAX_MODULUS}"
        )
    return _build_dfa(multiple)


def _build_dfa(rule: NumberRule) -> syntax.Dfa:
    """The product of a rule and the syntax of numbers. A rule has few states, so no budget is needed."""
    start = (_Phase.START, rule.start())
    numbers: dict[tuple[_Phase, Hashable], int] = {start: 0}
    states: list[tuple[_Phase, Hashable]] = [start]
    rows: list[tuple[int, ...]] = []
    for phase, value in states:  # grows during iteration
        row: list[int] = []
        digit_classes = rule.digit_classes(value)
        by_kind: dict[tuple[int, _Phase | None], int] = {}
        for symbol, after in enumerate(_NEXT_PHASES[phase]):
            kind = (digit_classes[symbol] if symbol < 10 else symbol, after)
            if kind in by_kind:
                row.append(by_kind[kind])
                continue
            by_kind[kind] = -1
            next_state = None if after is None else _next_rule_state(rule, value, after, symbol)
            if after is None or next_state is None:
                row.append(-1)
                continue
            number = numbers.get((after, next_state))
            if number is None:
                number = numbers[after, next_state] = len(states)
                states.append((after, next_state))
            by_kind[kind] = number
            row.append(number)
        rows.append(tuple(row))
    return _trim(rows, [phase in _ACCEPTING_PHASES and rule.accepts(value) for phase, value in states])


def _product(one: syntax.Dfa, other: syntax.Dfa, budget: Budget) -> syntax.Dfa:
    """The intersection of two DFAs."""
    if not one.rows or not other.rows:
        return syntax.Dfa(_SETS, (), ())
    width = len(other.rows)
    numbers = {0: 0}
    pairs = [0]
    rows: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    for pair in pairs:  # grows during iteration
        budget.spend(states=1)
        own, others = divmod(pair, width)
        row = []
        for own_target, other_target in zip(one.rows[own], other.rows[others], strict=True):
            if own_target < 0 or other_target < 0:
                row.append(-1)
                continue
            target = own_target * width + other_target
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(pairs)
                pairs.append(target)
            row.append(number)
        rows.append(tuple(row))
        accepting.append(one.accepting[own] and other.accepting[others])
    return _trim(rows, accepting)


def _trim(rows: Sequence[tuple[int, ...]], accepting: Sequence[bool]) -> syntax.Dfa:
    """Remove transitions to dead states; a DFA that accepts nothing has no states."""
    sources: list[list[int]] = [[] for _ in rows]
    for number, row in enumerate(rows):
        for target in set(row):
            if target >= 0:
                sources[target].append(number)
    is_live = list(accepting)
    worklist = [number for number, accepts in enumerate(accepting) if accepts]
    while worklist:
        for source in sources[worklist.pop()]:
            if not is_live[source]:
                is_live[source] = True
                worklist.append(source)
    if not is_live[0]:
        return syntax.Dfa(_SETS, (), ())
    live_rows = rows
    if not all(is_live):
        live_rows = [tuple([target if target >= 0 and is_live[target] else -1 for target in row]) for row in rows]
    return syntax.Dfa(_SETS, tuple(live_rows), tuple(accepting))


def _next_phase(phase: _Phase, symbol: int) -> _Phase | None:
    """The syntax of JSON numbers."""
    if symbol < 10:
        if phase in (_Phase.START, _Phase.MINUS):
            return _Phase.WHOLE if symbol else _Phase.ZERO
        if phase in (_Phase.POINT, _Phase.FRACTION):
            return _Phase.FRACTION
        if phase in (_Phase.EXPONENT, _Phase.EXPONENT_PLUS, _Phase.EXPONENT_MINUS):
            three = _Phase.MINUS_THREE if phase is _Phase.EXPONENT_MINUS else _Phase.THREE
            return _Phase.UP_TO_TWO if symbol < 3 else three if symbol == 3 else _Phase.FOUR_TO_NINE
        if phase in _EXPONENT_DIGITS:
            return _next_exponent_digit(phase, symbol)
        return _Phase.WHOLE if phase is _Phase.WHOLE else None
    if symbol == _MINUS and phase is _Phase.START:
        return _Phase.MINUS
    if symbol in (_MINUS, _PLUS):
        if phase is not _Phase.EXPONENT:
            return None
        return _Phase.EXPONENT_MINUS if symbol == _MINUS else _Phase.EXPONENT_PLUS
    if symbol == _POINT:
        return _Phase.POINT if phase in (_Phase.ZERO, _Phase.WHOLE) else None
    return _Phase.EXPONENT if phase in (_Phase.ZERO, _Phase.WHOLE, _Phase.FRACTION) else None


def _next_exponent_digit(phase: _Phase, digit: int) -> _Phase | None:
    if phase is _Phase.UP_TO_TWO:
        return _Phase.ONE_MORE
    if phase is _Phase.THREE and digit == 0:
        return _Phase.THIRTY
    if phase is _Phase.MINUS_THREE and digit < 3:
        return _Phase.MINUS_THIRTY_TWO if digit == 2 else _Phase.ONE_MORE
    limits = {_Phase.NO_MORE: -1, _Phase.THIRTY: 8, _Phase.MINUS_THIRTY_TWO: 4}
    if digit > limits.get(phase, 9):
        return None
    return _Phase.NO_MORE


_NEXT_PHASES = {phase: tuple(_next_phase(phase, symbol) for symbol in range(len(_SYMBOLS))) for phase in _Phase}


def _next_rule_state(rule: NumberRule, value: Hashable, after: _Phase, symbol: int) -> Hashable | None:
    """The state of a rule after a symbol; None if it rejects."""
    if after in _EXPONENT_DIGITS:
        return rule.exponent_digit(value, symbol)
    if symbol < 10:
        return rule.digit(value, symbol, after is _Phase.FRACTION)
    if after is _Phase.MINUS:
        return rule.minus(value)
    if after is _Phase.POINT:
        return rule.point(value)
    if after is _Phase.EXPONENT:
        return rule.exponent(value)
    return rule.exponent_minus(value) if symbol == _MINUS else value
