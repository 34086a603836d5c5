"""Which values a shape graph accepts, read straight off the definitions of the shapes: an oracle for the schema algebra."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from rtlang_grammars.schema.shape_graph.shapes import (
    Alternative,
    ArrayShape,
    BooleanShape,
    LiteralShape,
    NullShape,
    NumberShape,
    ObjectShape,
    ShapeGraph,
    StringShape,
)


def shape_accepts(graph: ShapeGraph, value: Any, shape: int | None = None) -> bool:
    """Whether a value is accepted by a shape of a graph, by the root where none is given."""
    index = graph.root if shape is None else shape
    return any(_accepts(graph, each, value) for each in graph.shapes[index].alternatives)


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, str) or isinstance(b, str) or isinstance(a, list | dict) or isinstance(b, list | dict):
        return type(a) is type(b) and a == b
    return bool(a == b)


def _accepts(graph: ShapeGraph, shape: Alternative, value: Any) -> bool:
    match shape:
        case NullShape():
            return value is None
        case BooleanShape(values):
            return isinstance(value, bool) and value in values
        case LiteralShape(values):
            return any(same(value, each) for each in values)
        case NumberShape():
            return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and _number(shape, value)
        case StringShape(language, low, high):
            if not isinstance(value, str) or len(value) < low or (high is not None and len(value) > high):
                return False
            return language is None or language.accepts(value)
        case ArrayShape():
            return isinstance(value, list) and _array(graph, shape, value)
        case ObjectShape():
            return isinstance(value, dict) and _object(graph, shape, value)


def _number(shape: NumberShape, value: int | float | Decimal) -> bool:
    if (shape.integer_form and not isinstance(value, int)) or (shape.fraction_form and isinstance(value, int)):
        return False
    number = Fraction(value) if isinstance(value, int) else Fraction(Decimal(str(value)))
    if shape.minimum is not None and (number < shape.minimum or (shape.exclusive_minimum and number == shape.minimum)):
        return False
    if shape.maximum is not None and (number > shape.maximum or (shape.exclusive_maximum and number == shape.maximum)):
        return False
    if shape.multiple_of is not None and number % shape.multiple_of != 0:
        return False
    return all(number % step != 0 for step in shape.not_multiple_of)


def _array(graph: ShapeGraph, shape: ArrayShape, value: list[Any]) -> bool:
    if len(value) < shape.min_items or (shape.max_items is not None and len(value) > shape.max_items):
        return False
    if shape.unique and any(same(a, b) for index, a in enumerate(value) for b in value[:index]):
        return False
    for index, item in enumerate(value):
        place = shape.prefix[index] if index < len(shape.prefix) else shape.items
        if place is None or not shape_accepts(graph, item, place):
            return False
    if not shape.contains:
        return True
    reached = {(0,) * len(shape.contains)}  # counts of every reading of the elements so far
    for index, item in enumerate(value):
        cases = shape.prefix_cases[index] if index < len(shape.prefix) else shape.items_cases
        masks = {case.counts for case in cases if shape_accepts(graph, item, case.shape)}
        reached = {
            tuple(count + (mask >> bit & 1) for bit, count in enumerate(counts)) for counts in reached for mask in masks
        }
    return any(
        all(
            count >= each.min_count and (each.max_count is None or count <= each.max_count)
            for count, each in zip(counts, shape.contains, strict=True)
        )
        for counts in reached
    )


def _object(graph: ShapeGraph, shape: ObjectShape, value: dict[str, Any]) -> bool:
    if len(value) < shape.min_properties or (shape.max_properties is not None and len(value) > shape.max_properties):
        return False
    if not shape.required <= value.keys():
        return False
    declared = {each.name: each.shape for each in shape.properties}
    for name, item in value.items():
        if name in declared:
            ruler = declared[name]
        else:
            classes = [each.shape for each in shape.classes if each.names.accepts(name)]
            assert len(classes) < 2, "classes must be disjoint"
            ruler = classes[0] if classes else shape.additional
        if ruler is None or not shape_accepts(graph, item, ruler):
            return False
    return True
