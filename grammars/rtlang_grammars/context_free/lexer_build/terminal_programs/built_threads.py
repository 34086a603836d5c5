"""Threads of terminals that are given as languages: `BuiltTerminal`.

A terminal with a budget of tokens has every state twice. The second one is entered when the budget is used up (see
`lexer_automaton.LexerAutomaton.expiry`): there the terminal ends where it first can, also without its marker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.regular.automata.byte_automaton import ByteAutomaton
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_State = tuple[int, int]
"""A state of the language, and one of the body, -1 where it has failed."""


class StateNode(NamedTuple):
    """A state of a terminal.

    Attributes:
        moves: the places of the states after it, with the bytes that lead there as bits.
        is_match: whether the terminal ends there.
        expired: the place of the state in its place once the budget is used up; -1 without a budget.
        is_used_up: whether the budget is used up.
    """

    moves: list[tuple[int, int]]
    is_match: bool
    expired: int
    is_used_up: bool


class _Walk:
    def __init__(self, terminal: BuiltTerminal, budget: Budget) -> None:
        self.whole = terminal.language.automaton(budget)
        self.is_lazy = terminal.is_lazy
        self.has_body = terminal.max_tokens is not None
        is_same = terminal.body is terminal.language
        self.body: ByteAutomaton | None = None
        if self.has_body and not is_same and not terminal.body.is_empty(budget):
            self.body = terminal.body.automaton(budget)
        self.start: _State = (self.whole.start, -1 if self.body is None else self.body.start)

    def moves(self, state: _State) -> dict[_State, int]:
        """The states after one, with bytes as bits."""
        found: dict[_State, int] = {}
        inner = None if self.body is None or state[1] < 0 else self.body.row(state[1]).tolist()
        for byte, to in enumerate(self.whole.row(state[0]).tolist()):
            if to >= 0:
                key = to, -1 if inner is None else inner[byte]
                found[key] = found.get(key, 0) | 1 << byte
        return found

    def is_match(self, state: _State) -> bool:
        """Whether the terminal matches there."""
        return self.whole.is_accepting(state[0])

    def may_end(self, state: _State) -> bool:
        """Whether the terminal may end there after its budget."""
        return self.is_match(state) or (self.body is not None and state[1] >= 0 and self.body.is_accepting(state[1]))


def built_states(terminal: BuiltTerminal, budget: Budget) -> list[StateNode]:
    """The states of a terminal; the first is its start, which nothing leads to and where it does not match.

    Raises:
        GrammarError: the terminal matches no text that is not empty, or the automaton is too large.
    """
    walk = _Walk(terminal, budget)
    found: list[StateNode] = []
    places: dict[tuple[_State, bool], int] = {}
    todo: list[tuple[_State, bool]] = []

    def place(state: _State, is_expired: bool) -> int:
        key = state, is_expired
        if key not in places:
            places[key] = 1 + len(places)
            todo.append(key)
        return places[key]

    def node(state: _State, is_expired: bool, is_start: bool) -> StateNode:
        budget.spend(states=1)
        is_match = not is_start and (walk.may_end(state) if is_expired else walk.is_match(state))
        ends = is_match and (is_expired or terminal.is_lazy)
        moves = [] if ends else [(place(to, is_expired), symbols) for to, symbols in walk.moves(state).items()]
        expired = place(state, True) if walk.has_body and not is_expired and not is_start and not ends else -1
        return StateNode(moves, is_match, expired, is_expired)

    found.append(node(walk.start, False, True))
    at = 0
    while at < len(todo):
        state, is_expired = todo[at]
        found.append(node(state, is_expired, False))
        at += 1
    if not found[0].moves:
        raise GrammarError("it matches at most the empty text, which no lexer can find")
    return found


def emit_built(
    terminal: BuiltTerminal,
    budget: Budget,
    emit_split: Callable[[], int],
    fill: Callable[[int, list[tuple[int, int]], bool, bool], None],
) -> tuple[int, dict[int, int]]:
    """Emit the states of a terminal as threads.

    Args:
        emit_split: emits an instruction to be filled, and returns its place.
        fill: gives an instruction its moves (place, bytes as bits), whether the terminal matches there, and whether its budget is used up.
    Returns:
        Where the terminal begins, and for each instruction that has one the instruction after its budget.
    """
    states = built_states(terminal, budget)
    places = [emit_split() for _ in states]
    for at, state in zip(places, states, strict=True):
        fill(at, [(places[to], symbols) for to, symbols in state.moves], state.is_match, state.is_used_up)
    return places[0], {at: places[each.expired] for at, each in zip(places, states, strict=True) if each.expired >= 0}
