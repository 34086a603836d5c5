"""Shapes: the normal form of a JSON Schema, without references, conjunctions or negations.

A shape is a list of *alternatives*. Each alternative describes values of one JSON type (a literal: listed values) on its own. A shape
accepts a value if at least one alternative does; alternatives may overlap. Shapes refer to each other by their index in
`ShapeGraph.shapes`, so a recursive schema is a cyclic graph.

Invariants: each reachable alternative accepts at least one finite value, every reference is a valid index, and every assertion of the
schema is either enforced by the shapes or has the status `checked` in the report.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rtlang_grammars.schema.reading.report import LazyLocation, location_of

if TYPE_CHECKING:
    from rtlang_grammars.regular.language import Language
    from rtlang_grammars.schema.reading.report import Report
    from rtlang_grammars.schema.reading.values import Json


@dataclass(frozen=True, slots=True)
class NullShape:
    """The value null."""


@dataclass(frozen=True, slots=True)
class BooleanShape:
    """Boolean values.

    Attributes:
        values: (False, True), (False,) or (True,).
    """

    values: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class NumberShape:
    """Numbers of an interval, compared by value: 1, 1.0 and 1e0 are the same number (but see `integer_form`).

    Attributes:
        minimum, maximum: exact bounds, inclusive unless the corresponding flag is set; None means no bound.
        exclusive_minimum, exclusive_maximum: the bound itself is excluded.
        multiple_of: positive number of which every value is an integer multiple; None means no restriction. For an integer schema it
            is an integer, 1 unless `multipleOf` asks for more.
        not_multiple_of: numbers of which no value is an integer multiple (from `not`); (1,) excludes the integers.
        integer_form: the number must be written without fraction and exponent (draft-04, where 1.0 is not an integer).
        fraction_form: the number must be written with a fraction or an exponent (the negation of `integer_form`).
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
        """Whether only integers are allowed."""
        return self.multiple_of is not None and self.multiple_of.denominator == 1


@dataclass(frozen=True, slots=True)
class StringShape:
    """Strings, as the decoded text between the quotes.

    Attributes:
        language: the allowed texts, regardless of their length; None means all.
        min_length, max_length: inclusive bounds on the number of code points; None means no upper bound.
    """

    language: Language | None = None
    min_length: int = 0
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class LiteralShape:
    """Exactly the listed values (`enum`, `const`), compared as JSON: 1 equals 1.0, properties have no order.

    Attributes:
        values: at least one, distinct, of any JSON type, in the order of the schema.
    """

    values: tuple[Json, ...]


class ItemCase(NamedTuple):
    """One case of an item in an array with `contains` counts.

    Attributes:
        shape: index of the shape of the item.
        counts: bit mask; bit i is set if an item of this case counts for `ArrayShape.contains[i]`.
    """

    shape: int
    counts: int


@dataclass(frozen=True, slots=True)
class ContainsCount:
    """The allowed number of items that match one `contains` subschema.

    Attributes:
        min_count, max_count: inclusive bounds; None means no upper bound.
    """

    min_count: int
    max_count: int | None


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Arrays.

    Attributes:
        prefix: indices of the shapes of the prefix items.
        items: index of the shape of every later item; None if there can be none (then `max_items` is at most `len(prefix)`).
        min_items, max_items: inclusive bounds on the length; None means no upper bound.
        contains: the counts to enforce; empty for most arrays.
        prefix_cases, items_cases: empty without `contains`; else, for each prefix item and for later items, the cases whose union is
            `prefix[i]` or `items`. The cases of a count with a `max_count` are disjoint; otherwise an item may fit several cases, and
            the array is valid if any assignment of its items to cases satisfies the counts.
        unique: items must be pairwise distinct, and the other fields do not ensure it. Reported as `checked` if `distinct` is empty.
            (If there are few such arrays, a `LiteralShape` lists them instead.)
        distinct: all values that `items` accepts, if they are few, scalars and the same at every position, so that `unique` can be
            enforced; else empty.
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
    """One declared property.

    Attributes:
        name: its decoded name.
        shape: index of the shape of its value; None if the property is forbidden.
    """

    name: str
    shape: int | None


class KeyClass(NamedTuple):
    """A set of undeclared property names whose values share one shape.

    Attributes:
        names: the language of the decoded names, disjoint from the other classes of the object. Declared names in it are ignored: their
            `Property` takes precedence.
        shape: index of the shape of the values; None if these names are forbidden.
    """

    names: Language
    shape: int | None


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """Objects. `properties` take precedence over `classes`, and `classes` over `additional`.

    Attributes:
        properties: the declared properties in the order of the schema, then other required ones, then those that are only listed
            (by `propertyNames`, or as all names of a pattern); without repetition.
        classes: classes of names, by pattern. If `propertyNames` restricts the names, classes cover all allowed undeclared names and
            `additional` is None.
        additional: index of the shape of the values of all other properties; None if they are forbidden.
        required: names of the properties that must be present; none of them is forbidden.
        min_properties, max_properties: inclusive bounds on their number; None means no upper bound.
        unordered: names of the properties that are only listed. They may come in any order, after the declared ones.
    """

    properties: tuple[Property, ...] = ()
    classes: tuple[KeyClass, ...] = ()
    additional: int | None = None
    required: frozenset[str] = frozenset()
    min_properties: int = 0
    max_properties: int | None = None
    unordered: frozenset[str] = frozenset()


Alternative: TypeAlias = NullShape | BooleanShape | NumberShape | StringShape | LiteralShape | ArrayShape | ObjectShape


@dataclass(frozen=True, slots=True)
class Shape:
    """The values that are allowed at one location.

    Attributes:
        alternatives: at least one; a value is accepted if any of them accepts it.
        origin: location of one of the schemas from which it was built.
    """

    alternatives: tuple[Alternative, ...]
    origin: LazyLocation = ("", "")

    @property
    def pointer(self) -> str:
        """The origin as a URI with a JSON pointer as its fragment (`#/properties/a`), for messages."""
        return location_of(self.origin)


@dataclass(frozen=True, slots=True)
class ShapeGraph:
    """A whole schema in normal form.

    Attributes:
        root: index of the shape of the whole instance.
        shapes: all shapes; they may refer to each other in cycles.
        report: the status of every keyword.
    """

    root: int
    shapes: tuple[Shape, ...]
    report: Report
