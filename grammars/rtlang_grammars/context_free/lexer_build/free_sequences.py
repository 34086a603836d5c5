"""Proves where a lexer stands in no parser's way: whichever terminals the parser wants next, texts of them follow one another.

A text of terminal u ends before some classes of bytes: those before which no terminal goes on. What follows must begin with one of these.
A terminal *ends freely* before a set of classes if in each context that the parser may reach by it, each terminal of the context has a text
that begins with a class of the set, perhaps after ignored ones, and ends freely itself. This is the greatest fixed point of that sentence.
So after a free end every sequence of terminals that the parser takes has a text, and parser stacks can always be completed.

Where stacks with different contexts meet (conflicts), the lexer looks for the terminals of all of them. A text of a terminal that ends
before a class while all terminals of the grammar compete does so in any smaller context, so one context of all terminals is examined.
"""

from __future__ import annotations

import numpy as np

from rtlang_grammars.context_free.lexer_build.indentation import NUM_COLUMNS, Columns
from rtlang_grammars.context_free.lexer_build.lexer_automaton import LexerAutomaton
from rtlang_grammars.context_free.lexer_build.parser_tables import ParserTables


class FreeSequences:
    """The proof for one grammar."""

    def __init__(
        self,
        automaton: LexerAutomaton,
        rules: ParserTables,
        starts: list[int],
        ignored: frozenset[int],
        columns: Columns | None,
        *,
        everything: int = -1,
        doomed: frozenset[int] = frozenset(),
    ) -> None:
        """Examine the contexts of the rows of a parser.

        Args:
            starts: the lexer's state before a lexeme, for each of `rules.rows`.
            everything: the lexer's state before a lexeme where all terminals compete, in grammars with conflicts; -1 in others.
            doomed: terminals that no text needs (see `covers`).
        """
        self._automaton, self._rules, self._columns = automaton, rules, columns
        self._ignored = ignored
        self._end = 1 << rules.num_terminals
        self._needs = [self._need(row - doomed) for row in rules.rows]
        found = [everything] if everything >= 0 else starts
        numbers = {state: number for number, state in enumerate(dict.fromkeys(found))}
        self._starts = list(numbers)
        self._context_of = [0] * len(starts) if everything >= 0 else [numbers[state] for state in starts]
        self._after: dict[int, frozenset[tuple[int, int]]] = {}
        self._exits = {state: self._exits_of(state) for state in self._starts}
        self._frees = [{each: self._union(win) for each, win in self._exits[start].items()} for start in self._starts]
        self._known: dict[tuple[int, int], bool] = {}
        self._covers: dict[tuple[int, int], int] = {}
        self._settle()

    def is_free(self, terminal: int, classes: int) -> bool:
        """Whether a terminal ends freely before classes, given as bits.

        terminal: as in `LexerAutomaton.wins`: newlines at the columns of a set have one number.
        """
        if terminal <= self._rules.num_terminals:
            return self._is_free(terminal, classes)
        columns = self._automaton.column_sets[terminal - self._automaton.num_numbers - 1]
        assert self._columns is not None
        return all(
            self._is_free(self._columns.newline + column, classes)
            for column in range(NUM_COLUMNS)
            if columns >> column & 1
        )

    def _need(self, row: frozenset[int]) -> int:
        """The terminals of a row as bits, newlines at all columns among them."""
        found = 0
        for terminal in row:
            if self._columns is None:
                found |= 1 << terminal
            elif self._columns.is_newline(terminal):
                found |= ((1 << NUM_COLUMNS) - 1) << self._columns.newline
            elif terminal not in (self._columns.indent, self._columns.dedent):
                found |= 1 << terminal
        return found

    def _exits_of(self, start: int) -> dict[int, list[tuple[int, int]]]:
        """For each class with which a lexeme may begin, the terminals that it may be, and the classes before which they surely end."""
        found: dict[int, list[tuple[int, int]]] = {}
        for symbol_class, state in enumerate(self._automaton.following[start].tolist()):
            if state < 0:
                continue
            exits = found[symbol_class] = []
            for terminal, _, sure in self._automaton.wins[state]:
                if sure and terminal <= self._rules.num_terminals:
                    exits.append((terminal, sure))
                elif sure and self._columns is not None:
                    columns = self._automaton.column_sets[terminal - self._automaton.num_numbers - 1]
                    exits += [
                        (self._columns.newline + each, sure) for each in range(NUM_COLUMNS) if columns >> each & 1
                    ]
        return found

    def _union(self, win: list[tuple[int, int]]) -> int:
        return sum(1 << terminal for terminal in {terminal for terminal, _ in win})

    def _settle(self) -> None:
        """Take away what does not end freely until nothing changes."""
        has_changed = True
        while has_changed:
            has_changed = False
            self._known.clear()
            self._covers.clear()
            for number, start in enumerate(self._starts):
                for symbol_class, exits in self._exits[start].items():
                    frees = self._frees[number]
                    kept = 0
                    for terminal, sure in exits:
                        if frees[symbol_class] >> terminal & 1 and self._is_free(terminal, sure):
                            kept |= 1 << terminal
                    if kept != frees[symbol_class]:
                        frees[symbol_class], has_changed = kept, True

    def _is_free(self, terminal: int, classes: int) -> bool:
        found = self._known.get((terminal, classes))
        if found is None:
            found = bool(classes)
            for row, needs_end in self._rows_after(terminal) if found else ():
                need = self._needs[row] | (self._end if needs_end else 0)
                if need & ~self._covered(self._context_of[row], classes):
                    found = False
                    break
            self._known[terminal, classes] = found
        return found

    def _covered(self, context: int, classes: int) -> int:
        """The terminals that can follow in a context if the next byte is of some classes, as bits."""
        found = self._covers.get((context, classes))
        if found is None:
            found, todo, exits = 0, classes, self._exits[self._starts[context]]
            seen = 0
            while todo:
                symbol_class = (todo & -todo).bit_length() - 1
                todo &= todo - 1
                seen |= 1 << symbol_class
                found |= self._frees[context].get(symbol_class, 0)
                for terminal, sure in exits.get(symbol_class, ()):
                    if terminal in self._ignored:
                        todo |= sure & ~seen
            if seen >> self._automaton.end_class & 1:
                found |= self._end
            self._covers[context, classes] = found
        return found

    def _rows_after(self, terminal: int) -> frozenset[tuple[int, int]]:
        """The rows of the states in which the parser may be after a terminal, and whether the text may end there."""
        columns = self._columns
        is_newline = columns is not None and columns.is_newline(terminal)
        key = columns.newline if columns is not None and is_newline else -1 if terminal in self._ignored else terminal
        found = self._after.get(key)
        if found is None:
            rules = self._rules
            if key < 0 or is_newline:  # newlines in brackets change nothing either
                states = np.arange(rules.num_states)
            else:
                states = np.unique(rules.shifts[:, key])
                states = states[states >= 0]
            ends = (rules.reductions[states, rules.num_terminals, 1] > 0) | (states == rules.final)
            found = frozenset(zip(rules.contexts[states].tolist(), ends.tolist(), strict=True))
            self._after[key] = found
        return found


def doomed_terminals(automaton: LexerAutomaton, rules: ParserTables, ignored: frozenset[int]) -> frozenset[int]:
    """Terminals after which no text can go on: nothing that the parser takes begins as their look-ahead asks."""
    ends = [0] * rules.num_terminals
    for win in set(automaton.wins):
        for terminal, classes, _ in win:
            ends[terminal] |= classes
    begins = 0
    for terminal in ignored:
        begins |= automaton.firsts[terminal]
    return frozenset(
        terminal
        for terminal in range(rules.num_terminals)
        if terminal not in ignored
        and not ends[terminal] & begins
        and not any(
            _goes_on(automaton, rules, state, ends[terminal])
            for state in np.unique(rules.shifts[:, terminal]).tolist()
            if state >= 0
        )
    )


def _goes_on(automaton: LexerAutomaton, rules: ParserTables, state: int, classes: int) -> bool:
    """Whether a terminal that may follow in a state begins with one of some classes."""
    if classes >> automaton.end_class & 1 and (
        state == rules.final or rules.reductions[state, rules.num_terminals, 1] > 0
    ):
        return True
    return any(classes & automaton.firsts[each] for each in rules.rows[rules.contexts[state]])


def covers(fewer: ParserTables, rules: ParserTables, doomed: frozenset[int]) -> bool:
    """Whether each stack that is reached without some terminals is one of the rules without them, and so is completed without them."""
    of_name = {name: head for head, name in enumerate(fewer.head_names)}
    heads = [of_name.get(name, -1) for name in rules.head_names]
    seen, todo = {(0, 0)}, [(0, 0)]
    while todo:
        one, other = todo.pop()
        moves = [
            (int(rules.shifts[one, each]), int(fewer.shifts[other, each]))
            for each in range(rules.num_terminals)
            if each not in doomed
        ]
        moves += [
            (to, int(fewer.gotos[other, head]) if head >= 0 else -1)
            for head, to in zip(heads, rules.gotos[one].tolist(), strict=True)
        ]
        for pair in moves:
            if pair[0] >= 0 and pair not in seen:
                if pair[1] < 0:
                    return False
                seen.add(pair)
                todo.append(pair)
    return True
