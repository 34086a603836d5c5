"""Lowers object shapes.

All keys begin in one place, whatever came before: a trie of the declared names over the automaton of all other names, with the set of seen
names in the register, so that any order is allowed and states do not depend on it. An escape in a name that is still a prefix of a declared
one is a frame, which returns to the same place and has the character itself read there: no spelling hides a declared name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.lowering.json_shapes.closers import (
    Names,
    ObjectCloser,
    member_prefix,
)
from rtlang_grammars.lowering.json_shapes.joints import chain
from rtlang_grammars.lowering.json_shapes.json_spellings import has_half_a_character, string_spellings
from rtlang_grammars.lowering.json_shapes.literal_trie import CLOSED_KEYS, OPEN_KEYS
from rtlang_grammars.lowering.json_shapes.shape_builder import ShapeBuilder
from rtlang_grammars.lowering.languages.embedding import NamesEmbedding, QuotedEmbedding
from rtlang_grammars.machine.automaton.json_base_states import BACKSLASH, QUOTE, STRING_SLICE, add_body, add_pair
from rtlang_grammars.machine.automaton.layout import (
    ALTERNATIVES,
    BITS,
    BYTE,
    CALL,
    CALL_TO,
    CLOSE,
    COMMA,
    DEAD_ROW,
    IN_ANY_ORDER,
    IN_ORDER,
    KEY_BRANCH,
    KEY_OTHER,
    KEY_PHASE,
    MAX_PACKED_NAMES,
    NEW_OBJECT,
    NONE,
    OBJ_ORDER,
    OTHERS_LAST,
    TARGET,
)
from rtlang_grammars.regular.language import Language
from rtlang_grammars.schema.shape_graph.shapes import ObjectShape, StringShape
from rtlang_grammars.spec.constraint import PropertyOrder
from rtlang_grammars.spec.limits import Budget

_ORDERS = {PropertyOrder.ANY: IN_ANY_ORDER, PropertyOrder.DECLARED: IN_ORDER}
_MAX_NAME_STATES = 64
_PLAIN_NAME = re.compile(r"[ !#-\[\]-~]*")
"""The names that a trie over other names can hold; see `JsonBaseStates.escape`."""


def add_object(build: ShapeBuilder, shape: ObjectShape, start: int) -> None:
    """Write the states of an object that begins in `start`."""
    order = _ORDERS.get(build.style.order, OTHERS_LAST)
    if build.style.order is PropertyOrder.REQUIRED_FIRST:
        properties = sorted(shape.properties, key=lambda each: each.name not in shape.required)
        shape = replace(shape, properties=tuple(properties))
    if shape.unordered:
        properties = sorted(shape.properties, key=lambda each: each.name in shape.unordered)
        shape = replace(shape, properties=tuple(properties))
    num_ordered = sum(each.name not in shape.unordered for each in shape.properties)
    if not num_ordered:
        order = IN_ANY_ORDER
    elif order == IN_ANY_ORDER:
        num_ordered = 0
    tables, end, blank_row = build.tables, build.base.end, build.base.blank_row
    joints, inner = build.joints, build.inner
    names = [each.name for each in shape.properties]
    forbidden = sum(1 << i for i, each in enumerate(shape.properties) if each.shape is None)
    required = sum(1 << i for i, name in enumerate(names) if name in shape.required)
    counts = shape.max_properties is not None or shape.min_properties > required.bit_count()
    is_packed = not counts and not forbidden and len(names) <= MAX_PACKED_NAMES
    num_words = 0 if is_packed else max(1, -(-len(names) // BITS))
    block = num_words + 1 if num_words else 0
    least, most = shape.min_properties, -1 if shape.max_properties is None else shape.max_properties
    is_bounded = shape.max_properties is not None  # then a name may begin only where it can be completed
    is_simple = shape.additional is not None and not shape.classes  # one shape applies to all undeclared names
    is_plain = is_simple and not is_bounded and all(map(_PLAIN_NAME.fullmatch, names))
    classes = [] if is_plain else _key_classes(shape, build.budget)
    is_open = is_simple or bool(classes)
    # The description, its words and its leaves.
    if is_plain:
        leaves = sorted((name.encode(), i) for i, name in enumerate(names))
    else:
        leaves = sorted({(text[1:-1], i) for i, name in enumerate(names) for text in string_spellings(name)})
    words = num_words or 2
    description = tables.add_words(
        len(names), num_words, is_open, least, most, max(least, most), 0, 0, len(leaves), order, num_ordered
    )
    bits = (1 << BITS) - 1
    tables.words[description + 6] = tables.add_words(
        *(required >> (BITS * i) & bits for i in range(words)), *(forbidden >> (BITS * i) & bits for i in range(words))
    )
    leaf_words = tables.words[description + 7] = tables.add_words(*(x for _, i in leaves for x in (i, NONE)))

    behind_row = tables.add_rows(4)
    first_row, without, first_without = range(behind_row + 1, behind_row + 4)
    rows = tables.rows
    rows[behind_row] = rows[first_row] = rows[blank_row]
    rows[without] = rows[first_without] = NONE
    behind = add_pair(tables, behind_row, without, block=block)
    colons: dict[int, int] = {}

    def colon(ref: int) -> int:
        """The state after a name whose value has this shape."""
        found = colons.get(ref)
        if found is None:
            value = add_pair(tables, *inner.rows_of(ref), param=behind, block=block)
            value = chain(tables, joints.colon[1:], value, block=block)
            found = colons[ref] = add_pair(tables, blank_row, DEAD_ROW, joints.colon[0], value, block=block)
        return found

    for at, (_, number) in enumerate(leaves):
        ref = shape.properties[number].shape
        tables.words[leaf_words + 2 * at + 1] = NONE if ref is None else colon(ref)
    registers = counts or order == OTHERS_LAST  # whether undeclared names change the register
    key = _add_keys(build, shape, classes, [text for text, _ in leaves], description, block, registers, colon)
    first = add_pair(tables, first_row, first_without, block=block)
    if key is not None:
        later = add_pair(tables, build.base.gap_row, DEAD_ROW, QUOTE, key, block=block)
        gap = chain(tables, joints.separator[1:], later, block=block)
        is_free = is_open and most < 0
        tables.put(
            (behind_row, without), joints.separator[0], gap if is_free else tables.action(COMMA, description, gap)
        )
        if most != 0 and joints.opening:
            opening = chain(tables, joints.opening[1:], later, block=block)
            tables.put((first_row, first_without), joints.opening[0], opening)
        elif most != 0:
            tables.put((first_row, first_without), QUOTE, key)

    def close(target: int) -> int:
        return tables.action(CLOSE, description, target) if names or block else target

    closing = joints.closing + b"}"
    tables.put((behind_row, without), closing[0], close(chain(tables, closing[1:], end)))
    tables.put((first_row, first_without), ord("}"), close(end))
    members = tuple(
        (member_prefix(each.name, joints.colon), () if each.shape is None else inner.starts_of(each.shape))
        for each in shape.properties
    )
    others: list[tuple[Names, int]] = [*classes]
    if is_simple and shape.additional is not None:
        others = [(None, shape.additional)]
    starts = tuple((language, inner.starts_of(ref)) for language, ref in others)
    for state, is_first in ((first, True), (behind, False)):
        closer = ObjectCloser(tables.words, description, members, starts, is_first, joints)
        tables.closers[state] = tables.closers[state + 1] = closer
    tables.set_state(start, BYTE, ord("{"))
    tables.set_state(start, TARGET, tables.action(NEW_OBJECT, description, first) if block else first)


def _add_keys(
    build: ShapeBuilder,
    shape: ObjectShape,
    classes: list[tuple[Language, int]],
    leaves: list[bytes],
    description: int,
    block: int,
    registers: bool,
    colon: Callable[[int], int],
) -> int | None:
    """The value of the quote that begins a key; None if no key is allowed."""
    tables = build.tables
    if shape.additional is not None and not classes and not shape.classes:
        is_late = tables.words[description + OBJ_ORDER] == OTHERS_LAST and bool(shape.required)
        return _add_plain_keys(build, leaves, description, block, registers, is_late, colon(shape.additional))
    plan = np.array([0, 0, 0, description, block, 0, 0], dtype=np.int64)
    ways = []
    if leaves:
        trie = build.add_trie_of(leaves, CLOSED_KEYS, plan)
        # If undeclared names may follow or some declared name is forbidden, it is uncertain whether any declared name is still allowed.
        is_asked = bool(classes) or any(each.shape is None for each in shape.properties)
        ways.append(tables.action(KEY_BRANCH, description, trie, 0, len(leaves)) if is_asked else trie)
    if classes:
        ends = [colon(ref) for _, ref in classes]
        start = None if registers else _counted_names(build, classes)
        if start is not None:
            ways.append(tables.action(CALL_TO, start, 0, ends[0]))
    if classes and start is None:
        if _is_free(shape):
            listed, named = _listed_names(shape), [each.names for each in shape.classes]
            names = Language.names_body(listed, named, build.budget)
            begin = NamesEmbedding(tables, names, ends, block=block).start()
        else:
            automata = Language.json_string_bodies([names for names, _ in classes], build.budget)
            begin = QuotedEmbedding(tables, automata, ends, block=block).start()
        ways.append(tables.action(KEY_OTHER, description, begin) if registers else begin)
    if not ways:
        return None
    return ways[0] if len(ways) == 1 else tables.action(ALTERNATIVES, len(ways), *ways)


def _add_plain_keys(
    build: ShapeBuilder, leaves: list[bytes], description: int, block: int, registers: bool, is_late: bool, other: int
) -> int:
    """The value of the quote that begins a key of an object where every name is allowed and the declared ones are plain.

    Args:
        is_late: other names are allowed only after the required ones.
    """
    tables = build.tables
    value = tables.action(KEY_OTHER, description, other) if registers else other

    def edit(rows: NDArray[np.int32], _: int) -> None:
        rows[0, QUOTE] = value

    inner, row = add_body(tables, build.base.body, edit, slice_id=STRING_SLICE, block=block)
    if not leaves:
        return inner
    outside = tables.add_row(row)
    tables.put((outside,), BACKSLASH, tables.action(CALL, build.base.escape, 0))
    plan = np.array([0, 0, 0, description, block, STRING_SLICE, outside], dtype=np.int64)
    trie = build.add_trie_of(leaves, OPEN_KEYS, plan)
    if not is_late:
        return trie
    declared = build.add_trie_of(leaves, CLOSED_KEYS, plan)
    return tables.action(KEY_PHASE, description, declared, trie)


def _counted_names(build: ShapeBuilder, classes: list[tuple[Language, int]]) -> int | None:
    """A frame that counts the characters of names of the only class, as the object's register is in use; None if that cannot be done."""
    counted = classes[0][0].as_counted_characters() if len(classes) == 1 else None
    if counted is None or counted[2] is None:
        return None
    ((_, start),) = build.calls_of_alternative(StringShape(language=classes[0][0]))
    return start


def _is_free(shape: ObjectShape) -> bool:
    """Whether every beginning of a name can be completed to an allowed name."""
    return shape.additional is not None and all(each.shape is not None for each in shape.classes)


def allows_undeclared_names(shape: ObjectShape) -> bool:
    """Whether properties may have other names than the declared ones."""
    return shape.additional is not None or any(each.shape is not None for each in shape.classes)


def has_endless_names(shape: ObjectShape, budget: Budget) -> bool:
    """Whether every beginning of an undeclared name can be completed in infinitely many ways, so that one is left whatever names came."""
    return _is_free(shape) or all(
        names.is_endless(_MAX_NAME_STATES, budget) for names, _ in _key_classes(shape, budget)
    )


def _listed_names(shape: ObjectShape) -> list[str]:
    """The declared names that the automaton of undeclared names has to leave out."""
    return [each.name for each in shape.properties if not has_half_a_character(each.name)]


def _key_classes(shape: ObjectShape, budget: Budget) -> list[tuple[Language, int]]:
    """The undeclared names of each class, and those in no class. Empty languages are removed unless every beginning can be completed to a
    name (`_is_free`).
    """
    names = _listed_names(shape)
    if shape.additional is not None and _is_free(shape):
        listed = Language.literals(names)
        all_free = [(each.names.minus(listed), each.shape) for each in shape.classes if each.shape is not None]
        rest = Language.any_text().minus(Language.nothing().union(listed, *[each.names for each in shape.classes]))
        return [*all_free, (rest, shape.additional)]
    found = []
    for each in shape.classes:
        if each.shape is not None:
            inside = [name for name in names if each.names.accepts(name, budget)]
            language = each.names.minus(Language.literals(inside)) if inside else each.names
            if not language.is_empty(budget):
                found.append((language, each.shape))
    if shape.additional is not None:
        rest = Language.any_text().minus(Language.literals(names)) if names else Language.any_text()
        for each in shape.classes:
            rest = rest.minus(each.names)
        if not rest.is_empty(budget):
            found.append((rest, shape.additional))
    return found
