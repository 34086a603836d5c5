"""Exports a grammar as a deterministic pushdown automaton in plain arrays, for a device that walks it without the host.

The machine's states carry a register (a count, the names an object has seen) and may have alternatives. The export creates one state for
every reachable pair of state and register, which removes registers, and refuses grammars that are ambiguous or have too many such pairs;
those stay on the host. A byte maps to a byte class. State and class lead to a next state, to a pop (the frame ends, and the byte is read
again in the return state), to a call (a state is pushed, and the byte is read again in the first state of the frame), or nowhere.

Invariant: a walk of the exported automaton accepts exactly the texts that the machine accepts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import (
    ACC,
    ALTERNATIVES,
    BLOCK,
    BYTE,
    CALL,
    CALL_NEXT,
    CALL_TO,
    ENDS_OR_GOES_ON,
    FIRST_ACTION,
    HEADS,
    LENGTH,
    NODE_WORDS,
    NONE,
    OPEN,
    PARAM,
    ROW,
    SPELL,
    TARGET,
    UNKNOWN,
    UNKNOWN_ROW,
)
from rtlang_grammars.machine.automaton.tables import Snapshot, Tables
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.machine.lexed.anywhere_grammar import AnywhereGrammar
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.native.registers import act_alone
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import GrammarMatcher

DEAD, POP, FIRST_CALL = -1, -2, -3
"""Entries of `trans` that are not a next state: nowhere, the frame ends, and calls[FIRST_CALL - entry]."""
MAX_STATES = 4096
MAX_CALLS = 8
"""Maximum number of calls on one byte; more would be a recursion that reads nothing."""

_Pair = tuple[int, int, bool]  # state, register, whether no frame is left to return to


@dataclass(frozen=True, slots=True, eq=False)
class ExportedAutomaton:
    """A deterministic pushdown automaton over bytes. Immutable.

    Attributes:
        classes: uint8 [256], the class of each byte.
        trans: int32 [num_states, num_classes]; see the module.
        calls: int32 [num_calls, 2], first state of the called frame, and return state (-1: the frame ends with the called one).
        may_end: bool [num_states], whether the frame may end here. A text is complete if its frame and all return states may end.
        start: the state at the start of the text.
    """

    classes: NDArray[np.uint8]
    trans: NDArray[np.int32]
    calls: NDArray[np.int32]
    may_end: NDArray[np.bool_]
    start: int


@dataclass(slots=True)
class Walk:
    """Follows a text through an automaton: the state, and the return states, outermost first. `state` is DEAD after a rejected byte."""

    automaton: ExportedAutomaton
    state: int
    stack: list[int] = field(default_factory=list)

    @classmethod
    def at_start(cls, automaton: ExportedAutomaton) -> Walk:
        """A walk before the first byte."""
        return cls(automaton, automaton.start)

    @property
    def is_complete(self) -> bool:
        """Whether the text may end here."""
        may_end = self.automaton.may_end
        return self.state != DEAD and bool(may_end[self.state]) and all(may_end[state] for state in self.stack)

    def advance(self, text: bytes) -> bool:
        """Follow some bytes; returns whether they are allowed."""
        automaton = self.automaton
        for byte in text:
            if self.state == DEAD:
                return False
            column = automaton.classes[byte]
            while (entry := int(automaton.trans[self.state, column])) < 0:
                if entry == DEAD or (entry == POP and not self.stack):
                    self.state = DEAD
                    return False
                if entry == POP:
                    self.state = self.stack.pop()
                    continue
                start, back = automaton.calls[FIRST_CALL - entry].tolist()
                if back >= 0:
                    self.stack.append(back)
                self.state = start
            self.state = entry
        return self.state != DEAD


def export(matcher: GrammarMatcher, max_states: int = MAX_STATES) -> ExportedAutomaton | None:
    """The automaton of a matcher's grammar, from the start of the text; None if there is none.

    There is none if the grammar is not deterministic, too large, counts tokens, or has objects with undeclared names, which have to be
    distinct.

    Builds all open rows. May take some hundred milliseconds. Devices know no spellings of special tokens: grammars with such tokens stay on
    the host.
    """
    grammar = owner_of(matcher)
    if grammar is None or grammar.tables.token_sets or grammar.tables.has_distinct_names or grammar.tables.token_bounds:
        return None
    try:
        return _Export(grammar.tables, max_states).automaton(int(grammar.start_place.configuration[HEADS]))
    except _Refusal:
        return None
    except GrammarError:  # an open row exceeds the grammar's budget
        return None


def owner_of(matcher: GrammarMatcher) -> MachineGrammar | None:
    """The owner of a matcher's automaton, which is the same for all matchers of a compiled grammar; None if there is no automaton."""
    found: object = matcher._grammar if isinstance(matcher, MachineMatcher) else None
    if isinstance(found, AnywhereGrammar):
        try:
            found = found.machine
        except GrammarError:
            return None
    return found if isinstance(found, MachineGrammar) else None


def most_frames(matcher: GrammarMatcher) -> int | None:
    """An upper bound on the number of return states after a matcher's text; None if none is known without a walk."""
    configuration = matcher.configuration if isinstance(matcher, MachineMatcher) else None
    if not isinstance(configuration, np.ndarray):
        return None
    return (int(configuration.item(LENGTH)) - HEADS) // NODE_WORDS


class _Refusal(Exception):
    """The grammar has no automaton."""


class _Export:
    def __init__(self, tables: Tables, max_states: int) -> None:
        self._tables, self._max_states = tables, max_states
        self._number: dict[_Pair, int] = {}
        self._todo: deque[_Pair] = deque()
        self._calls: dict[tuple[int, int], int] = {}
        self._values: dict[int, tuple[NDArray[np.int32], NDArray[np.intp]]] = {}
        self._arena = np.zeros(64, dtype=np.int64)

    def automaton(self, start: int) -> ExportedAutomaton:
        first = self._place((start, 0, True))
        rows: list[NDArray[np.int32]] = []
        may_end: list[bool] = []
        while self._todo:
            state, register, is_root = self._todo.popleft()
            values, where = self._values_of(state)
            record = self._snapshot.S[state]
            acc = int(record[ACC])
            if record[BLOCK]:
                raise _Refusal
            if acc == ENDS_OR_GOES_ON and not is_root and (values != NONE).any():
                raise _Refusal
            ends = DEAD if acc == OPEN or is_root else POP
            entries = [
                ends if value == NONE else self._entry(state, register, is_root, value) for value in values.tolist()
            ]
            rows.append(np.array(entries, dtype=np.int32)[where])
            may_end.append(acc != OPEN)
        wide = np.stack(rows)  # [num_states, 256]
        columns, classes = np.unique(wide, axis=1, return_inverse=True)
        calls = np.array(list(self._calls) or [(0, 0)], dtype=np.int32)
        found = ExportedAutomaton(
            classes.reshape(-1).astype(np.uint8), np.ascontiguousarray(columns), calls, np.array(may_end), first
        )
        _check_calls(found)
        return found

    @property
    def _snapshot(self) -> Snapshot:
        return self._tables.snapshot or self._tables.publish()

    def _place(self, pair: _Pair) -> int:
        number = self._number.get(pair)
        if number is None:
            number = self._number[pair] = len(self._number)
            if number >= self._max_states:
                raise _Refusal
            self._todo.append(pair)
        return number

    def _values_of(self, state: int) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The distinct values of a state, and the index of the value of each byte."""
        found = self._values.get(state)
        if found is None:
            if self._snapshot.S[state, ROW] == UNKNOWN_ROW:
                self._tables.complete(state)
            tables = self._snapshot
            row = int(tables.S[state, ROW]) * 256
            values = tables.T[row : row + 256].copy()
            if tables.S[state, BYTE] < 256:
                values[tables.S[state, BYTE]] = tables.S[state, TARGET]
            assert not (values == UNKNOWN).any()
            distinct, where = np.unique(values, return_inverse=True)
            found = self._values[state] = distinct, where.reshape(-1)
        return found

    def _entry(self, state: int, register: int, is_root: bool, value: int) -> int:
        if value >= 0:
            return self._place((value, register, is_root))
        X = self._snapshot.X
        at = FIRST_ACTION - value
        kind = int(X[at])
        if kind in (ALTERNATIVES, SPELL):
            raise _Refusal
        if kind > CALL_TO:
            target, after, top = act_alone(X, self._arena, at, register, 8)
            if top != 8:  # the register is a block of words
                raise _Refusal
            return DEAD if target < 0 else self._place((int(target), int(after), is_root))
        back = {CALL: int(self._snapshot.S[state, PARAM]), CALL_NEXT: state + 1}.get(kind, int(X[at + 3]))
        begin = self._place((int(X[at + 1]), int(X[at + 2]), is_root and back < 0))
        returns_to = self._place((back, register, is_root)) if back >= 0 else -1
        return FIRST_CALL - self._calls.setdefault((begin, returns_to), len(self._calls))


def _check_calls(automaton: ExportedAutomaton) -> None:
    """Refuse automata that call forever on one byte."""
    entries = automaton.trans
    for _ in range(MAX_CALLS):
        is_call = entries <= FIRST_CALL
        if not is_call.any():
            return
        starts = automaton.calls[np.where(is_call, FIRST_CALL - entries, 0), 0]
        columns = np.broadcast_to(np.arange(entries.shape[1]), entries.shape)
        entries = np.where(is_call, automaton.trans[starts, columns], entries)
    if (entries <= FIRST_CALL).any():
        raise _Refusal
