"""From the demands on arrays to shapes: positions, counted elements, unique elements."""

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
)
from rtlang_grammars.schema.normal_form.membership import facet_accepts
from rtlang_grammars.schema.reading.values import Json, JsonType, json_key
from rtlang_grammars.schema.shape_graph.shapes import ArrayShape, ContainsCount, ItemCase, LiteralShape

MAX_COUNTED = 3  # kinds of elements counted at once: the cases of an element double with each
MAX_DISTINCT = 400  # values out of which unique elements are kept in mind


def array_shapes(algebra: Algebra, facet: Facet, refer: Callable[[Conj], int]) -> Iterator[ArrayShape | LiteralShape]:
    """The shapes of a facet; one that is plainly empty is left out.

    Args:
        refer: gives the index of the shape of a conjunction.
    """
    body = facet.body
    assert isinstance(body, ArrayBody)
    distinct: tuple[Json, ...] = ()
    if body.unique:
        body = _unique_bounded(algebra, body)
        distinct = _distinct(algebra, body) if body.unique else ()
        listed = _listed(algebra, replace(facet, body=body)) if body.unique and not distinct else None
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
    if len(body.contains) > MAX_COUNTED:
        algebra.report_marks(counted.mark for counted in body.contains)
    yield shape


def _at(body: ArrayBody, index: int) -> Conj:
    conj = TRUE.union(*(rule.at(index) for rule in body.rules))
    return FALSE if 1 in conj else conj


def _num_places(body: ArrayBody) -> int:
    """Positions that are ruled each by itself."""
    places = max((len(rule.prefix) for rule in body.rules), default=0)
    places = max(places, max((counted.start for counted in body.contains), default=0))
    return places if body.max_items is None else min(places, body.max_items)


def _shape(algebra: Algebra, body: ArrayBody, refer: Callable[[Conj], int]) -> ArrayShape | None:
    max_items = body.max_items
    prefix: list[Conj] = []
    for index in range(_num_places(body)):
        algebra.budget.spend()
        conj = _at(body, index)
        if conj == FALSE:
            max_items = index
            break
        prefix.append(conj)
    rest = _at(body, len(prefix))
    if rest == FALSE and (max_items is None or max_items > len(prefix)):
        max_items = len(prefix)
    if max_items is not None and max_items < body.min_items:
        return None
    has_items = max_items is None or max_items > len(prefix)
    contains = body.contains if len(body.contains) <= MAX_COUNTED else ()
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
    """The ways an element may count, each with what it then is."""
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


def _unique_bounded(algebra: Algebra, body: ArrayBody) -> ArrayBody:
    """The same demands, with no more elements than there are different values; uniqueness is left out where it says nothing."""
    if body.max_items is None or body.max_items > 1:
        places = [_finite(algebra, _at(body, index)) for index in range(_num_places(body) + 1)]
        if all(values is not None for values in places):
            different = len({json_key(value) for values in places for value in values or ()})
            body = replace(body, max_items=different if body.max_items is None else min(body.max_items, different))
    return replace(body, unique=None) if body.max_items is not None and body.max_items <= 1 else body


def _listed(algebra: Algebra, facet: Facet) -> list[Json] | None:
    """All arrays of different elements that meet a facet; None where they are too many."""
    body = facet.body
    assert isinstance(body, ArrayBody)
    if body.max_items is None:
        return None
    num_places = _num_places(body)
    places = [_finite(algebra, _at(body, index)) for index in range(num_places + 1)]
    if (
        not num_places
        and sum(math.perm(len(places[0] or ()), size) for size in range(body.max_items + 1))
        > algebra.options.max_listed
    ):
        return None
    found: list[Json] = []
    stack: list[list[Json]] = [[]]
    num_seen = 0
    while stack:
        array = stack.pop()
        algebra.budget.spend()
        num_seen += 1
        if num_seen > 2 * algebra.options.max_listed:
            return None
        if len(array) >= body.min_items and facet_accepts(algebra, facet, list(array)):
            found.append(array)
            if len(found) > algebra.options.max_listed:
                return None
        if len(array) < body.max_items:
            values = places[min(len(array), num_places)]
            if values is None:
                return None
            taken = {json_key(item) for item in array}
            stack.extend([*array, value] for value in reversed(values) if json_key(value) not in taken)
    return found


def _distinct(algebra: Algebra, body: ArrayBody) -> tuple[Json, ...]:
    """The values that elements may have, where they are few, no containers, and ruled the same at every place."""
    if body.contains or _num_places(body):
        return ()
    values = _finite(algebra, _at(body, 0)) or []
    if len(values) > MAX_DISTINCT or any(isinstance(value, list | dict) for value in values):
        return ()
    return tuple(values)


def _finite(algebra: Algebra, conj: Conj) -> list[Json] | None:
    """All values that meet a conjunction, where they are few and no search is needed to see it."""
    if conj == FALSE:
        return []
    values: list[Json] = []
    for kind in algebra.kinds(conj):
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
    """The integers of a bounded interval of integers; None for more than `limit`, and for other numbers."""
    step = body.multiple_of
    if step is None or step.denominator != 1 or body.minimum is None or body.maximum is None or body.fraction_form:
        return None
    first, last = -(-body.minimum // step), body.maximum // step
    if last - first > limit:
        return None
    return [int(number * step) for number in range(int(first), int(last) + 1)]
