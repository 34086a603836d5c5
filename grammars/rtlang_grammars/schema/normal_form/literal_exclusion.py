"""Case splits for arrays and objects that must differ from listed values: `not` over `const` and `enum`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rtlang_grammars.schema.normal_form.algebra import Algebra
from rtlang_grammars.schema.normal_form.facets import (
    TRUE,
    ArrayBody,
    Conj,
    Facet,
    FacetMark,
    ItemRule,
    ObjectBody,
    meet,
)
from rtlang_grammars.schema.reading.values import Json, JsonType

MAX_EXCLUDED = 16  # values that are excluded by case splits; each value multiplies the number of cases


def expand_excluded(algebra: Algebra, facet: Facet) -> Iterator[Facet]:
    """Yield facets without `excluded` whose union is equivalent to a facet with it.

    From the value after the `MAX_EXCLUDED`-th on, values are not excluded but marked as not enforced.
    """
    facets = [replace(facet, excluded=frozenset())]
    mark = FacetMark("#", "not", f"more than {MAX_EXCLUDED} arrays or objects are excluded at the same location")
    for number, key in enumerate(sorted(facet.excluded, key=repr)):
        algebra.budget.spend(states=1)
        if number >= MAX_EXCLUDED or len(facets) > algebra.options.max_alternatives:
            facets = [replace(each, marks=each.marks | {mark}) for each in facets]
            break
        others = list(_different_from(algebra, algebra.excluded_values[key]))
        facets = [both for each in facets for other in others if (both := meet(each, other)) is not None]
    yield from facets


def _not_equal(algebra: Algebra, value: Json) -> Conj:
    return algebra.demand(algebra.documents.synthetic({"enum": [value]}, algebra.documents.root_node()), False)


def _different_from(algebra: Algebra, value: Json) -> Iterator[Facet]:
    if isinstance(value, list):
        if value:
            yield Facet(JsonType.ARRAY, ArrayBody(max_items=len(value) - 1))
        yield Facet(JsonType.ARRAY, ArrayBody(min_items=len(value) + 1))
        for index, item in enumerate(value):
            rule = ItemRule((*(TRUE,) * index, _not_equal(algebra, item)), TRUE)
            yield Facet(JsonType.ARRAY, ArrayBody((rule,), min_items=index + 1))
        return
    assert isinstance(value, dict)
    if not value:
        yield Facet(JsonType.OBJECT, ObjectBody(min_properties=1))
        return
    for name, item in value.items():
        yield Facet(JsonType.OBJECT, ObjectBody(absent=frozenset({name})))
        rule_of_name = algebra.rule(name, _not_equal(algebra, item))
        yield Facet(JsonType.OBJECT, ObjectBody((rule_of_name,), frozenset({name})))
    # an object with all of its properties and one more differs from it
    yield Facet(JsonType.OBJECT, ObjectBody(required=frozenset(value), min_properties=len(value) + 1))
