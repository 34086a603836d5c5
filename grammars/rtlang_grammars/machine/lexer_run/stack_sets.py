"""The sets of parser stacks that texts have reached, numbered: nodes that shifts make are interned, so equal sets have one number.

Masks never intern: their nodes lie after the kept ones, in the same arrays, and are overwritten by the next shift.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

import numpy as np

from rtlang_grammars.machine.lexer_run import parser_feed
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    LINE_COLUMN,
    MEMBERS,
    OK,
    STACK_LINKS,
    STACK_NODES,
    GraphStack,
    ParserArrays,
)
from rtlang_grammars.machine.lexer_run.workspace import larger_stack, new_stack

_Graph: TypeAlias = tuple[list[int], list[tuple[int, tuple[int, list[int]]]], tuple[int, list[tuple[int, int, int]]]]
"""The nodes on top; nodes not yet kept, with their states and the nodes below; the indentation: a kept line, and lines not yet kept."""


class StackSets:
    """Sets of stacks, by number. Set 0 holds the stack of the start state alone.

    Attributes:
        stack: the nodes of all sets; another object once it has grown.
    """

    def __init__(self, start: int) -> None:
        self.stack: GraphStack = new_stack(start)
        self._sets: list[tuple[int, int]] = [(0, 1)]
        self._numbers: dict[tuple[int, ...], int] = {(0, 0): 0}
        self._nodes: dict[tuple[int, tuple[int, ...]], int] = {}
        self._lines: dict[tuple[int, int, int], int] = {}
        self._shifted: dict[tuple[int, int], int] = {}
        self._out = np.zeros(2, dtype=np.int64)

    @property
    def num_kept(self) -> int:
        """Sets, nodes and shifts that are remembered."""
        return len(self._nodes) + len(self._sets) + len(self._shifted)

    def span(self, stacks: int) -> tuple[int, int]:
        """Where a set begins in `stack.members`, and how many nodes it has."""
        return self._sets[stacks]

    def make_room(self) -> None:
        """Twice the room.

        Raises:
            GrammarError: the bound is reached.
        """
        self.stack = larger_stack(self.stack)

    def shift(self, parser: ParserArrays, stacks: int, terminal: int) -> int:
        """The set after a terminal, -1 where the parser does not take it."""
        found = self._shifted.get((stacks, terminal))
        if found is None:
            first, size = self._sets[stacks]
            while parser_feed.feed_once(parser, self.stack, first, size, terminal, self._out) != OK:
                self.make_room()
            count, first = self._out.tolist()
            found = self.intern(self.read(first, count)) if count else -1
            self._shifted[stacks, terminal] = found
        return found

    def union(self, sets: Collection[int]) -> int:
        """The set with the stacks of several sets; none of them has an indentation."""
        first, *others = sorted(sets)
        if not others:
            return first
        return self.intern(([node for each in (first, *others) for node in self.tops(each)], [], (0, [])))

    def tops(self, stacks: int) -> list[int]:
        """The top nodes of a set."""
        first, size = self._sets[stacks]
        found: list[int] = self.stack.members[first : first + size].tolist()
        return found

    def node(self, node: int) -> tuple[int, list[int]]:
        """The parser's state at a node, and the nodes below."""
        state, at, count = self.stack.nodes[node].tolist()
        return state, self.stack.links[at : at + count].tolist()

    def column(self, stacks: int) -> int:
        """The column of the present line."""
        first, size = self._sets[stacks]
        line = int(self.stack.members[first + size])
        return int(self.stack.nodes[line, LINE_COLUMN]) if line else 0

    def read(self, first: int, size: int) -> _Graph:
        """A set in `stack.members` with its nodes that are not kept: the next shift overwrites them, and so does `intern`."""
        count = int(self.stack.counts[STACK_NODES])
        *nodes, line = self.stack.members[first : first + size + 1].tolist()
        lines = []
        while line >= count:
            column, outer, depth = self.stack.nodes[line].tolist()
            lines.append((column, outer, depth))
            line = outer
        scratch: dict[int, tuple[int, list[int]]] = {}
        todo = [node for node in nodes if node >= count]
        while todo:
            node = todo.pop()
            if node not in scratch:
                scratch[node] = self.node(node)
                todo += [below for below in scratch[node][1] if below >= count]
        return nodes, sorted(scratch.items()), (line, lines)  # a node is made after those below it

    def intern(self, graph: _Graph) -> int:
        """The number of a set."""
        nodes, scratch, (line, lines) = graph
        kept: dict[int, int] = {}
        for node, (state, below) in scratch:
            kept[node] = self._pushed(state, tuple(sorted({kept.get(each, each) for each in below})))
        for column, _, depth in reversed(lines):
            line = self._line(column, line, depth)
        key = (*sorted({kept.get(node, node) for node in nodes}), line)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._sets)
            at = int(self.stack.counts[MEMBERS])
            while at + len(key) >= len(self.stack.members):
                self.make_room()
            self.stack.members[at : at + len(key)] = key
            self.stack.counts[MEMBERS] += len(key)
            self._sets.append((at, len(key) - 1))
        return found

    def _pushed(self, state: int, below: tuple[int, ...]) -> int:
        """The node of a state on nodes."""
        found = self._nodes.get((state, below))
        if found is None:
            counts = self.stack.counts
            found, at = int(counts[STACK_NODES]), int(counts[STACK_LINKS])
            while found + 1 >= len(self.stack.nodes) or at + len(below) >= len(self.stack.links):
                self.make_room()
            self._nodes[state, below] = found
            self.stack.nodes[found] = state, at, len(below)
            self.stack.links[at : at + len(below)] = below
            self.stack.counts[STACK_NODES] += 1
            self.stack.counts[STACK_LINKS] += len(below)
        return found

    def _line(self, column: int, outer: int, depth: int) -> int:
        """The node of an indentation."""
        found = self._lines.get((column, outer, depth))
        if found is None:
            found = self._lines[column, outer, depth] = int(self.stack.counts[STACK_NODES])
            while found + 1 >= len(self.stack.nodes):
                self.make_room()
            self.stack.nodes[found] = column, outer, depth
            self.stack.counts[STACK_NODES] += 1
        return found
