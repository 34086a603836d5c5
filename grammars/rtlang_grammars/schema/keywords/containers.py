"""Keywords of arrays and objects that speak of children, sizes and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from rtlang_grammars.schema.keywords.dependents import read_dependent_required, read_dependent_schemas
from rtlang_grammars.schema.keywords.scalars import count, has, keyword_value, strings
from rtlang_grammars.schema.normal_form.algebra import Afterthought, Algebra, Facets, Handler, Keyword
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    NOTHING,
    TOPS,
    TRUE,
    ArrayBody,
    Conj,
    Contains,
    Evaluated,
    Exists,
    Facet,
    ItemRule,
    Mark,
    ObjectBody,
    PropertyRule,
    meet,
)
from rtlang_grammars.schema.reading.dialects import expected
from rtlang_grammars.schema.reading.documents import Node
from rtlang_grammars.schema.reading.values import Json, JsonType

_ARRAY, _OBJECT = JsonType.ARRAY, JsonType.OBJECT


def _children(algebra: Algebra, node: Node, keyword: str, positive: bool) -> dict[str, Conj]:
    """Demands for an object of schemas."""
    value = keyword_value(node, keyword)
    if not isinstance(value, dict):
        raise expected(value, "an object", keyword, node.location)
    children = algebra.documents.children(node, keyword, value)
    return {name: algebra.demand(child, positive) for name, child in zip(value, children, strict=True)}


def _child(algebra: Algebra, node: Node, keyword: str, positive: bool = True) -> Conj:
    return algebra.demand(algebra.documents.child(node, keyword), positive)


# Arrays


def read_items(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`items`, `prefixItems`, `additionalItems`."""
    schema = cast("dict[str, Json]", node.schema)
    old = "prefixItems" not in node.dialect.keywords and isinstance(schema.get("items"), list)
    first, rest = ("items", "additionalItems") if old else ("prefixItems", "items")
    prefix: tuple[Conj, ...] = ()
    if has(node, first):
        value = schema[first]
        if not isinstance(value, list):
            raise expected(value, "a list", first, node.location)
        children = (algebra.documents.child(node, first, index) for index in range(len(value)))
        prefix = tuple(algebra.demand(child, positive) for child in children)
    has_rest = has(node, rest)
    if positive:
        rule = ItemRule(prefix, _child(algebra, node, rest) if has_rest else TRUE)
        evaluated = Evaluated(everything=has_rest, prefix=len(prefix)) if track else NOTHING
        limit = prefix.index(FALSE) if FALSE in prefix else len(prefix) if rule.rest == FALSE else None
        return (Facet(_ARRAY, ArrayBody((rule,), max_items=limit), evaluated=evaluated),)
    facets = [
        Facet(_ARRAY, ArrayBody((ItemRule((*(TRUE,) * index, conj), TRUE),), min_items=index + 1))
        for index, conj in enumerate(prefix)
        if conj != FALSE
    ]
    if has_rest:
        conj = _child(algebra, node, rest, False)
        mark = Mark(node.location, rest, "some element must not match it, which shapes cannot count here")
        if conj == TRUE:
            facets.append(Facet(_ARRAY, ArrayBody(min_items=len(prefix) + 1)))
        elif conj != FALSE:
            some = Contains(conj, 1, None, len(prefix), mark)
            facets.append(Facet(_ARRAY, ArrayBody(min_items=len(prefix) + 1, contains=(some,))))
    return facets


def read_item_counts(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`minItems`, `maxItems`."""
    low = count(node, "minItems") if has(node, "minItems") else 0
    high = count(node, "maxItems") if has(node, "maxItems") else None
    if positive:
        return () if high is not None and high < low else (Facet(_ARRAY, ArrayBody(min_items=low, max_items=high)),)
    facets = [Facet(_ARRAY, ArrayBody(max_items=low - 1))] if low else []
    return facets if high is None else [*facets, Facet(_ARRAY, ArrayBody(min_items=high + 1))]


def read_unique(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`uniqueItems`."""
    value = keyword_value(node, "uniqueItems")
    if not isinstance(value, bool):
        raise expected(value, "a boolean", "uniqueItems", node.location)
    if not value:
        return (TOPS[_ARRAY],) if positive else ()
    mark = Mark(node.location, "uniqueItems", "the elements may be of too many values to list their arrays")
    if positive:
        return (Facet(_ARRAY, ArrayBody(unique=mark)),)
    mark = mark._replace(reason="that two elements are equal is not enforced")
    return (Facet(_ARRAY, ArrayBody(min_items=2), marks=frozenset({mark})),)


def read_contains(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`contains`, `minContains`, `maxContains`."""
    if not has(node, "contains"):
        return (TOPS[_ARRAY],) if positive else ()
    conj = _child(algebra, node, "contains")
    low = count(node, "minContains") if has(node, "minContains") else 1
    high = count(node, "maxContains") if has(node, "maxContains") else None
    mark = Mark(node.location, "contains", "too many different kinds of elements are counted")
    if not positive:
        ways: list[tuple[int, int | None]] = [(0, low - 1)] if low else []
        ways += [] if high is None else [(high + 1, None)]
        return [facet for least, most in ways for facet in _counted(conj, least, most, mark, NOTHING)]
    evaluated = NOTHING
    if track and node.dialect.contains_evaluates:
        evaluated = Evaluated(matching=frozenset({conj})) if conj else Evaluated(everything=True)
    return _counted(conj, low, high, mark, evaluated)


def _counted(conj: Conj, low: int, high: int | None, mark: Mark, evaluated: Evaluated) -> Facets:
    if (high is not None and high < low) or (conj == FALSE and low):
        return ()
    if conj == TRUE:
        return (Facet(_ARRAY, ArrayBody(min_items=low, max_items=high), evaluated=evaluated),)
    if (low == 0 and high is None) or conj == FALSE:
        return (replace(TOPS[_ARRAY], evaluated=evaluated),) if evaluated is not NOTHING else (TOPS[_ARRAY],)
    body = ArrayBody(min_items=low, contains=(Contains(conj, low, high, 0, mark),))
    return (Facet(_ARRAY, body, evaluated=evaluated),)


def read_unevaluated(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """The negation of `unevaluatedItems` and `unevaluatedProperties`."""
    assert not positive
    keyword = "unevaluatedItems" if kind is _ARRAY else "unevaluatedProperties"
    if _child(algebra, node, keyword) == TRUE:
        return ()
    return algebra.unenforced(kind, node, keyword, "its negation is not supported")


def apply_unevaluated_items(algebra: Algebra, node: Node, facets: Facets, kind: JsonType, track: bool) -> Facets:
    """`unevaluatedItems`, for each way to meet the rest of its schema."""
    conj = _child(algebra, node, "unevaluatedItems")
    result = []
    for facet in facets:
        done = facet.evaluated
        both: Facet | None = facet
        if not done.everything:
            rest = algebra.any_of((conj, *sorted(done.matching, key=sorted)), node) if done.matching else conj
            limit = done.prefix if rest == FALSE else None
            body = ArrayBody((ItemRule((TRUE,) * done.prefix, rest),), max_items=limit)
            both = meet(facet, Facet(_ARRAY, body))
        if both is not None:
            result.append(replace(both, evaluated=Evaluated(everything=True)))
    return result


# Objects


def read_properties(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`properties`, `patternProperties`, `additionalProperties`."""
    names = _children(algebra, node, "properties", positive) if has(node, "properties") else {}
    patterns = _children(algebra, node, "patternProperties", positive) if has(node, "patternProperties") else {}
    has_rest = has(node, "additionalProperties")
    rest = _child(algebra, node, "additionalProperties", positive) if has_rest else TRUE if positive else FALSE
    if positive:
        evaluated = Evaluated(has_rest, frozenset(names), frozenset(patterns)) if track else NOTHING
        return (Facet(_OBJECT, ObjectBody((PropertyRule(names, tuple(patterns.items()), rest),)), evaluated=evaluated),)
    facets = []
    for name, conj in names.items():
        if conj != FALSE:
            facets.append(Facet(_OBJECT, ObjectBody((algebra.rule(name, conj),), frozenset({name}))))
    for pattern, conj in patterns.items():
        if conj != FALSE:
            matched = algebra.demand(algebra.documents.synthetic({"pattern": pattern}, node))
            facets.append(_some(matched, conj, Mark(node.location, "patternProperties", _NOT_COUNTED)))
    if rest != FALSE:
        others = set[int]()
        if names:
            others |= algebra.demand(algebra.documents.synthetic({"enum": [*names]}, node), False)
        for pattern in patterns:
            others |= algebra.demand(algebra.documents.synthetic({"pattern": pattern}, node), False)
        facets.append(_some(frozenset(others), rest, Mark(node.location, "additionalProperties", _NOT_COUNTED)))
    return facets


_NOT_COUNTED = "some property must not match it, which is enforced only where the names are finitely many"


def _some(name: Conj, value: Conj, mark: Mark) -> Facet:
    if name == TRUE and value == TRUE:
        return Facet(_OBJECT, ObjectBody(min_properties=1))
    return Facet(_OBJECT, ObjectBody(min_properties=1, exists=(Exists(name, value, mark),)))


def read_required(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`required`."""
    names = strings(keyword_value(node, "required"), "required", node)
    if positive:
        return (Facet(_OBJECT, ObjectBody(required=frozenset(names))),)
    return [Facet(_OBJECT, ObjectBody(absent=frozenset({name}))) for name in dict.fromkeys(names)]


def read_property_counts(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`minProperties`, `maxProperties`."""
    low = count(node, "minProperties") if has(node, "minProperties") else 0
    high = count(node, "maxProperties") if has(node, "maxProperties") else None
    if positive:
        body = ObjectBody(min_properties=low, max_properties=high)
        return () if high is not None and high < low else (Facet(_OBJECT, body),)
    facets = [Facet(_OBJECT, ObjectBody(max_properties=low - 1))] if low else []
    return facets if high is None else [*facets, Facet(_OBJECT, ObjectBody(min_properties=high + 1))]


def read_property_names(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`propertyNames`."""
    conj = _child(algebra, node, "propertyNames", positive)
    if positive:
        return (Facet(_OBJECT, ObjectBody(names=conj)),)
    return () if conj == FALSE else (_some(conj, TRUE, Mark(node.location, "propertyNames", _NOT_COUNTED)),)


def apply_unevaluated_properties(algebra: Algebra, node: Node, facets: Facets, kind: JsonType, track: bool) -> Facets:
    """`unevaluatedProperties`, for each way to meet the rest of its schema."""
    conj = _child(algebra, node, "unevaluatedProperties")
    result = []
    for facet in facets:
        done = facet.evaluated
        both: Facet | None = facet
        if not done.everything:
            names = dict.fromkeys(sorted(done.names), TRUE)
            rule = PropertyRule(names, tuple((pattern, TRUE) for pattern in sorted(done.patterns)), conj)
            both = meet(facet, Facet(_OBJECT, ObjectBody((rule,))))
        if both is not None:
            result.append(replace(both, evaluated=Evaluated(everything=True)))
    return result


def _group(group: str, handler: Handler, *keywords: str) -> dict[str, Keyword]:
    return {keyword: Keyword(group, handler) for keyword in keywords}


ARRAYS: Mapping[str, Keyword] = {
    **_group("items", read_items, "items", "prefixItems", "additionalItems"),
    **_group("itemCounts", read_item_counts, "minItems", "maxItems"),
    **_group("uniqueItems", read_unique, "uniqueItems"),
    **_group("contains", read_contains, "contains", "minContains", "maxContains"),
    **_group("unevaluatedItems", read_unevaluated, "unevaluatedItems"),
}
OBJECTS: Mapping[str, Keyword] = {
    **_group("properties", read_properties, "properties", "patternProperties", "additionalProperties"),
    **_group("required", read_required, "required"),
    **_group("propertyCounts", read_property_counts, "minProperties", "maxProperties"),
    **_group("propertyNames", read_property_names, "propertyNames"),
    **_group("dependentRequired", read_dependent_required, "dependentRequired"),
    **_group("dependentSchemas", read_dependent_schemas, "dependentSchemas", "dependencies"),
    **_group("unevaluatedProperties", read_unevaluated, "unevaluatedProperties"),
}
AFTERTHOUGHTS = (
    Afterthought("unevaluatedItems", apply_unevaluated_items, tracks=True),
    Afterthought("unevaluatedProperties", apply_unevaluated_properties, tracks=True),
)
