"""Lowers array shapes: a chain of places for the first elements and a loop for the others, which counts commas in the register."""

from __future__ import annotations

from itertools import product

from rtlang_grammars.lowering.json_shapes.closers import (
    ArrayCloser,
)
from rtlang_grammars.lowering.json_shapes.joints import chain
from rtlang_grammars.lowering.json_shapes.shape_builder import ShapeBuilder
from rtlang_grammars.machine.automaton.json_base_states import add_pair
from rtlang_grammars.machine.automaton.layout import (
    ALTERNATIVES,
    AT_LEAST,
    BYTE,
    CALL_TO,
    COUNT,
    DEAD_ROW,
    NONE,
    PARAM,
    ROW,
    TARGET,
)
from rtlang_grammars.schema.shape_graph.shapes import ArrayShape, ItemCase
from rtlang_grammars.spec.errors import GrammarError

_MANY = 1 << 30
_MAX_COUNTS = 512


def add_array(build: ShapeBuilder, shape: ArrayShape, start: int) -> None:
    """Write the states of an array that begins in `start`."""
    if shape.contains:
        _add_counting_array(build, shape, start)
        return
    tables, end, blank_row = build.tables, build.base.end, build.base.blank_row
    num_fixed = len(shape.prefix)
    most = _MANY if shape.max_items is None else shape.max_items
    if shape.items is None:
        most = min(most, num_fixed)
    joints, inner = build.joints, build.inner
    prefix = tuple(inner.starts_of(ref) for ref in shape.prefix)
    items = () if shape.items is None else inner.starts_of(shape.items)
    closing = joints.closing + b"]"
    last = chain(tables, closing[1:], end)
    comma_byte, gap = joints.separator[0], joints.separator[1:]

    def close(state: int, done: int) -> None:
        closer = ArrayCloser(done, shape.min_items, prefix, items, joints)
        tables.closers[state] = tables.closers[state + 1] = closer

    # From the last place to the first, so that each place knows its successor.
    following: int | None = None
    if most > num_fixed and shape.items is not None:
        left, least = most - num_fixed - 1, max(0, shape.min_items - num_fixed - 1)
        behind_row, without = tables.add_row(blank_row), tables.add_row()
        behind = add_pair(tables, behind_row, without)
        following = add_pair(tables, *inner.rows_of(shape.items), param=behind)
        later = chain(tables, gap, following)
        comma = close_value = NONE
        if shape.max_items is None:
            comma = tables.action(COUNT, later, _MANY, least) if least else later
        elif left > 0:
            comma = tables.action(COUNT, later, left, left)
        close_value = tables.action(AT_LEAST, last, least) if least or shape.max_items is not None else last
        tables.put((behind_row, without), comma_byte, comma)
        tables.put((behind_row, without), closing[0], close_value)
        close(behind, num_fixed + 1)
    for index in range(min(num_fixed, most) - 1, -1, -1):
        behind_row, without = tables.add_row(blank_row), tables.add_row()
        behind = add_pair(tables, behind_row, without)
        if following is not None:
            tables.put((behind_row, without), comma_byte, chain(tables, gap, following))
        if index + 1 >= shape.min_items:
            tables.put((behind_row, without), closing[0], last)
        close(behind, index + 1)
        following = add_pair(tables, *inner.rows_of(shape.prefix[index]), param=behind)
    ends = end if shape.min_items == 0 else NONE
    if following is None:
        first = add_pair(tables, blank_row, DEAD_ROW, ord("]"), ends)
    elif joints.opening:
        row = tables.add_row()
        tables.put((row,), joints.opening[0], chain(tables, joints.opening[1:], following))
        first = add_pair(tables, row, row, ord("]"), ends)
    else:  # not the place after a comma, where the array cannot end
        rows = _first_rows(build, following)
        first = add_pair(tables, *rows, ord("]"), ends, param=tables.state(following, PARAM))
    close(first, 0)
    tables.set_state(start, BYTE, ord("["))
    tables.set_state(start, TARGET, first)


def _first_rows(build: ShapeBuilder, item: int) -> tuple[int, int]:
    """The rows of the place after the opening bracket, from the place of an item after a comma: blanks only in a free style."""
    without = build.tables.state(item + 1, ROW)
    return build.tables.state(item, ROW) if build.style.free_blanks else without, without


def _add_counting_array(build: ShapeBuilder, shape: ArrayShape, start: int) -> None:
    """Write the states of an array that counts elements of some kinds: one place for each distinguishable combination of counts."""
    tables, end, blank_row = build.tables, build.base.end, build.base.blank_row
    caps = [each.min_count if each.max_count is None else each.max_count + 1 for each in shape.contains]
    num_fixed = len(shape.prefix)
    length_cap = max(shape.min_items, num_fixed, 0 if shape.max_items is None else shape.max_items)
    most = _MANY if shape.max_items is None else shape.max_items
    size = length_cap + 1
    for cap in caps:
        size *= cap + 1
    if size > _MAX_COUNTS:
        raise GrammarError(f"contains: its counts expand to more than {_MAX_COUNTS} cases")

    def after(place: tuple[int, ...], case: ItemCase) -> tuple[int, ...] | None:
        """The place after one more element."""
        length = min(place[0] + 1, length_cap)
        counts = tuple(min(count + (case.counts >> i & 1), caps[i]) for i, count in enumerate(place[1:]))
        for count, bounds in zip(counts, shape.contains, strict=True):
            if bounds.max_count is not None and count > bounds.max_count:
                return None
        return (length, *counts)

    def cases(place: tuple[int, ...]) -> list[tuple[ItemCase, tuple[int, ...]]]:
        if place[0] < num_fixed:
            found = shape.prefix_cases[place[0]]
        else:
            found = shape.items_cases
        if place[0] >= most:
            return []
        return [(case, reached) for case in found if (reached := after(place, case)) is not None]

    def is_end(place: tuple[int, ...]) -> bool:
        return place[0] >= shape.min_items and all(
            count >= bounds.min_count for count, bounds in zip(place[1:], shape.contains, strict=True)
        )

    places = list(product(range(length_cap + 1), *(range(cap + 1) for cap in caps)))
    steps = {place: cases(place) for place in places}
    alive = {place for place in places if is_end(place)}
    while True:
        more = {p for p in places if p not in alive and any(reached in alive for _, reached in steps[p])}
        if not more:
            break
        alive |= more
    joints, closing = build.joints, build.joints.closing + b"]"
    last = chain(tables, closing[1:], end)
    begin = (0,) * (1 + len(caps))
    behind = {place: add_pair(tables, tables.add_row(blank_row), tables.add_row()) for place in alive}
    items: dict[tuple[int, ...], int] = {}
    for place in alive:
        row = tables.add_rows(2)
        tables.rows[row], tables.rows[row + 1] = tables.rows[build.base.gap_row], NONE
        values: dict[int, list[int]] = {}
        for case, reached in steps[place]:
            if reached in alive:
                for begins, called in build.inner.calls_of(case.shape):
                    value = tables.action(CALL_TO, called, 0, behind[reached])
                    for byte in begins:
                        values.setdefault(byte, []).append(value)
        for byte, each in values.items():
            tables.rows[row : row + 2, byte] = (
                each[0] if len(each) == 1 else tables.action(ALTERNATIVES, len(each), *each)
            )
        items[place] = add_pair(tables, row, row + 1)
    for place, state in behind.items():
        pair = (tables.state(state, ROW), tables.state(state + 1, ROW))
        if any(reached in alive for _, reached in steps[place]):
            tables.put(pair, joints.separator[0], chain(tables, joints.separator[1:], items[place]))
        if is_end(place):
            tables.put(pair, closing[0], last)
    rows = _first_rows(build, items[begin])
    if joints.opening:
        rows = (tables.add_row(), tables.add_row())
        if any(reached in alive for _, reached in steps[begin]):
            tables.put(rows, joints.opening[0], chain(tables, joints.opening[1:], items[begin]))
    first = add_pair(tables, *rows)
    if is_end(begin):
        for state in (first, first + 1):
            tables.set_state(state, BYTE, ord("]"))
            tables.set_state(state, TARGET, end)
    tables.set_state(start, BYTE, ord("["))
    tables.set_state(start, TARGET, first)
