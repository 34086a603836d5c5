"""Removal of uninhabited and unreachable shapes from a graph."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.shape_graph.pruning import prune
from rtlang_grammars.schema.shape_graph.shapes import (
    ArrayShape,
    ContainsCount,
    ItemCase,
    LiteralShape,
    NullShape,
    ObjectShape,
    Property,
    Shape,
    ShapeGraph,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


def _references(graph: ShapeGraph) -> set[int]:
    found: set[int] = {graph.root}
    for shape in graph.shapes:
        for each in shape.alternatives:
            if isinstance(each, ObjectShape):
                shapes = [*(item.shape for item in each.properties), *(item.shape for item in each.classes)]
                found |= {index for index in shapes if index is not None}
                found |= {each.additional} - {None}  # type: ignore[arg-type]
            elif isinstance(each, ArrayShape):
                found |= {*each.prefix} | {
                    case.shape for cases in (*each.prefix_cases, each.items_cases) for case in cases
                }
                found |= {each.items} - {None}  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 1}, "b": True}},
        {"type": "array", "prefixItems": [True, {"allOf": [{"type": "null"}, {"type": "string"}]}, True]},
        {"properties": {"a": {"$ref": "#"}}, "anyOf": [{"required": ["a"], "type": "object"}, {"type": "null"}]},
        {"type": "array", "contains": {"type": "string", "enum": ["a", 1]}, "maxContains": 2},
        {"type": "array", "items": {"type": "integer"}, "contains": {"type": "integer"}, "maxContains": 1},
    ],
)
def test_a_graph_holds_exactly_the_referenced_shapes_and_none_is_empty(schema: Any) -> None:
    graph = compile_shapes(schema)
    assert _references(graph) == set(range(len(graph.shapes)))
    assert all(shape.alternatives for shape in graph.shapes)


def test_an_unsatisfiable_property_is_forbidden_and_an_unsatisfiable_item_bounds_the_length() -> None:
    unsatisfiable: dict[str, Any] = {"type": "string", "enum": [1]}
    (only,) = (
        each
        for each in compile_shapes({"type": "object", "properties": {"a": unsatisfiable}}).shapes[0].alternatives
        if isinstance(each, ObjectShape)
    )
    assert only.properties == (Property("a", None),)
    (array,) = compile_shapes({"type": "array", "prefixItems": [True, unsatisfiable]}).shapes[0].alternatives
    assert isinstance(array, ArrayShape)
    assert (len(array.prefix), array.items, array.max_items) == (1, None, 1)


def test_a_recursive_shape_without_a_finite_value_is_uninhabited() -> None:
    loop = Shape((ObjectShape((Property("a", 0),), required=frozenset({"a"})),))
    with pytest.raises(GrammarError, match="nothing satisfies"):
        prune([loop], Budget())
    terminating = Shape((*loop.alternatives, NullShape()))
    assert len(prune([terminating], Budget())[1][0].alternatives) == 2


@pytest.mark.parametrize(
    ("counts", "max_items", "masks", "possible"),
    [
        ([(1, None), (1, None)], 1, [1, 2], False),
        ([(1, None), (1, None)], 2, [1, 2], True),
        ([(1, None), (1, None)], 1, [1, 2, 3], True),
        ([(2, 2), (3, None)], None, [3], False),
        ([(2, 3), (3, None)], None, [3], True),
        ([(0, 1)], None, [1], True),
        ([(5, None)], None, [0], False),
    ],
)
def test_an_array_whose_contains_counts_contradict_each_other_is_uninhabited(
    counts: list[tuple[int, int | None]], max_items: int | None, masks: list[int], possible: bool
) -> None:
    array = ArrayShape(
        items=1,
        max_items=max_items,
        contains=tuple(ContainsCount(*each) for each in counts),
        items_cases=tuple(ItemCase(1, mask) for mask in masks),
    )
    shapes = [Shape((array, LiteralShape(("x",)))), Shape((NullShape(),))]
    assert len(prune(shapes, Budget())[1][0].alternatives) == 1 + possible


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"": False}, "minProperties": 1},
        {"patternProperties": {"[\\s\\S]": False}, "minProperties": 2},
        {"patternProperties": {"": False}, "properties": {"a": True}, "minProperties": 1},
        {"propertyNames": {"pattern": "^[ab]$"}, "minProperties": 3},
        {"patternProperties": {"^[ab]$": True}, "additionalProperties": False, "minProperties": 3},
        {
            "patternProperties": {"^[^a]|[\\s\\S]{2}": False, "^$": False},
            "not": {"required": ["a"]},
            "minProperties": 1,
        },
    ],
)
def test_an_object_with_more_required_properties_than_possible_names_is_uninhabited(schema: Any) -> None:
    with pytest.raises(GrammarError, match="nothing satisfies"):
        compile_shapes({"type": "object", **schema})
