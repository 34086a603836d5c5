"""Languages of JSON numbers, by value: bounds, multiples and digits at once.

The machines of `bound_machines` and those of `number_rules`, which run beside the syntax of JSON numbers, are put together; states from
which no number can be completed are cut. Without any demand the language is that of all JSON numbers.
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
from rtlang_grammars.regular.numeric.number_rules import Form, Multiple, Rule
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_MODULUS = 2000
_MAX_KEPT, _MAX_KEPT_STATES = 256, 400
"""Languages that are kept for other schemas, and how large they may be: some bounds (0 to 100, a port, 32 bits) are everywhere."""
_known: dict[Hashable, Language] = {}
_known_lock = threading.Lock()


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
    # Digits of the exponent, by what may still follow: it is from -324 to 308.
    UP_TO_TWO = auto()
    THREE = auto()
    MINUS_THREE = auto()
    FOUR_TO_NINE = auto()
    ONE_MORE = auto()
    THIRTY = auto()
    MINUS_THIRTY_TWO = auto()
    NO_MORE = auto()


_EXPONENT_DIGITS = frozenset(range(_Phase.UP_TO_TWO, _Phase.NO_MORE + 1))
_ENDS = frozenset({_Phase.ZERO, _Phase.WHOLE, _Phase.FRACTION}) | _EXPONENT_DIGITS
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
    multiples, after a mantissa that is itself a multiple and without a minus. They are from -324 to 308, so that numbers are not beyond
    what programs read. `-0` counts as 0.

    Args:
        minimum, maximum: bounds, inclusive unless the flag beside them says otherwise; any finite decimals.
        multiple_of: a positive decimal whose digits, without zeros at the end, are at most 2000.
        not_multiple_of: positive decimals; the value is a multiple of none of them.
        integer: the same as a `multiple_of` of 1, beside another one.
        integer_form, fraction_form: written without, or with, a fraction or an exponent.
        max_digits: digits before and after the point together.
    Returns:
        The language, possibly empty.
    Raises:
        GrammarError: a bound or step is out of reach, or the budget ran out.
    """
    demand = (minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of, tuple(not_multiple_of))
    key = (*demand, integer, integer_form, fraction_form, max_digits)
    known = _known.get(key)
    if known is not None:
        return known
    budget = budget or Budget()
    machines = []
    form = Form(not integer_form, fraction_form, max_digits)
    if form != Form():
        machines.append(_form_machine(form))
    if minimum is not None:
        machines.append(_bound_machine(Fraction(minimum), True, exclusive_minimum))
    if maximum is not None:
        machines.append(_bound_machine(Fraction(maximum), False, exclusive_maximum))
    steps = {Fraction(1)} if integer else set()
    if multiple_of is not None:
        steps.add(Fraction(multiple_of))
    machines += [_multiple_machine(step, False) for step in sorted(steps)]
    machines += [_multiple_machine(Fraction(step), True) for step in not_multiple_of]
    if not machines:
        return _any_number()
    product = machines[0]
    for machine in machines[1:]:
        product = _product(product, machine, budget)
    language = Language(syntax.NOTHING if not product.rows else product)
    if len(product.rows) <= _MAX_KEPT_STATES:
        with _known_lock:
            if len(_known) >= _MAX_KEPT:
                del _known[next(iter(_known))]
            _known[key] = language
    return language


def is_supported_step(step: Fraction) -> bool:
    """Whether multiples of a step are a language of few enough states."""
    modulus: int = Multiple(step).modulus
    return modulus <= _MAX_MODULUS


@lru_cache(maxsize=1)
def _any_number() -> Language:
    small = "[0-2][0-9]{0,2}|[4-9][0-9]?"
    exponent = rf"(?:\+?(?:{small}|3(?:0[0-8]?|[1-9])?)|-(?:{small}|3(?:[01][0-9]?|2[0-4]?|[3-9])?))"
    return compile_regex(rf"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]{exponent})?")


@lru_cache(maxsize=256)
def _bound_machine(bound: Fraction, is_minimum: bool, is_exclusive: bool) -> syntax.Machine:
    return _trimmed(*bound_table(bound, is_minimum=is_minimum, is_exclusive=is_exclusive))


@lru_cache(maxsize=64)
def _form_machine(form: Form) -> syntax.Machine:
    return _explored(form)


@lru_cache(maxsize=64)
def _multiple_machine(step: Fraction, is_negated: bool) -> syntax.Machine:
    if step <= 0:
        raise GrammarError(f"a step of numbers must be greater than 0, not {step}")
    multiple = Multiple(step, is_negated=is_negated)
    if multiple.modulus > _MAX_MODULUS:
        raise GrammarError(f"multiples are supported up to a step of {_MAX_MODULUS}, zeros at its end not counted")
    return _explored(multiple)


def _explored(rule: Rule) -> syntax.Machine:
    """The machine of one rule and the syntax of numbers; a rule has few states, so that no budget is needed."""
    start = (_Phase.START, rule.start())
    numbers: dict[tuple[_Phase, Hashable], int] = {start: 0}
    states: list[tuple[_Phase, Hashable]] = [start]
    rows: list[tuple[int, ...]] = []
    for phase, value in states:  # grows while it is walked
        row: list[int] = []
        alike = rule.alike(value)
        by_kind: dict[tuple[int, _Phase | None], int] = {}
        for symbol, after in enumerate(_FOLLOWING[phase]):
            kind = (alike[symbol] if symbol < 10 else symbol, after)
            if kind in by_kind:
                row.append(by_kind[kind])
                continue
            by_kind[kind] = -1
            told = None if after is None else _told(rule, value, after, symbol)
            if after is None or told is None:
                row.append(-1)
                continue
            number = numbers.get((after, told))
            if number is None:
                number = numbers[after, told] = len(states)
                states.append((after, told))
            by_kind[kind] = number
            row.append(number)
        rows.append(tuple(row))
    return _trimmed(rows, [phase in _ENDS and rule.accepts(value) for phase, value in states])


def _product(one: syntax.Machine, other: syntax.Machine, budget: Budget) -> syntax.Machine:
    """What both machines accept."""
    if not one.rows or not other.rows:
        return syntax.Machine(_SETS, (), ())
    width = len(other.rows)
    numbers = {0: 0}
    pairs = [0]
    rows: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    for pair in pairs:  # grows while it is walked
        budget.spend(states=1)
        mine, its = divmod(pair, width)
        row = []
        for my_target, its_target in zip(one.rows[mine], other.rows[its], strict=True):
            if my_target < 0 or its_target < 0:
                row.append(-1)
                continue
            target = my_target * width + its_target
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(pairs)
                pairs.append(target)
            row.append(number)
        rows.append(tuple(row))
        accepting.append(one.accepting[mine] and other.accepting[its])
    return _trimmed(rows, accepting)


def _trimmed(rows: Sequence[tuple[int, ...]], accepting: Sequence[bool]) -> syntax.Machine:
    """The machine without moves into dead ends; without states where it accepts nothing."""
    sources: list[list[int]] = [[] for _ in rows]
    for number, row in enumerate(rows):
        for target in set(row):
            if target >= 0:
                sources[target].append(number)
    is_live = list(accepting)
    waiting = [number for number, accepts in enumerate(accepting) if accepts]
    while waiting:
        for source in sources[waiting.pop()]:
            if not is_live[source]:
                is_live[source] = True
                waiting.append(source)
    if not is_live[0]:
        return syntax.Machine(_SETS, (), ())
    live_rows = rows
    if not all(is_live):
        live_rows = [tuple([target if target >= 0 and is_live[target] else -1 for target in row]) for row in rows]
    return syntax.Machine(_SETS, tuple(live_rows), tuple(accepting))


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


_FOLLOWING = {phase: tuple(_next_phase(phase, symbol) for symbol in range(len(_SYMBOLS))) for phase in _Phase}


def _told(rule: Rule, value: Hashable, after: _Phase, symbol: int) -> Hashable | None:
    """The rule's state after a symbol; None where it gives up."""
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
