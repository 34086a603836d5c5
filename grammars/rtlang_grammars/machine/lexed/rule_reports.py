"""Reports of rules with options: the temperature at a place, and the texts of rules with `capture`.

A temperature belongs to the terminals that may read the next byte: each is shifted for a try, and the rules in progress in the parser's
state after it are those that contain it. Captures are found by parsing the terminals of a text once more, with the places where rules
begin and end; of several parses, the one counts that takes the first alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rtlang_grammars.machine.lexed.lexed_places import Configuration, LexedPlaces
from rtlang_grammars.machine.lexer_run.lexer_layout import MANY, PAIR_TERMINAL, WIN
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables, Capture, RuleReports

MAX_STACKS = 1_000
"""Stacks of an ambiguous text that are followed at once."""


class Lexeme(NamedTuple):
    """A terminal in a text, with the places of its bytes."""

    terminal: int
    start: int
    end: int


class _Item(NamedTuple):
    """A linked list of captures, the last one first. name None: bytes that enclosing captures leave out."""

    before: _Item | None
    name: str | None
    start: int
    end: int
    text: bytes


class _Node(NamedTuple):
    """A place on a stack: the parser's state, the number of the node below (-1), where its symbol lies, and the captures up to it."""

    state: int
    below: int
    start: int
    end: int
    items: _Item | None


class CaptureParser:
    """Parses the terminals of one text from its beginning."""

    def __init__(self, tables: BoundTables, reports: RuleReports, text: bytes) -> None:
        self._tables, self._captures, self._text = tables, reports.captures, text
        start = int(tables.parser.final[0])
        self._nodes = [_Node(start, -1, 0, 0, None)]
        self._numbers: dict[tuple[int, int], int] = {(start, -1): 0}
        self._tops = [0]

    def feed(self, lexeme: Lexeme) -> None:
        """Shift a terminal."""
        if lexeme.terminal not in self._tables.ignored:
            self._tops = self.shifted(self._tops, lexeme)

    def shifted(self, tops: Sequence[int], lexeme: Lexeme) -> list[int]:
        """The tops of stacks after a terminal."""
        found: dict[int, None] = {}
        for top, action in self._actions(tops, lexeme.terminal):
            if action > 0:
                node = _Node(action - 1, top, lexeme.start, lexeme.end, self._nodes[top].items)
                found[self._push(node)] = None
        return list(found)[:MAX_STACKS]

    def finish(self) -> None:
        """Read the end of the text."""
        self._tops = self.finished(self._tops)

    def finished(self, tops: Sequence[int]) -> list[int]:
        """The first top after the end of the text, if it may end there."""
        actions = self._actions(tops, self._tables.num_terminals)
        return [top for top, action in actions if action == 1][:1]

    def state(self, top: int) -> int:
        """The parser's state at the top of a stack."""
        return self._nodes[top].state

    def place(self, top: int) -> tuple[int, int]:
        """The parser's state and the stack below it: two stacks with the same are equal."""
        return self._nodes[top][:2]

    def captures(self, top: int | None = None) -> dict[str, list[bytes]]:
        """The captured texts by name up to a stack (None: the preferred one), in the order in which they ended."""
        if top is None:
            top = self._tops[0] if self._tops else 0
        found: list[_Item] = []
        item = self._nodes[top].items
        while item is not None:
            if item.name is not None:
                found.append(item)
            item = item.before
        named: dict[str, list[bytes]] = {}
        for each in reversed(found):
            named.setdefault(str(each.name), []).append(each.text)
        return named

    def _push(self, node: _Node) -> int:
        """The number of a node; the first of equal stacks counts."""
        key = node.state, node.below
        number = self._numbers.get(key)
        if number is None or self._nodes[number][2:] != node[2:]:
            number = self._numbers[key] = len(self._nodes)
            self._nodes.append(node)
        return number

    def _actions(self, tops: Sequence[int], terminal: int) -> list[tuple[int, int]]:
        """Tops with their actions that shift, after all reductions, in order."""
        parser, found = self._tables.parser, []
        todo = list(reversed(tops))
        seen: set[tuple[int, int]] = set()
        while todo:
            top = todo.pop()
            node = self._nodes[top]
            key = node.state, node.below
            if key in seen:
                continue
            seen.add(key)
            action = int(parser.actions[node.state, terminal])
            if action >= MANY:
                place = action - MANY
                actions = parser.lists[place + 1 : place + 1 + int(parser.lists[place])].tolist()
            else:
                actions = [action] if action else []
            reduced = []
            for each in actions:
                if each > 0:
                    found.append((top, each))
                else:
                    reduced.append(self._reduce(top, -1 - each))
            todo += [each for each in reversed(reduced) if each >= 0]
        return found

    def _reduce(self, top: int, rule: int) -> int:
        """The node after a reduction, -1 where none is."""
        size, head = self._tables.parser.rules[rule].tolist()
        items, end = self._nodes[top].items, self._nodes[top].end
        below, start = top, end
        for _ in range(size):
            start = self._nodes[below].start
            below = self._nodes[below].below
        if below < 0:
            return -1
        state = int(self._tables.parser.gotos[self._nodes[below].state, head])
        if state < 0:
            return -1
        capture = self._captures.get(head)
        if capture is not None:
            items = self._reported(capture, start, end, items)
        return self._push(_Node(state, below, start, end, items))

    def _reported(self, capture: Capture, start: int, end: int, items: _Item | None) -> _Item | None:
        marker = start + capture.marker_at(self._text[start:end])
        own = self._without_hidden(start, marker, items)
        if marker < end:
            if capture.marker_name is not None:
                items = _Item(items, capture.marker_name, marker, end, self._text[marker:end])
            if capture.is_hidden:
                items = _Item(items, None, marker, end, b"")
        if capture.name is not None:
            items = _Item(items, capture.name, start, marker, own)
        return items

    def _without_hidden(self, start: int, end: int, items: _Item | None) -> bytes:
        """The bytes between two places without hidden ones."""
        hidden = []
        while items is not None and items.end > start:
            if items.name is None and start <= items.start and items.end <= end:
                hidden.append((items.start, items.end))
            items = items.before
        text, at = b"", start
        for first, last in reversed(hidden):
            text += self._text[at:first]
            at = last
        return text + self._text[at:end]


def find_captures(
    tables: BoundTables, reports: RuleReports, text: bytes, lexemes: Sequence[Lexeme], *, is_complete: bool
) -> dict[str, list[bytes]]:
    """The texts of the rules with `capture`, by name, in the order in which they ended.

    Args:
        is_complete: the text may end here, so that all rules have ended; else rules count that end before the last terminal.
    """
    parser = CaptureParser(tables, reports, text)
    for lexeme in lexemes:
        parser.feed(lexeme)
    if is_complete:
        parser.finish()
    return parser.captures()


def find_temperatures(places: LexedPlaces, configuration: Configuration) -> Iterator[float]:
    """The temperatures of the rules whose terminals may read the next byte."""
    tables, state, stacks = places.tables, configuration.state, configuration.stacks
    automaton, temperatures = tables.automaton, tables.reports.temperatures
    goes_on = {int(each) for each in np.unique(automaton.following[state]) if each >= 0}
    reading: set[tuple[int, int]] = set()
    for following in goes_on:
        reading |= {(stacks, terminal) for terminal in winning(tables, following)}
    for ended in {int(each) for each in np.unique(automaton.winners[state]) if each >= 0}:
        after = places.shift(stacks, ended)
        if after >= 0:
            reading |= {(after, terminal) for terminal in winning(tables, places.lexer_state(after))}
    for before, terminal in reading:
        after = -1 if terminal in tables.ignored else places.shift(before, terminal)
        for node in places.stack_sets.tops(after) if after >= 0 else ():
            for head in _contained_in(tables, places.stack_sets.node(node)[0]):
                if head in temperatures:
                    yield temperatures[head]


def winning(tables: BoundTables, state: int) -> Iterator[int]:
    """The terminals that can still win from a state of the lexer."""
    lexer = tables.lexer
    at, count, _ = lexer.wins[int(lexer.states[state, WIN])].tolist()
    for pair in lexer.win_pairs[at : at + count].tolist():
        terminal = int(lexer.pairs[pair, PAIR_TERMINAL])
        if terminal < tables.num_terminals:
            yield terminal


def _contained_in(tables: BoundTables, state: int) -> set[int]:
    """The origins of the rules in progress at a parser state."""
    kernels = tables.rules.kernels
    rules = kernels[kernels[:, 0] == state, 1]
    heads = tables.rules.heads
    return {int(heads[rule]) for rule in rules.tolist() if rule >= 0}
