"""Convert facets of arrays to shapes: items by position, `contains` counts, unique items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rtlang_grammars.schema.normal_form.algebra import Algebra
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    TRUE,
    ArrayBody,
    Conj,
    Contains,
    Facet,
    NumberBody,
    StringBody,
    min_bound,
)
from rtlang_grammars.schema.normal_form.membership import facet_accepts
from rtlang_grammars.schema.reading.values import Json, JsonType, json_key
from rtlang_grammars.schema.shape_graph.shapes import ArrayShape, ContainsCount, ItemCase, LiteralShape

MAX_CONTAINS = 3  # `contains` assertions that are counted at once: the cases of an item double with each
MAX_DISTINCT = 400  # possible values of the items of an array with `uniqueItems` that are tracked one by one


def array_shapes(algebra: Algebra, facet: Facet, refer: Callable[[Conj], int]) -> Iterator[ArrayShape | LiteralShape]:
    """Yield the shapes of a facet of arrays, none if it is plainly unsatisfiable.

    Args:
        refer: returns the index of the shape of a conjunction.
    """
    body = facet.body
    assert isinstance(body, ArrayBody)
    distinct: tuple[Json, ...] = ()
    if body.unique:
        body = _bound_unique(algebra, body)
        distinct = _distinct_values(algebra, body) if body.unique else ()
        listed = _enumerate_arrays(algebra, replace(facet, body=body)) if body.unique and not distinct else None
        if listed is not None:
            if listed:
                algebra.report_marks(facet.marks)
                yield LiteralShape(tuple(listed))
            return
    shape = _shape(algebra, body, refer)
    if shape is None:
        return
    algebra.report_marks(facet.marks)
    if body.unique and distinct:
        shape = replace(shape, distinct=distinct)
    elif body.unique:
        algebra.report_marks([body.unique])
    if len(body.contains) > MAX_CONTAINS:
        algebra.report_marks(counted.mark for counted in body.contains)
    yield shape


def _item_demands(algebra: Algebra, body: ArrayBody, index: int) -> Conj:
    conj = algebra.join(rule.at(index) for rule in body.rules)
    return FALSE if 1 in conj else conj


def _num_positions(body: ArrayBody) -> int:
    """Return the number of leading items with a shape of their own; all later items share one."""
    positions = max((len(rule.prefix) for rule in body.rules), default=0)
    positions = max(positions, max((counted.start for counted in body.contains), default=0))
    return positions if body.max_items is None else min(positions, body.max_items)


def _shape(algebra: Algebra, body: ArrayBody, refer: Callable[[Conj], int]) -> ArrayShape | None:
    max_items = body.max_items
    prefix: list[Conj] = []
    for index in range(_num_positions(body)):
        algebra.budget.spend()
        conj = _item_demands(algebra, body, index)
        if conj == FALSE:
            max_items = index
            break
        prefix.append(conj)
    rest = _item_demands(algebra, body, len(prefix))
    if rest == FALSE and (max_items is None or max_items > len(prefix)):
        max_items = len(prefix)
    if max_items is not None and max_items < body.min_items:
        return None
    has_items = max_items is None or max_items > len(prefix)
    contains = body.contains if len(body.contains) <= MAX_CONTAINS else ()
    return ArrayShape(
        prefix=tuple(refer(conj) for conj in prefix),
        items=refer(rest) if has_items else None,
        min_items=body.min_items,
        max_items=max_items,
        contains=tuple(ContainsCount(counted.min_count, counted.max_count) for counted in contains),
        prefix_cases=tuple(_cases(algebra, conj, contains, index, refer) for index, conj in enumerate(prefix))
        if contains
        else (),
        items_cases=_cases(algebra, rest, contains, len(prefix), refer) if has_items else (),
        unique=body.unique is not None,
    )


def _cases(
    algebra: Algebra, conj: Conj, contains: Sequence[Contains], index: int, refer: Callable[[Conj], int]
) -> tuple[ItemCase, ...]:
    """Return the cases of an item: for each set of `contains` assertions that it counts for, its shape."""
    cases = [(conj, 0)] if contains else []
    for bit, counted in enumerate(contains):
        if counted.start > index:
            continue
        outside = TRUE
        if counted.max_count is not None:
            negation = algebra.negated(counted.conj)
            assert negation is not None  # `contains` holds a single demand
            outside = negation
        split = [(known | counted.conj, counts | 1 << bit) for known, counts in cases]
        split += [(known | outside, counts) for known, counts in cases]
        cases = split
    return tuple(ItemCase(refer(known), counts) for known, counts in cases if 1 not in known)


# Unique elements


def _bound_unique(algebra: Algebra, body: ArrayBody) -> ArrayBody:
    """Return an equivalent body with at most as many items as there are distinct values.

    `unique` is dropped where at most one item is left.
    """
    if body.max_items is None or body.max_items > 1:
        positions = [
            _finite_values(algebra, _item_demands(algebra, body, index)) for index in range(_num_positions(body) + 1)
        ]
        if all(values is not None for values in positions):
            num_distinct = len({json_key(value) for values in positions for value in values or ()})
            body = replace(body, max_items=min_bound(body.max_items, num_distinct))
    return replace(body, unique=None) if body.max_items is not None and body.max_items <= 1 else body


def _enumerate_arrays(algebra: Algebra, facet: Facet) -> list[Json] | None:
    """Return all arrays of distinct items that satisfy a facet; None if there are too many."""
    body = facet.body
    assert isinstance(body, ArrayBody)
    if body.max_items is None:
        return None
    num_positions = _num_positions(body)
    positions = [_finite_values(algebra, _item_demands(algebra, body, index)) for index in range(num_positions + 1)]
    if (
        not num_positions
        and sum(math.perm(len(positions[0] or ()), size) for size in range(body.max_items + 1))
        > algebra.options.max_listed
    ):
        return None
    found: list[Json] = []
    stack: list[list[Json]] = [[]]
    num_visited = 0
    while stack:
        array = stack.pop()
        algebra.budget.spend()
        num_visited += 1
        if num_visited > 2 * algebra.options.max_listed:
            return None
        if len(array) >= body.min_items and facet_accepts(algebra, facet, list(array)):
            found.append(array)
            if len(found) > algebra.options.max_listed:
                return None
        if len(array) < body.max_items:
            values = positions[min(len(array), num_positions)]
            if values is None:
                return None
            taken = {json_key(item) for item in array}
            stack.extend([*array, value] for value in reversed(values) if json_key(value) not in taken)
    return found


def _distinct_values(algebra: Algebra, body: ArrayBody) -> tuple[Json, ...]:
    """Return the possible values of the items, if they are few, scalars, and the same at every position; else nothing."""
    if body.contains or _num_positions(body):
        return ()
    values = _finite_values(algebra, _item_demands(algebra, body, 0)) or []
    if len(values) > MAX_DISTINCT or any(isinstance(value, list | dict) for value in values):
        return ()
    return tuple(values)


def _finite_values(algebra: Algebra, conj: Conj) -> list[Json] | None:
    """Return all values that satisfy a conjunction, if they are few and enumerable without a search; else None."""
    if conj == FALSE:
        return []
    values: list[Json] = []
    for kind in algebra.possible_types(conj):
        for facet in algebra.conjunction(conj, kind):
            if facet.marks:
                return None
            if facet.literals is not None:
                values.extend(value for value in facet.literals.values() if facet_accepts(algebra, facet, value))
            elif kind is JsonType.NULL:
                values.append(None)
            elif kind is JsonType.BOOLEAN:
                values.extend((False, True))
            elif kind is JsonType.NUMBER and isinstance(facet.body, NumberBody):
                whole = whole_numbers(facet.body, algebra.options.max_listed)
                if whole is None:
                    return None
                values.extend(number for number in whole if facet_accepts(algebra, facet, number))
            elif isinstance(facet.body, StringBody):
                words = algebra.texts.finite_words(facet.body, facet.excluded, algebra.options.max_listed)
                if words is None:
                    return None
                values.extend(words)
            else:
                return None
            if len(values) > algebra.options.max_listed:
                return None
    return list({json_key(value): value for value in values}.values())


def whole_numbers(body: NumberBody, limit: int) -> list[Json] | None:
    """Return the multiples in a bounded interval of integers; None if there are more than `limit`, or `body` allows other numbers."""
    step = body.multiple_of
    if step is None or step.denominator != 1 or body.minimum is None or body.maximum is None or body.fraction_form:
        return None
    first, last = -(-body.minimum // step), body.maximum // step
    if last - first > limit:
        return None
    return [int(number * step) for number in range(int(first), int(last) + 1)]
