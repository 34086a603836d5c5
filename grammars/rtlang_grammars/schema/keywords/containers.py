"""Keywords that constrain arrays and objects: applicators for items and properties, and limits on their number.

Source: JSON Schema Core 2020-12, sections 10.3 and 11, and Validation 2020-12, sections 6.4 and 6.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from rtlang_grammars.schema.keywords.dependents import read_dependent_required, read_dependent_schemas
from rtlang_grammars.schema.keywords.scalars import has_keyword, keyword_value, read_count, read_strings
from rtlang_grammars.schema.normal_form.algebra import Algebra, DeferredKeyword, Facets, Keyword, keyword_group
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    NOTHING_EVALUATED,
    TOPS,
    TRUE,
    ArrayBody,
    Conj,
    Contains,
    Evaluated,
    Exists,
    Facet,
    FacetMark,
    ItemRule,
    ObjectBody,
    PropertyRule,
    meet,
)
from rtlang_grammars.schema.reading.dialects import invalid_value
from rtlang_grammars.schema.reading.documents import SchemaNode
from rtlang_grammars.schema.reading.values import Json, JsonType

_ARRAY, _OBJECT = JsonType.ARRAY, JsonType.OBJECT


def _children(algebra: Algebra, node: SchemaNode, keyword: str, positive: bool) -> dict[str, Conj]:
    """Return the demands of a keyword whose value is an object of schemas."""
    value = keyword_value(node, keyword)
    if not isinstance(value, dict):
        raise invalid_value(value, "an object of schemas", keyword, node.location)
    children = algebra.documents.children(node, keyword, value)
    return {name: algebra.demand(child, positive) for name, child in zip(value, children, strict=True)}


def _child(algebra: Algebra, node: SchemaNode, keyword: str, positive: bool = True) -> Conj:
    return algebra.demand(algebra.documents.child(node, keyword), positive)


# Arrays


def read_items(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `items`, `prefixItems` and `additionalItems` (Core 10.3.1; the array form of `items` up to 2019-09)."""
    schema = cast("dict[str, Json]", node.schema)
    old = "prefixItems" not in node.dialect.keywords and isinstance(schema.get("items"), list)
    first, rest = ("items", "additionalItems") if old else ("prefixItems", "items")
    prefix: tuple[Conj, ...] = ()
    if has_keyword(node, first):
        value = schema[first]
        if not isinstance(value, list):
            raise invalid_value(value, "an array of schemas", first, node.location)
        children = (algebra.documents.child(node, first, index) for index in range(len(value)))
        prefix = tuple(algebra.demand(child, positive) for child in children)
    has_rest = has_keyword(node, rest)
    if positive:
        rule = ItemRule(prefix, _child(algebra, node, rest) if has_rest else TRUE)
        evaluated = Evaluated(everything=has_rest, prefix=len(prefix)) if track else NOTHING_EVALUATED
        limit = prefix.index(FALSE) if FALSE in prefix else len(prefix) if rule.rest == FALSE else None
        return (Facet(_ARRAY, ArrayBody((rule,), max_items=limit), evaluated=evaluated),)
    facets = [
        Facet(_ARRAY, ArrayBody((ItemRule((*(TRUE,) * index, conj), TRUE),), min_items=index + 1))
        for index, conj in enumerate(prefix)
        if conj != FALSE
    ]
    if has_rest:
        conj = _child(algebra, node, rest, False)
        mark = FacetMark(
            node.location, rest, "at least one item must violate it, and such items cannot be counted here"
        )
        if conj == TRUE:
            facets.append(Facet(_ARRAY, ArrayBody(min_items=len(prefix) + 1)))
        elif conj != FALSE:
            some = Contains(conj, 1, None, len(prefix), mark)
            facets.append(Facet(_ARRAY, ArrayBody(min_items=len(prefix) + 1, contains=(some,))))
    return facets


def read_item_counts(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `minItems` and `maxItems` (Validation 6.4.1, 6.4.2)."""
    low = read_count(node, "minItems") if has_keyword(node, "minItems") else 0
    high = read_count(node, "maxItems") if has_keyword(node, "maxItems") else None
    if positive:
        return () if high is not None and high < low else (Facet(_ARRAY, ArrayBody(min_items=low, max_items=high)),)
    facets = [Facet(_ARRAY, ArrayBody(max_items=low - 1))] if low else []
    return facets if high is None else [*facets, Facet(_ARRAY, ArrayBody(min_items=high + 1))]


def read_unique(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `uniqueItems` (Validation 6.4.3)."""
    value = keyword_value(node, "uniqueItems")
    if not isinstance(value, bool):
        raise invalid_value(value, "a boolean", "uniqueItems", node.location)
    if not value:
        return (TOPS[_ARRAY],) if positive else ()
    mark = FacetMark(node.location, "uniqueItems", "the items have too many possible values to enumerate")
    if positive:
        return (Facet(_ARRAY, ArrayBody(unique=mark)),)
    mark = mark._replace(reason="its negation, that two items are equal, is not enforced")
    return (Facet(_ARRAY, ArrayBody(min_items=2), marks=frozenset({mark})),)


def read_contains(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `contains`, `minContains` and `maxContains` (Core 10.3.1.3; Validation 6.4.4, 6.4.5)."""
    if not has_keyword(node, "contains"):
        return (TOPS[_ARRAY],) if positive else ()
    conj = _child(algebra, node, "contains")
    low = read_count(node, "minContains") if has_keyword(node, "minContains") else 1
    high = read_count(node, "maxContains") if has_keyword(node, "maxContains") else None
    mark = FacetMark(node.location, "contains", "too many contains keywords apply to the same array")
    if not positive:
        ways: list[tuple[int, int | None]] = [(0, low - 1)] if low else []
        ways += [] if high is None else [(high + 1, None)]
        return [facet for least, most in ways for facet in _counted(conj, least, most, mark, NOTHING_EVALUATED)]
    evaluated = NOTHING_EVALUATED
    if track and node.dialect.contains_evaluates:
        evaluated = Evaluated(matching=frozenset({conj})) if conj else Evaluated(everything=True)
    return _counted(conj, low, high, mark, evaluated)


def _counted(conj: Conj, low: int, high: int | None, mark: FacetMark, evaluated: Evaluated) -> Facets:
    if (high is not None and high < low) or (conj == FALSE and low):
        return ()
    if conj == TRUE:
        return (Facet(_ARRAY, ArrayBody(min_items=low, max_items=high), evaluated=evaluated),)
    if (low == 0 and high is None) or conj == FALSE:
        return (replace(TOPS[_ARRAY], evaluated=evaluated),) if evaluated is not NOTHING_EVALUATED else (TOPS[_ARRAY],)
    body = ArrayBody(min_items=low, contains=(Contains(conj, low, high, 0, mark),))
    return (Facet(_ARRAY, body, evaluated=evaluated),)


def read_unevaluated(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read the negation of `unevaluatedItems` and `unevaluatedProperties`; their positive form is deferred."""
    assert not positive
    keyword = "unevaluatedItems" if kind is _ARRAY else "unevaluatedProperties"
    if _child(algebra, node, keyword) == TRUE:
        return ()
    return algebra.unenforced(kind, node, keyword, "its negation is not supported")


def apply_unevaluated_items(algebra: Algebra, node: SchemaNode, facets: Facets, kind: JsonType, track: bool) -> Facets:
    """Apply `unevaluatedItems` to each facet of its adjacent keywords (Core 11.2)."""
    conj = _child(algebra, node, "unevaluatedItems")
    result = []
    for facet in facets:
        evaluated = facet.evaluated
        both: Facet | None = facet
        if not evaluated.everything:
            rest = algebra.any_of((conj, *sorted(evaluated.matching, key=sorted)), node) if evaluated.matching else conj
            limit = evaluated.prefix if rest == FALSE else None
            body = ArrayBody((ItemRule((TRUE,) * evaluated.prefix, rest),), max_items=limit)
            both = meet(facet, Facet(_ARRAY, body))
        if both is not None:
            result.append(replace(both, evaluated=Evaluated(everything=True)))
    return result


# Objects


def read_properties(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `properties`, `patternProperties` and `additionalProperties` (Core 10.3.2.1 to 10.3.2.3)."""
    names = _children(algebra, node, "properties", positive) if has_keyword(node, "properties") else {}
    patterns = _children(algebra, node, "patternProperties", positive) if has_keyword(node, "patternProperties") else {}
    has_rest = has_keyword(node, "additionalProperties")
    rest = _child(algebra, node, "additionalProperties", positive) if has_rest else TRUE if positive else FALSE
    if positive:
        evaluated = Evaluated(has_rest, frozenset(names), frozenset(patterns)) if track else NOTHING_EVALUATED
        return (Facet(_OBJECT, ObjectBody((PropertyRule(names, tuple(patterns.items()), rest),)), evaluated=evaluated),)
    facets = []
    for name, conj in names.items():
        if conj != FALSE:
            facets.append(Facet(_OBJECT, ObjectBody((algebra.rule(name, conj),), frozenset({name}))))
    for pattern, conj in patterns.items():
        if conj != FALSE:
            matched = algebra.demand(algebra.documents.synthetic({"pattern": pattern}, node))
            facets.append(_exists(matched, conj, FacetMark(node.location, "patternProperties", _NOT_COUNTED)))
    if rest != FALSE:
        others = set[int]()
        if names:
            others |= algebra.demand(algebra.documents.synthetic({"enum": [*names]}, node), False)
        for pattern in patterns:
            others |= algebra.demand(algebra.documents.synthetic({"pattern": pattern}, node), False)
        facets.append(_exists(frozenset(others), rest, FacetMark(node.location, "additionalProperties", _NOT_COUNTED)))
    return facets


_NOT_COUNTED = "at least one property must violate it, which is enforced only for finitely many names"


def _exists(name: Conj, value: Conj, mark: FacetMark) -> Facet:
    if name == TRUE and value == TRUE:
        return Facet(_OBJECT, ObjectBody(min_properties=1))
    return Facet(_OBJECT, ObjectBody(min_properties=1, exists=(Exists(name, value, mark),)))


def read_required(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `required` (Validation 6.5.3)."""
    names = read_strings(keyword_value(node, "required"), "required", node)
    if positive:
        return (Facet(_OBJECT, ObjectBody(required=frozenset(names), listed=tuple(dict.fromkeys(names)))),)
    return [Facet(_OBJECT, ObjectBody(absent=frozenset({name}))) for name in dict.fromkeys(names)]


def read_property_counts(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `minProperties` and `maxProperties` (Validation 6.5.1, 6.5.2)."""
    low = read_count(node, "minProperties") if has_keyword(node, "minProperties") else 0
    high = read_count(node, "maxProperties") if has_keyword(node, "maxProperties") else None
    if positive:
        body = ObjectBody(min_properties=low, max_properties=high)
        return () if high is not None and high < low else (Facet(_OBJECT, body),)
    facets = [Facet(_OBJECT, ObjectBody(max_properties=low - 1))] if low else []
    return facets if high is None else [*facets, Facet(_OBJECT, ObjectBody(min_properties=high + 1))]


def read_property_names(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `propertyNames` (Core 10.3.2.4)."""
    conj = _child(algebra, node, "propertyNames", positive)
    if positive:
        return (Facet(_OBJECT, ObjectBody(names=conj)),)
    return () if conj == FALSE else (_exists(conj, TRUE, FacetMark(node.location, "propertyNames", _NOT_COUNTED)),)


def apply_unevaluated_properties(
    algebra: Algebra, node: SchemaNode, facets: Facets, kind: JsonType, track: bool
) -> Facets:
    """Apply `unevaluatedProperties` to each facet of its adjacent keywords (Core 11.3)."""
    conj = _child(algebra, node, "unevaluatedProperties")
    result = []
    for facet in facets:
        evaluated = facet.evaluated
        both: Facet | None = facet
        if not evaluated.everything:
            names = dict.fromkeys(sorted(evaluated.names), TRUE)
            rule = PropertyRule(names, tuple((pattern, TRUE) for pattern in sorted(evaluated.patterns)), conj)
            both = meet(facet, Facet(_OBJECT, ObjectBody((rule,))))
        if both is not None:
            result.append(replace(both, evaluated=Evaluated(everything=True)))
    return result


ARRAYS: Mapping[str, Keyword] = {
    **keyword_group("items", read_items, "items", "prefixItems", "additionalItems"),
    **keyword_group("itemCounts", read_item_counts, "minItems", "maxItems"),
    **keyword_group("uniqueItems", read_unique, "uniqueItems"),
    **keyword_group("contains", read_contains, "contains", "minContains", "maxContains"),
    **keyword_group("unevaluatedItems", read_unevaluated, "unevaluatedItems"),
}
OBJECTS: Mapping[str, Keyword] = {
    **keyword_group("properties", read_properties, "properties", "patternProperties", "additionalProperties"),
    **keyword_group("required", read_required, "required"),
    **keyword_group("propertyCounts", read_property_counts, "minProperties", "maxProperties"),
    **keyword_group("propertyNames", read_property_names, "propertyNames"),
    **keyword_group("dependentRequired", read_dependent_required, "dependentRequired"),
    **keyword_group("dependentSchemas", read_dependent_schemas, "dependentSchemas", "dependencies"),
    **keyword_group("unevaluatedProperties", read_unevaluated, "unevaluatedProperties"),
}
DEFERRED_KEYWORDS = (
    DeferredKeyword("unevaluatedItems", apply_unevaluated_items, needs_evaluated=True),
    DeferredKeyword("unevaluatedProperties", apply_unevaluated_properties, needs_evaluated=True),
)
