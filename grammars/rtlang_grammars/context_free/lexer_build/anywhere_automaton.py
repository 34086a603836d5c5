"""The lexer of grammars whose terminals may end wherever they match: no longest match, and no competition between terminals.

The byte automata of all terminals run side by side, determinized for each set of terminals in context. Several terminals may end at one
place, and the lexeme may go on as well; the parser follows all of it. A terminal ends only before bytes with which something can follow it,
so that in most grammars one reading of a text is alive at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.cfg import Terminal
from rtlang_grammars.context_free.lexer_build.terminal_programs.built_threads import built_states
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import SpellingAutomaton

Ints: TypeAlias = NDArray[np.int32]

_MAX_CODE = (1 << 16) - 2


class AnywhereAutomaton:
    """The automaton, grown by one context at a time; see `lexer_automaton.LexerAutomaton` for the attributes that both have.

    Attributes:
        winners: int32 [num_states, num_classes]; the terminal that may end before a class; -1 for none; from num_terminals + 1 on, several:
            the difference is their place in `lists`.
        lists: for each set of terminals that may end at one place how many, and these.
        following: int32 as `winners`; the state if the lexeme goes on.
    """

    def __init__(self, terminals: Sequence[Terminal], budget: Budget) -> None:
        """Compile terminals, none of which matches the empty string.

        Raises:
            GrammarError: they are too large.
        """
        self.budget = budget
        self._num_terminals = len(terminals)
        table, self._owners, accepting, self._entries, expired = _joined(terminals, budget)
        labels = np.where(accepting, self._owners, -1)
        counted = np.flatnonzero(expired >= 0)
        labels[counted] = self._num_terminals + counted  # they stay apart from others
        table, numbers, firsts = _minimal(table, labels)
        self._expired: list[int] = np.append(numbers, -1)[expired[firsts]].tolist()
        self._max_tokens = [0 if each.built is None else each.built.max_tokens or 0 for each in terminals]
        self._entries = numbers[self._entries].tolist()
        self._owners, self._is_accepting = self._owners[firsts], accepting[firsts]
        columns, found = np.unique(table, axis=1, return_inverse=True)
        self.classes: Ints = np.append(found.reshape(-1), columns.shape[1]).astype(np.int32)
        self.num_classes, self.end_class = columns.shape[1] + 1, columns.shape[1]
        self._moves: Ints = np.ascontiguousarray(
            np.concatenate([columns, np.full((len(columns), 1), -1)], axis=1), dtype=np.int32
        )
        self.class_sizes: list[int] = np.bincount(self.classes).tolist()
        self.first_bytes = [b""] * self.num_classes
        for byte in (*range(255, -1, -1), *b"0 a"):
            self.first_bytes[self.classes[byte]] = bytes([byte])
        self.firsts = [_bits(np.flatnonzero(self._moves[entry] >= 0).tolist()) for entry in self._entries]
        self._everything = (1 << self.num_classes) - 1
        self._ends = np.ones((self._num_terminals, self.num_classes), dtype=np.bool_)
        self._numbers: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._states: list[tuple[bool, tuple[int, ...]]] = []
        self._codes: dict[tuple[int, ...], int] = {}
        self.lists: list[int] = []
        self.following: Ints = np.zeros((0, self.num_classes), dtype=np.int32)
        self.winners = self.num_behind = self.following
        self.wins: list[frozenset[tuple[int, int, int]]] = []
        self.is_start: list[bool] = []
        self.is_sure: list[bool] = []
        self.pending: list[frozenset[tuple[int, int]]] = []
        self.expiries: list[tuple[int, int]] = []
        self.column_sets: list[int] = [1]

    def end_only_before(self, followers: Iterable[Iterable[int]]) -> None:
        """Let each terminal end only before the first bytes of some terminals, and at the end of the text. Called once, before `starts`."""
        for terminal, others in enumerate(followers):
            may_follow = 1 << self.end_class
            for each in others:
                may_follow |= self.firsts[each]
            self._ends[terminal] = [may_follow >> each & 1 for each in range(self.num_classes)]

    def starts(self, contexts: Iterable[Iterable[int]]) -> list[int]:
        """The states before the first byte of a lexeme, for sets of terminals that may come; makes all states after them.

        Raises:
            GrammarError: the budget ran out; nothing is made then.
        """
        num_before = len(self._states)
        num_lists, codes = len(self.lists), dict(self._codes)
        found = [self._number(True, tuple(sorted({self._entries[each] for each in context}))) for context in contexts]
        rows: list[tuple[Ints, Ints]] = []
        expiries: list[tuple[int, int]] = []
        try:
            while num_before + len(rows) < len(self._states):
                self.budget.spend(states=1, num_bytes=12 * self.num_classes)
                members = self._states[num_before + len(rows)][1]
                expiries.append(self._expiry(members))
                rows.append(self._row(members))
        except GrammarError:
            for state in self._states[num_before:]:
                del self._numbers[state]
            del self._states[num_before:], self.lists[num_lists:]
            self._codes = codes
            raise
        if rows:
            self.following = np.vstack([self.following, *(row[0] for row in rows)])
            self.winners = np.vstack([self.winners, *(row[1] for row in rows)])
            self.num_behind = np.zeros_like(self.winners)
            self.expiries += expiries
        for is_start, members in self._states[num_before:]:
            owners = {int(each) for each in self._owners[list(members)]}
            self.wins.append(frozenset((each, self._everything, self._everything) for each in owners))
            self.is_start.append(is_start)
            self.is_sure.append(False)
            self.pending.append(frozenset())
        return found

    def may_end_within_runs(self, terminal: int, num_bytes: int) -> bool:
        """Whether a terminal may end before each of at least so many bytes where it may go on with the same bytes, as comments can."""
        sizes = np.array(self.class_sizes)
        ends = self._ends[terminal]
        for state, (_, members) in enumerate(self._states):
            if any(self._is_accepting[each] and self._owners[each] == terminal for each in members):
                loops = (self.following[state] == state) & ends
                if sizes[loops].sum() >= num_bytes:
                    return True
        return False

    def _number(self, is_start: bool, members: tuple[int, ...]) -> int:
        key = (is_start, members)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._states)
            self._states.append(key)
        return found

    def _expiry(self, members: tuple[int, ...]) -> tuple[int, int]:
        """See `LexerAutomaton.expiries`."""
        budgets = [self._max_tokens[self._owners[each]] if self._expired[each] >= 0 else 0 for each in members]
        least = min((each for each in budgets if each), default=0)
        if not least:
            return 0, -1
        after = {self._expired[each] if most == least else each for each, most in zip(members, budgets, strict=True)}
        return least, self._number(False, tuple(sorted(after)))

    def _row(self, members: tuple[int, ...]) -> tuple[Ints, Ints]:
        """The states after each class, and the terminals that end before it."""
        targets = self._moves[list(members)]
        following = np.full(self.num_classes, -1, dtype=np.int32)
        winners = np.full(self.num_classes, -1, dtype=np.int32)
        known: dict[bytes, int] = {}
        columns = np.ascontiguousarray(targets.T)
        alive = (columns >= 0).any(axis=1)
        for symbol_class in np.flatnonzero(alive).tolist():
            column = columns[symbol_class]
            key = column.tobytes()
            if key not in known:
                self.budget.spend()
                known[key] = self._number(False, tuple(sorted({each for each in column.tolist() if each >= 0})))
            following[symbol_class] = known[key]
        ending = [int(self._owners[each]) for each in members if self._is_accepting[each]]
        if len(ending) == 1:
            winners[self._ends[ending[0]]] = ending[0]
        elif ending:
            ends = self._ends[ending]
            for symbol_class in np.flatnonzero(ends.any(axis=0)).tolist():
                chosen = ends[:, symbol_class].tolist()
                winners[symbol_class] = self._code(tuple(each for each, may in zip(ending, chosen, strict=True) if may))
        return following, winners

    def _code(self, terminals: tuple[int, ...]) -> int:
        if len(terminals) == 1:
            return terminals[0]
        found = self._codes.get(terminals)
        if found is None:
            found = self._codes[terminals] = self._num_terminals + 1 + len(self.lists)
            if found > _MAX_CODE:
                raise GrammarError("too ambiguous: too many different sets of terminals may end at one place")
            self.lists += [len(terminals), *terminals]
        return found


def _joined(
    terminals: Sequence[Terminal], budget: Budget
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], list[int], NDArray[np.int64]]:
    """The automata of all terminals as one table int64 [num_states, 256].

    Returns:
        The table, the terminal of each state, whether it accepts, where terminals start, and for each state that after a budget or -1.
    """
    rows: list[NDArray[np.int32]] = []
    owners: list[int] = []
    accepting: list[bool] = []
    entries: list[int] = []
    expired: list[int] = []
    for number, terminal in enumerate(terminals):
        base = len(rows)
        entries.append(base)
        if terminal.tokens is not None:
            for moves in SpellingAutomaton.of(terminal.tokens).states:
                row = np.full(256, -1, dtype=np.int32)
                for first, last, to in moves:
                    row[first : last + 1] = base + to
                rows.append(row)
                accepting.append(not moves)
        elif terminal.built is not None:
            for state in built_states(terminal.built, budget):
                row = np.full(256, -1, dtype=np.int32)
                for to, symbols in state.moves:
                    row[[byte for byte in range(256) if symbols >> byte & 1]] = base + to
                rows.append(row)
                accepting.append(state.is_match)
                expired.append(base + state.expired if state.expired >= 0 else -1)
        else:
            automaton = terminal.language.automaton(budget)
            places, todo = {automaton.start: base}, [automaton.start]
            for at in todo:  # grows during iteration
                budget.spend(states=1, num_bytes=1024)
                targets, index = automaton.compressed_row(at)
                numbers = []
                for target in targets:
                    if target >= 0 and target not in places:
                        places[target] = base + len(todo)
                        todo.append(target)
                    numbers.append(places[target] if target >= 0 else -1)
                rows.append(np.array(numbers, dtype=np.int32)[index])
                accepting.append(automaton.is_accepting(at))
        owners += [number] * (len(rows) - base)
        expired += [-1] * (len(rows) - len(expired))
    table = np.array(rows, dtype=np.int64).reshape(-1, 256)
    return (
        table,
        np.array(owners, dtype=np.int64),
        np.array(accepting, dtype=np.bool_),
        entries,
        np.array(expired, dtype=np.int64),
    )


def _minimal(
    table: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The table with equal states joined, the new number of each state, and an old state for each new one. Source: Moore 1956.

    labels: states with other labels differ.
    """
    columns, index = np.unique(table, axis=1, return_inverse=True)
    _, numbers = np.unique(labels, return_inverse=True)
    numbers = numbers.reshape(-1)
    count = 0
    while True:
        padded = np.append(numbers, -1)
        keys = np.concatenate([numbers[:, None], padded[columns]], axis=1)
        _, firsts, numbers = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        numbers = numbers.reshape(-1)
        if len(firsts) == count:
            break
        count = len(firsts)
    return np.append(numbers, -1)[columns[firsts]][:, index.reshape(-1)], numbers, firsts


def _bits(places: Iterable[int]) -> int:
    found = 0
    for each in places:
        found |= 1 << each
    return found
