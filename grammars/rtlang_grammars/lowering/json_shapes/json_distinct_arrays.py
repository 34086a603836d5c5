"""Lowers arrays of distinct elements that are taken from a few values.

Elements are tracked like the names of an object: the register holds a set, and the values that are already used are unreachable in a trie
of the texts of all values. Different spellings of one value (1 and 1.0) are leaves of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rtlang_grammars.lowering.json_shapes.closers import (
    DistinctCloser,
)
from rtlang_grammars.lowering.json_shapes.joints import chain
from rtlang_grammars.lowering.json_shapes.shape_builder import ShapeBuilder
from rtlang_grammars.machine.automaton.json_base_states import add_pair
from rtlang_grammars.machine.automaton.layout import (
    ALTERNATIVES,
    BITS,
    BYTE,
    CLOSE,
    COMMA,
    DEAD_ROW,
    KEY_BRANCH,
    KEY_END,
    MAX_PACKED_NAMES,
    NEW_OBJECT,
    NONE,
    ROW,
    TARGET,
)
from rtlang_grammars.schema.shape_graph.shapes import ArrayShape


@dataclass(slots=True)
class _Node:
    """A node of the trie: the leaves low..high lie below it."""

    low: int
    high: int
    ends: dict[int, int] = field(default_factory=dict)  # byte: leaf whose text it completes
    following: dict[int, _Node] = field(default_factory=dict)


def add_distinct_array(build: ShapeBuilder, shape: ArrayShape, texts: list[list[bytes]], start: int) -> None:
    """Write the states of an array that begins in `start`, of values with the given texts, each used at most once."""
    tables, end, blank_row = build.tables, build.base.end, build.base.blank_row
    leaves = sorted((text, number) for number, each in enumerate(texts) for text in each)
    least = shape.min_items
    most = -1 if shape.max_items is None or shape.max_items >= len(texts) else shape.max_items
    num_words = 0
    if least or most >= 0 or len(texts) > MAX_PACKED_NAMES:
        num_words = -(-len(texts) // BITS)
    block = num_words + 1 if num_words else 0
    description = tables.add_words(len(texts), num_words, 0, least, most, max(least, most), 0, 0, len(leaves), 0)
    tables.words[description + 6] = tables.add_words(*[0] * (2 * (num_words or 2)))

    rows = [tables.add_row(blank_row), tables.add_row()]
    behind = add_pair(tables, *rows, block=block)
    leaf_words = [word for _, number in leaves for word in (number, behind)]
    tables.words[description + 7] = tables.add_words(*leaf_words)

    places = [tables.add_row(build.base.gap_row), tables.add_row()]
    later = add_pair(tables, *places, block=block)
    root = _trie([text for text, _ in leaves])
    for byte, value in _values(build, root, description, block).items():
        tables.rows[places, byte] = value
    joints, closing = build.joints, build.joints.closing + b"]"
    firsts = [tables.add_row(places[0 if build.style.free_blanks else 1]), tables.add_row(places[1])]
    if joints.opening:
        tables.rows[firsts] = NONE
        tables.put(firsts, joints.opening[0], chain(tables, joints.opening[1:], later, block=block))
    first = add_pair(tables, *firsts, block=block)
    gap = chain(tables, joints.separator[1:], later, block=block)
    tables.put(rows, joints.separator[0], tables.action(COMMA, description, gap))
    tables.put(rows, closing[0], tables.action(CLOSE, description, chain(tables, closing[1:], end)))
    tables.put(firsts, ord("]"), tables.action(CLOSE, description, end))
    shortest = tuple(min(each, key=len) for each in texts)
    for state, is_first in ((first, True), (behind, False)):
        closer = DistinctCloser(tables.words, description, shortest, is_first, joints)
        tables.closers[state] = tables.closers[state + 1] = closer
    tables.set_state(start, BYTE, ord("["))
    tables.set_state(start, TARGET, tables.action(NEW_OBJECT, description, first) if block else first)


def _trie(texts: list[bytes]) -> _Node:
    """The trie of sorted, distinct texts."""
    root = _Node(0, len(texts))
    for leaf, text in enumerate(texts):
        node = root
        for byte in text[:-1]:
            node = node.following.setdefault(byte, _Node(leaf, leaf))
            node.high = leaf + 1
        node.ends[text[-1]] = leaf
    return root


def _values(build: ShapeBuilder, root: _Node, description: int, block: int) -> dict[int, int]:
    """The root's table value for each byte; creates the states of all other nodes."""
    tables = build.tables
    made: dict[int, dict[int, int]] = {}
    order = [root]
    for node in order:
        order += node.following.values()
    states = {id(node): tables.add_state(block=block) for node in order[1:]}
    build.budget.spend(states=len(order))
    for node in reversed(order):
        values: dict[int, int] = {}
        for byte in node.ends.keys() | node.following.keys():
            ways = []
            if byte in node.ends:
                ways.append(tables.action(KEY_END, description, node.ends[byte]))
            if byte in node.following:
                below = node.following[byte]
                state = states[id(below)]
                is_only = (below.low, below.high) == (node.low, node.high) and node is not root
                ways.append(state if is_only else tables.action(KEY_BRANCH, description, state, below.low, below.high))
            values[byte] = ways[0] if len(ways) == 1 else tables.action(ALTERNATIVES, len(ways), *ways)
        made[id(node)] = values
        if node is root:
            break
        state = states[id(node)]
        if len(values) == 1:
            ((byte, value),) = values.items()
            tables.set_state(state, BYTE, byte)
            tables.set_state(state, TARGET, value)
        else:
            row = tables.add_row(DEAD_ROW)
            for byte, value in values.items():
                tables.rows[row, byte] = value
            tables.set_state(state, ROW, row)
    assert NONE not in made[id(root)].values()
    return made[id(root)]
