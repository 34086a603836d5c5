"""Why a lexer leaves no text of a grammar: the terminal that takes the text of the next, and the remedies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rtlang_grammars.context_free.lark_source import SourceTerminal
from rtlang_grammars.context_free.lexer_build.lexer_automaton import LexerAutomaton
from rtlang_grammars.context_free.lexer_build.parser_tables import ParserTables


class BlockedTerminals:
    """Explains what stopped a search for a text."""

    def __init__(self, terminals: Sequence[SourceTerminal], automaton: LexerAutomaton, rules: ParserTables) -> None:
        """`terminals`: by number."""
        self._terminals, self._automaton, self._rules = terminals, automaton, rules

    def reason(self, blocked: Iterable[tuple[int, int, int]]) -> tuple[str, str | None]:
        """The error and its location.

        Args:
            blocked: parser states, terminals that were not found there, and the classes with which they had to begin, as bits.
        """
        taken: tuple[int, int] | None = None
        shadowed: int | None = None
        for state, number, classes in blocked:
            before = np.flatnonzero((self._rules.shifts == state).any(axis=0)).tolist()
            if before and not classes & self._automaton.firsts[number]:
                taken = taken or (before[0], number)
            elif shadowed is None:
                shadowed = number
        if taken is not None:
            first, then = self._terminals[taken[0]], self._terminals[taken[1]]
            return (
                f"the grammar matches no string: {_named(then)} cannot follow {_named(first)}, whose longest match takes that text too, or "
                f"whose look-ahead asks for another. Exclude from {_named(first)} the characters with which {_named(then)} begins, split "
                "it, or use lexer=anywhere"
            ), first.location or then.location
        if shadowed is not None:
            terminal = self._terminals[shadowed]
            return (
                f"the grammar matches no string: {_named(terminal)} is never found where it is needed, because another terminal matches "
                f"that text or a longer one. Give it a priority ({terminal.name}.1), or use lexer=anywhere"
            ), terminal.location
        return "the grammar matches no string: the look-ahead of its last terminal asks for more text", None


def _named(terminal: SourceTerminal) -> str:
    return terminal.name if terminal.text is None else f'"{terminal.text}"'
