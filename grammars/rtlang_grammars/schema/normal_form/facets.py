"""Facets: conjunctions of assertions on the values of one JSON type, closed under `meet`.

The algebra works type by type. For one type, a schema is equivalent to a list of facets of which any must be satisfied. Subschemas for
property values, items and property names stay unreduced *conjunctions*, sets of demands, so that recursive schemas cost nothing until
the subschema is needed.

A demand is an integer: `2 * node.index` for the schema of a node, plus one for its negation. Demand 0 is `true`, demand 1 is `false`.
A facet may accept more than its schema, never less; if so, it carries `marks` that name the keyword that is not enforced.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

from rtlang_grammars.schema.reading.values import Json, JsonType

Conj: TypeAlias = frozenset[int]
"""A conjunction of demands; the empty one is `true`."""
_T = TypeVar("_T")
TRUE: Conj = frozenset()
FALSE: Conj = frozenset({1})
NO_MARKS: frozenset[FacetMark] = frozenset()


def is_contradiction(conj: Conj) -> bool:
    """Whether a conjunction demands `false`, or a schema and its negation."""
    return 1 in conj or any(demand & 1 and demand ^ 1 in conj for demand in conj)


class FacetMark(NamedTuple):
    """A keyword that a facet does not fully enforce.

    Attributes:
        pointer: location of the schema that holds it.
        keyword: its name.
        reason: why it is not enforced.
    """

    pointer: str
    keyword: str
    reason: str


PATTERN_KINDS = {"ecma": "pattern", "python": "python pattern", "rust": "rust pattern", "lark": "lark grammar"}
"""The kinds of patterns by their dialect."""


class TextDemand(NamedTuple):
    """An assertion on a string: a pattern or a format, or the negation of one.

    Attributes:
        kind: one of PATTERN_KINDS (searched for in the string, except a Lark grammar), `format` (of the whole string) or `loose format`
            (a superset of it).
        source: the pattern, or the name of the format.
        positive: False for the negation.
        pointer: location of the schema that holds the keyword.
    """

    kind: str
    source: str
    positive: bool
    pointer: str


@dataclass(frozen=True, slots=True)
class NumberBody:
    """Assertions on a number: an interval and its multiples. It has the same fields as `NumberShape`."""

    minimum: Fraction | None = None
    maximum: Fraction | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: Fraction | None = None
    not_multiple_of: frozenset[Fraction] = frozenset()
    integer_form: bool = False
    fraction_form: bool = False

    def meet(self, other: NumberBody) -> NumberBody | None:
        """Return the conjunction of both; None if it is proven to be unsatisfiable."""
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
        """Whether no number is allowed; exact, except that `not_multiple_of` is only compared with `multiple_of`."""
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
        if last - first < 16:  # few enough to try each multiple
            return not any(self.accepts(number * step) for number in range(first, last + 1))
        return False

    def accepts(self, value: Fraction) -> bool:
        """Whether a number is allowed, regardless of `integer_form` and `fraction_form`."""
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
    """Assertions on a string: patterns and formats, and its length in code points."""

    texts: frozenset[TextDemand] = frozenset()
    min_length: int = 0
    max_length: int | None = None

    def meet(self, other: StringBody) -> StringBody | None:
        """Return the conjunction of both; None if the lengths contradict each other."""
        low, high = max(self.min_length, other.min_length), min_bound(self.max_length, other.max_length)
        if high is not None and high < low:
            return None
        return StringBody(self.texts | other.texts, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class ItemRule:
    """The item applicators of one schema: one conjunction for each prefix item, and `rest` for the items after them."""

    prefix: tuple[Conj, ...]
    rest: Conj

    def at(self, index: int) -> Conj:
        """Return the conjunction that the item at an index must satisfy."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True, slots=True)
class Contains:
    """An assertion that `min_count` to `max_count` of the items from index `start` on satisfy `conj`."""

    conj: Conj
    min_count: int
    max_count: int | None
    start: int
    mark: FacetMark


@dataclass(frozen=True, slots=True)
class ArrayBody:
    """Assertions on an array: its items, length and `contains` counts. `unique` is the mark for a `uniqueItems` that is not enforced."""

    rules: tuple[ItemRule, ...] = ()
    min_items: int = 0
    max_items: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: FacetMark | None = None

    def meet(self, other: ArrayBody) -> ArrayBody | None:
        """Return the conjunction of both; None if the lengths contradict each other."""
        low, high = max(self.min_items, other.min_items), min_bound(self.max_items, other.max_items)
        if high is not None and high < low:
            return None
        return ArrayBody(
            _concatenate(self.rules, other.rules),
            low,
            high,
            _concatenate(self.contains, other.contains),
            self.unique or other.unique,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PropertyRule:
    """The property applicators of one schema.

    Attributes:
        names: declared properties in order, with the conjunctions for their values.
        patterns: pattern properties: a pattern that is searched for in the name, and the conjunction for the value.
        additional: the conjunction for the values of additional properties.
        is_declaration: False: the names are only listed, so that their presence can be counted; they have no order.
    """

    names: Mapping[str, Conj]
    patterns: tuple[tuple[str, Conj], ...] = ()
    additional: Conj = TRUE
    is_declaration: bool = True


@dataclass(frozen=True, slots=True)
class Exists:
    """An assertion that some property has a name that satisfies `name` and a value that satisfies `value`."""

    name: Conj
    value: Conj
    mark: FacetMark


@dataclass(frozen=True, slots=True)
class ObjectBody:
    """Assertions on an object.

    Attributes:
        rules: the property applicators of each schema, in the order in which the schemas are read.
        required, absent: names of properties that must be present and must be absent.
        min_properties, max_properties: inclusive bounds on their number; None means no upper bound.
        names: the conjunction for all property names.
        exists: properties that must exist, without a fixed name.
        listed: the names of `required`, in the order of the schemas. Names that are required for another reason may be missing.
    """

    rules: tuple[PropertyRule, ...] = ()
    required: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    min_properties: int = 0
    max_properties: int | None = None
    names: Conj = TRUE
    exists: tuple[Exists, ...] = ()
    listed: tuple[str, ...] = field(default=(), compare=False)

    def meet(self, other: ObjectBody) -> ObjectBody | None:
        """Return the conjunction of both; None if counts, required and absent names contradict each other."""
        low = max(self.min_properties, other.min_properties)
        high = min_bound(self.max_properties, other.max_properties)
        required, absent = self.required | other.required, self.absent | other.absent
        if (high is not None and high < max(low, len(required))) or not required.isdisjoint(absent):
            return None
        return ObjectBody(
            _concatenate(self.rules, other.rules),
            required,
            absent,
            low,
            high,
            self.names | other.names,
            _concatenate(self.exists, other.exists),
            _concatenate(self.listed, other.listed),
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
    """The properties or items that the schemas of a facet have evaluated, for `unevaluatedProperties` and `unevaluatedItems`.

    Attributes:
        everything: all properties, or all items.
        names, patterns: declared and pattern properties.
        prefix: number of prefix items.
        matching: items that satisfy any of these conjunctions (`contains` of 2020-12).
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    prefix: int = 0
    matching: frozenset[Conj] = frozenset()

    def join(self, other: Evaluated) -> Evaluated:
        """Return the properties or items that either has evaluated."""
        return Evaluated(
            self.everything or other.everything,
            self.names | other.names,
            self.patterns | other.patterns,
            max(self.prefix, other.prefix),
            self.matching | other.matching,
        )


NOTHING_EVALUATED = Evaluated()


@dataclass(frozen=True, slots=True)
class Facet:
    """A conjunction of assertions on the values of one type.

    Attributes:
        kind: the type.
        body: its type-specific assertions; None for null and boolean.
        literals: the only allowed values, by `json_key`; None if values are not listed.
        excluded: the `json_key` of each forbidden value.
        marks: keywords that the facet does not fully enforce.
        evaluated: the evaluated properties or items; recorded only for schemas with an `unevaluated` keyword.
    """

    kind: JsonType
    body: Body
    literals: Mapping[Hashable, Json] | None = None
    excluded: frozenset[Hashable] = frozenset()
    marks: frozenset[FacetMark] = frozenset()
    evaluated: Evaluated = NOTHING_EVALUATED

    def __hash__(self) -> int:
        first = None if self.literals is None else (len(self.literals), next(iter(self.literals), None))
        return hash((self.body, first, self.excluded, self.marks))

    @property
    def is_top(self) -> bool:
        """Whether every value of the type is allowed and no keyword is marked as not enforced."""
        return self.literals is None and not self.excluded and not self.marks and self.body == TOP_BODY[self.kind]

    def without_evaluated(self) -> Facet:
        """Return the facet without its record of evaluated properties and items."""
        return self if self.evaluated is NOTHING_EVALUATED else replace(self, evaluated=NOTHING_EVALUATED)


TOPS: Mapping[JsonType, Facet] = {kind: Facet(kind, body) for kind, body in TOP_BODY.items()}


def meet(a: Facet, b: Facet) -> Facet | None:
    """Return the conjunction of two facets of the same type; None if it is plainly unsatisfiable.

    The literals are not yet filtered by the body; `Texts.filter_literals` does that for strings and numbers.
    """
    assert a.kind is b.kind
    if b is TOPS[a.kind]:
        return a
    if a is TOPS[a.kind]:
        return b
    excluded = a.excluded | b.excluded
    literals = a.literals if b.literals is None else b.literals
    if a.literals is not None and b.literals is not None:
        shorter, longer = sorted((a.literals, b.literals), key=len)
        literals = {key: value for key, value in shorter.items() if key in longer}
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
    evaluated = a.evaluated if b.evaluated is NOTHING_EVALUATED else a.evaluated.join(b.evaluated)
    return Facet(a.kind, body, literals, excluded, a.marks | b.marks, evaluated)


def min_bound(a: int | None, b: int | None) -> int | None:
    """Return the tighter of two upper bounds; None means no bound."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _concatenate(a: tuple[_T, ...], b: tuple[_T, ...]) -> tuple[_T, ...]:
    if not a or not b:
        return a or b
    return tuple(dict.fromkeys((*a, *b)))
