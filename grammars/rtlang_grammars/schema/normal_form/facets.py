"""Facets: what a conjunction of schemas demands of the values of one JSON type.

The algebra works type by type. For one type a schema comes to a list of facets, any of which will do; a facet is a
conjunction that is closed under `meet`. Children (property values, elements, names) are not looked into: they stay *conjunctions*,
sets of demands on nodes, so that recursive schemas cost nothing until someone asks for the child.

A demand is an integer: `2 * node.index` for the node's schema, plus one for its negation. Demand 0 is `true`, demand 1 `false`.
A facet may allow more than its schema does, never less; then it carries `marks` that say which keyword was not enforced.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

from rtlang_grammars.schema.reading.values import Json, JsonType

Conj: TypeAlias = frozenset[int]
"""Demands that hold together; empty: anything goes."""
_T = TypeVar("_T")
TRUE: Conj = frozenset()
FALSE: Conj = frozenset({1})
NO_MARKS: frozenset[Mark] = frozenset()


class Mark(NamedTuple):
    """A keyword that a facet does not enforce in full."""

    pointer: str
    keyword: str
    reason: str


class TextDemand(NamedTuple):
    """One demand on the text of a string.

    Attributes:
        kind: `pattern` (a search), `format` (of the whole text) or `loose format` (which has all of the format in it).
        source: the pattern, or the name of the format.
        positive: False: the text must not be so.
        pointer: where it was asked.
    """

    kind: str
    source: str
    positive: bool
    pointer: str


@dataclass(frozen=True, slots=True)
class NumberBody:
    """An interval with multiples, by value. Fields as in `NumberShape`."""

    minimum: Fraction | None = None
    maximum: Fraction | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: Fraction | None = None
    not_multiple_of: frozenset[Fraction] = frozenset()
    integer_form: bool = False
    fraction_form: bool = False

    def meet(self, other: NumberBody) -> NumberBody | None:
        """What both allow; None where that is shown to be nothing."""
        low, open_low = self.minimum, self.exclusive_minimum
        if other.minimum is not None and (low is None or other.minimum >= low):
            open_low = other.exclusive_minimum or (open_low and other.minimum == low)
            low = other.minimum
        high, open_high = self.maximum, self.exclusive_maximum
        if other.maximum is not None and (high is None or other.maximum <= high):
            open_high = other.exclusive_maximum or (open_high and other.maximum == high)
            high = other.maximum
        step = self.multiple_of or other.multiple_of
        if self.multiple_of and other.multiple_of:
            step = _lcm(self.multiple_of, other.multiple_of)
        body = NumberBody(
            low,
            high,
            open_low,
            open_high,
            step,
            self.not_multiple_of | other.not_multiple_of,
            self.integer_form or other.integer_form,
            self.fraction_form or other.fraction_form,
        )
        return None if body.is_empty() else body

    def is_empty(self) -> bool:
        """No number is left (exact but for `not_multiple_of`, where only a plain contradiction is seen)."""
        if self.integer_form and self.fraction_form:
            return True
        step = self.multiple_of
        if step is not None and any((step / other).denominator == 1 for other in self.not_multiple_of):
            return True
        if self.minimum is None or self.maximum is None:
            return False
        if step is None:
            closed = not (self.exclusive_minimum or self.exclusive_maximum)
            if self.minimum == self.maximum and closed:
                return not self.accepts(self.minimum)
            return self.minimum >= self.maximum
        first = math.ceil(self.minimum / step)
        last = math.floor(self.maximum / step)
        first += self.exclusive_minimum and first * step == self.minimum
        last -= self.exclusive_maximum and last * step == self.maximum
        if last - first < 16:  # few enough to look at
            return not any(self.accepts(number * step) for number in range(first, last + 1))
        return False

    def accepts(self, value: Fraction) -> bool:
        """Whether a number is allowed, its form aside."""
        if self.minimum is not None and (value < self.minimum or (self.exclusive_minimum and value == self.minimum)):
            return False
        if self.maximum is not None and (value > self.maximum or (self.exclusive_maximum and value == self.maximum)):
            return False
        if self.multiple_of is not None and (value / self.multiple_of).denominator != 1:
            return False
        return all((value / step).denominator != 1 for step in self.not_multiple_of)


def _lcm(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(math.lcm(a.numerator, b.numerator), math.gcd(a.denominator, b.denominator))


@dataclass(frozen=True, slots=True)
class StringBody:
    """Texts: demands, and lengths in code points."""

    texts: frozenset[TextDemand] = frozenset()
    min_length: int = 0
    max_length: int | None = None

    def meet(self, other: StringBody) -> StringBody | None:
        """What both allow; None where the lengths contradict."""
        low, high = max(self.min_length, other.min_length), lower(self.max_length, other.max_length)
        if high is not None and high < low:
            return None
        return StringBody(self.texts | other.texts, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class ItemRule:
    """What one schema says of elements by position: `prefix` first, `rest` from there on."""

    prefix: tuple[Conj, ...]
    rest: Conj

    def at(self, index: int) -> Conj:
        """The demands on the element at a position."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True, slots=True)
class Contains:
    """Elements from position `start` on that meet `conj` must be `min_count` to `max_count` many."""

    conj: Conj
    min_count: int
    max_count: int | None
    start: int
    mark: Mark


@dataclass(frozen=True, slots=True)
class ArrayBody:
    """Arrays: rules by position, sizes, counts. `unique` holds the mark to leave where uniqueness is not enforced."""

    rules: tuple[ItemRule, ...] = ()
    min_items: int = 0
    max_items: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: Mark | None = None

    def meet(self, other: ArrayBody) -> ArrayBody | None:
        """What both demand; None where the sizes contradict."""
        low, high = max(self.min_items, other.min_items), lower(self.max_items, other.max_items)
        if high is not None and high < low:
            return None
        return ArrayBody(
            _joined(self.rules, other.rules),
            low,
            high,
            _joined(self.contains, other.contains),
            self.unique or other.unique,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PropertyRule:
    """What one schema says of properties by name.

    Attributes:
        names: declared names, in order.
        patterns: pairs of a pattern (a search in the name) and what the value must meet.
        additional: for names that are neither declared nor matched.
    """

    names: Mapping[str, Conj]
    patterns: tuple[tuple[str, Conj], ...] = ()
    additional: Conj = TRUE


@dataclass(frozen=True, slots=True)
class Exists:
    """At least one property whose name meets `name` and whose value meets `value`."""

    name: Conj
    value: Conj
    mark: Mark


@dataclass(frozen=True, slots=True)
class ObjectBody:
    """Objects: rules by name, required names, sizes, demands on all names and on some property."""

    rules: tuple[PropertyRule, ...] = ()
    required: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    min_properties: int = 0
    max_properties: int | None = None
    names: Conj = TRUE
    exists: tuple[Exists, ...] = ()

    def meet(self, other: ObjectBody) -> ObjectBody | None:
        """What both demand; None where that is plainly nothing."""
        low = max(self.min_properties, other.min_properties)
        high = lower(self.max_properties, other.max_properties)
        required, absent = self.required | other.required, self.absent | other.absent
        if (high is not None and high < max(low, len(required))) or not required.isdisjoint(absent):
            return None
        return ObjectBody(
            _joined(self.rules, other.rules),
            required,
            absent,
            low,
            high,
            self.names | other.names,
            _joined(self.exists, other.exists),
        )


Body: TypeAlias = NumberBody | StringBody | ArrayBody | ObjectBody | None
TOP_BODY: Mapping[JsonType, Body] = {
    JsonType.NULL: None,
    JsonType.BOOLEAN: None,
    JsonType.NUMBER: NumberBody(),
    JsonType.STRING: StringBody(),
    JsonType.ARRAY: ArrayBody(),
    JsonType.OBJECT: ObjectBody(),
}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What the schemas of a facet have evaluated, for `unevaluated*`.

    Attributes:
        everything: all properties, or all elements.
        names, patterns: properties.
        prefix: that many first elements.
        matching: elements that meet any of these (2020-12 `contains`).
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    prefix: int = 0
    matching: frozenset[Conj] = frozenset()

    def join(self, other: Evaluated) -> Evaluated:
        """What either has evaluated."""
        return Evaluated(
            self.everything or other.everything,
            self.names | other.names,
            self.patterns | other.patterns,
            max(self.prefix, other.prefix),
            self.matching | other.matching,
        )


NOTHING = Evaluated()


@dataclass(frozen=True, slots=True)
class Facet:
    """Demands on the values of one type.

    Attributes:
        kind: the type.
        body: its demands, where the type has any.
        literals: the only values that may be, by `json_key`; None: no such list.
        excluded: values that may not be.
        marks: keywords that are not enforced here.
        evaluated: what was evaluated; kept only while a schema asks for it.
    """

    kind: JsonType
    body: Body
    literals: Mapping[Hashable, Json] | None = None
    excluded: frozenset[Hashable] = frozenset()
    marks: frozenset[Mark] = frozenset()
    evaluated: Evaluated = NOTHING

    def __hash__(self) -> int:
        first = None if self.literals is None else (len(self.literals), next(iter(self.literals), None))
        return hash((self.body, first, self.excluded, self.marks))

    @property
    def is_top(self) -> bool:
        """Everything of the type is allowed, and that is exact."""
        return self.literals is None and not self.excluded and not self.marks and self.body == TOP_BODY[self.kind]

    def without_evaluated(self) -> Facet:
        """The same demands, with nothing evaluated."""
        return self if self.evaluated is NOTHING else replace(self, evaluated=NOTHING)


TOPS: Mapping[JsonType, Facet] = {kind: Facet(kind, body) for kind, body in TOP_BODY.items()}


def meet(a: Facet, b: Facet) -> Facet | None:
    """What both demand of one type; None where that is plainly nothing. Literals are not yet held against the body."""
    assert a.kind is b.kind
    if b is TOPS[a.kind]:
        return a
    if a is TOPS[a.kind]:
        return b
    excluded = a.excluded | b.excluded
    literals = a.literals if b.literals is None else b.literals
    if a.literals is not None and b.literals is not None:
        few, many = sorted((a.literals, b.literals), key=len)
        literals = {key: value for key, value in few.items() if key in many}
    if literals is not None and excluded:
        literals = {key: value for key, value in literals.items() if key not in excluded}
        excluded = frozenset()
    if literals is not None and not literals:
        return None
    body: Body = None
    if a.body is not None:
        body = a.body.meet(b.body)  # type: ignore[arg-type]
        if body is None:
            return None
    evaluated = a.evaluated if b.evaluated is NOTHING else a.evaluated.join(b.evaluated)
    return Facet(a.kind, body, literals, excluded, a.marks | b.marks, evaluated)


def lower(a: int | None, b: int | None) -> int | None:
    """The tighter of two upper bounds, None being none."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _joined(a: tuple[_T, ...], b: tuple[_T, ...]) -> tuple[_T, ...]:
    if not a or not b:
        return a or b
    return tuple(dict.fromkeys((*a, *b)))
