"""Shapes: the normal form of a JSON Schema, with nothing left to resolve, merge or negate.

A schema is a conjunction of demands on every JSON type at once; a shape is the list of *alternatives* that remain when
all of that has been worked out: each alternative speaks of one JSON type only (a literal: of the listed values) and
stands alone. A value is accepted by a shape when it is accepted by at least one alternative; alternatives may overlap.
Shapes refer to each other by their index in `ShapeGraph.shapes`, so a recursive schema is a cyclic graph. What must stay
true: no reachable alternative is empty (each accepts at least one finite value), every reference is a valid index, and
every demand of the schema is either in the shapes or named in the report as `checked`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rtlang_grammars.schema.reading.report import Spot, location_of

if TYPE_CHECKING:
    from rtlang_grammars.regular.language import Language
    from rtlang_grammars.schema.reading.report import Report
    from rtlang_grammars.schema.reading.values import Json


@dataclass(frozen=True, slots=True)
class NullShape:
    """The value null."""


@dataclass(frozen=True, slots=True)
class BooleanShape:
    """Truth values.

    Attributes:
        values: (False, True), (False,) or (True,).
    """

    values: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class NumberShape:
    """Numbers of an interval, by value: 1, 1.0 and 1e0 are the same number (but see `integer_form`).

    Attributes:
        minimum, maximum: exact bounds, inclusive unless the flag beside them says otherwise; None where there is none.
        exclusive_minimum, exclusive_maximum: the bound itself is not allowed.
        multiple_of: every value is an integer multiple of this positive number; None where free. An integer schema
            has a `multiple_of` that is itself an integer (1 where nothing else was asked).
        not_multiple_of: no value is an integer multiple of any of these (from `not`); (1,) means no integer.
        integer_form: the number must be written without fraction and exponent (draft-04, where 1.0 is no integer).
        fraction_form: the number must be written with a fraction or an exponent (the negation of the former).
    """

    minimum: Fraction | None = None
    maximum: Fraction | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: Fraction | None = None
    not_multiple_of: tuple[Fraction, ...] = ()
    integer_form: bool = False
    fraction_form: bool = False

    @property
    def is_integer(self) -> bool:
        """Only integers are allowed."""
        return self.multiple_of is not None and self.multiple_of.denominator == 1


@dataclass(frozen=True, slots=True)
class StringShape:
    """Strings, as the decoded text between the quotes.

    Attributes:
        language: texts allowed; None for every text.
        min_length, max_length: in code points, both inclusive, and not contained in `language`; None: no upper bound.
    """

    language: Language | None = None
    min_length: int = 0
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class LiteralShape:
    """Exactly the listed values (enum, const), compared as JSON: 1 equals 1.0, objects have no order.

    Attributes:
        values: at least one, distinct, of any JSON types, in the order of the schema.
    """

    values: tuple[Json, ...]


class ItemCase(NamedTuple):
    """One way an element may be when elements are counted.

    Attributes:
        shape: what the element is.
        counts: bit i is set when such an element counts for `ArrayShape.contains[i]`.
    """

    shape: int
    counts: int


@dataclass(frozen=True, slots=True)
class ContainsCount:
    """How many elements must be of a counted kind.

    Attributes:
        min_count, max_count: inclusive; None: no upper bound.
    """

    min_count: int
    max_count: int | None


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Arrays.

    Attributes:
        prefix: shapes of the first elements, by position.
        items: shape of every later element; None where there can be none (`max_items` is then at most `len(prefix)`).
        min_items, max_items: inclusive; None: no upper bound.
        contains: counted kinds of elements; empty for most arrays.
        prefix_cases, items_cases: only where `contains` is not empty: for each position of `prefix`, and for later
            elements, the cases that together make up `prefix[i]` or `items`. Where a kind has a `max_count` its cases
            are disjoint; else an element may fit several cases, and any reading of the array that meets the counts is right.
        unique: no two elements may be equal, which the other fields do not ensure. Reported as `checked` unless there are `distinct`
            (few arrays of unique elements have been written out as a `LiteralShape` before).
        distinct: all values that `items` accepts, where they are few, none is an array or object, and no element is ruled otherwise:
            then `unique` can be enforced.
    """

    prefix: tuple[int, ...] = ()
    items: int | None = None
    min_items: int = 0
    max_items: int | None = None
    contains: tuple[ContainsCount, ...] = ()
    prefix_cases: tuple[tuple[ItemCase, ...], ...] = ()
    items_cases: tuple[ItemCase, ...] = ()
    unique: bool = False
    distinct: tuple[Json, ...] = ()


class Property(NamedTuple):
    """One declared name.

    Attributes:
        name: the decoded key.
        shape: shape of its value; None: a property of this name is forbidden.
    """

    name: str
    shape: int | None


class KeyClass(NamedTuple):
    """A set of names that share one shape.

    Attributes:
        names: the names, as a language of decoded keys. Disjoint from every other class of the object. It may contain
            declared names: a declared name is always ruled by its `Property`, never by a class.
        shape: shape of the values; None: names of this class are forbidden.
    """

    names: Language
    shape: int | None


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """Objects. A name is ruled by the first that knows it: `properties`, then `classes`, then `additional`.

    Attributes:
        properties: declared names in the order of the schema, each once; they include every name in `required`.
        classes: names by pattern. Where `propertyNames` limits the names, every other name is in a class too, and
            `additional` is None.
        additional: shape of the values of all other names; None: there are no others.
        required: names that must be present; each has a shape.
        min_properties, max_properties: inclusive; None: no upper bound.
    """

    properties: tuple[Property, ...] = ()
    classes: tuple[KeyClass, ...] = ()
    additional: int | None = None
    required: frozenset[str] = frozenset()
    min_properties: int = 0
    max_properties: int | None = None


Alternative: TypeAlias = NullShape | BooleanShape | NumberShape | StringShape | LiteralShape | ArrayShape | ObjectShape


@dataclass(frozen=True, slots=True)
class Shape:
    """What values are allowed in one place.

    Attributes:
        alternatives: at least one; a value must be accepted by one of them, and may be by several.
        spot: where one schema it was made from was written.
    """

    alternatives: tuple[Alternative, ...]
    spot: Spot = ("", "")

    @property
    def pointer(self) -> str:
        """The same as a JSON pointer (as a URI fragment, `#/properties/a`), for messages."""
        return location_of(self.spot)


@dataclass(frozen=True, slots=True)
class ShapeGraph:
    """A whole schema in normal form.

    Attributes:
        root: index of the shape of the whole value.
        shapes: all shapes; cyclic references are allowed.
        report: what became of every keyword.
    """

    root: int
    shapes: tuple[Shape, ...]
    report: Report
