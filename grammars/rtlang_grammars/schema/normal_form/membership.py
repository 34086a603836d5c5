"""Validation of single values against facets, which filters the values of `enum` and `const` by the other keywords."""

from __future__ import annotations

from rtlang_grammars.schema.normal_form.algebra import Algebra
from rtlang_grammars.schema.normal_form.emptiness import accepts_name, value_demands
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    TRUE,
    ArrayBody,
    Conj,
    Facet,
    NumberBody,
    ObjectBody,
    StringBody,
)
from rtlang_grammars.schema.reading.values import Json, json_key, type_of


def meets(algebra: Algebra, conj: Conj, value: Json) -> bool:
    """Whether a value satisfies a conjunction."""
    if not conj:
        return True
    if conj >= FALSE:
        return False
    algebra.budget.spend()
    return any(facet_accepts(algebra, facet, value) for facet in algebra.conjunction(conj, type_of(value)))


def facet_accepts(algebra: Algebra, facet: Facet, value: Json) -> bool:
    """Whether a facet accepts a value of its type."""
    if facet.literals is not None or facet.excluded:
        key = json_key(value)
        if key in facet.excluded or (facet.literals is not None and key not in facet.literals):
            return False
    body = facet.body
    if body is None:
        return True
    if isinstance(body, NumberBody):
        return algebra.texts.accepts_number(body, value)
    if isinstance(body, StringBody):
        assert isinstance(value, str)
        return algebra.texts.accepts(body, value)
    if isinstance(body, ArrayBody):
        assert isinstance(value, list)
        return _accepts_array(algebra, body, value)
    assert isinstance(value, dict)
    return _accepts_object(algebra, body, value)


def _accepts_array(algebra: Algebra, body: ArrayBody, value: list[Json]) -> bool:
    if len(value) < body.min_items or (body.max_items is not None and len(value) > body.max_items):
        return False
    if body.unique and len({json_key(item) for item in value}) < len(value):
        return False
    for counted in body.contains:
        count = sum(meets(algebra, counted.conj, item) for item in value[counted.start :])
        if count < counted.min_count or (counted.max_count is not None and count > counted.max_count):
            return False
    return all(meets(algebra, rule.at(index), item) for rule in body.rules for index, item in enumerate(value))


def _accepts_object(algebra: Algebra, body: ObjectBody, value: dict[str, Json]) -> bool:
    if len(value) < body.min_properties or (body.max_properties is not None and len(value) > body.max_properties):
        return False
    if not body.required <= value.keys() or not body.absent.isdisjoint(value):
        return False
    if body.names != TRUE and not all(accepts_name(algebra, body.names, name) for name in value):
        return False
    for some in body.exists:
        if not any(
            accepts_name(algebra, some.name, name) and meets(algebra, some.value, item) for name, item in value.items()
        ):
            return False
    return all(meets(algebra, value_demands(algebra, body.rules, name), item) for name, item in value.items())
