"""Captures in a text whose terminals may end wherever they match: the text is read once more, with all readings in order of preference.

A terminal that goes on comes before one that ends, so that of several readings the one counts whose terminals are longest, the first
before the second; of several parses of these, the one that takes the first alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.lexed.rule_reports import MAX_STACKS, CaptureParser, Lexeme, winning


class _Thread(NamedTuple):
    """A reading: the state of the lexer, the tokens of its lexeme, the stack before the lexeme, and where the lexeme begins."""

    state: int
    num_tokens: int
    top: int
    start: int


class AnywhereCaptures:
    """Finds the captures of texts."""

    def __init__(self, grammar: LexedGrammar) -> None:
        self._tables, self._endings = grammar.tables, grammar.places.endings

    def find(self, tokens: Sequence[bytes]) -> dict[str, list[bytes]]:
        """The texts of the rules with `capture`, by name, in the order in which they ended.

        Where the text may not end yet, rules of the preferred reading count that have ended whichever terminal is in progress.

        Args:
            tokens: the text; budgets count them.
        """
        text = b"".join(tokens)
        parser = CaptureParser(self._tables, self._tables.reports, text)
        threads, at = [_Thread(self._begin(parser, 0), 0, 0, 0)], 0
        for token in tokens:
            for byte in token:
                threads = _distinct(parser, self._stepped(parser, threads, byte, at))
                at += 1
            threads = [self._counted(each) for each in threads]
        finished = next(self._finished(parser, threads, at), None)
        if finished is not None:
            return parser.captures(finished)
        found = [parser.captures(top) for top in self._goes_on(parser, threads[0], at)]
        return found[0] if found and all(each == found[0] for each in found) else parser.captures(threads[0].top)

    def _goes_on(self, parser: CaptureParser, thread: _Thread, end: int) -> Iterator[int]:
        """The stacks after each of the terminals that may be in progress."""
        for terminal in sorted(set(winning(self._tables, thread.state))):
            yield from parser.shifted([thread.top], Lexeme(terminal, thread.start, end))

    def _begin(self, parser: CaptureParser, top: int) -> int:
        """The state of the lexer before the lexeme after a stack."""
        arrays = self._tables.parser
        return int(arrays.starts[arrays.contexts[parser.state(top)]])

    def _stepped(self, parser: CaptureParser, threads: Iterable[_Thread], byte: int, at: int) -> Iterator[_Thread]:
        automaton = self._tables.automaton
        column = self._tables.lexer.classes[byte]
        for state, num_tokens, top, start in threads:
            following = int(automaton.following[state, column])
            if following >= 0:
                yield _Thread(following, num_tokens if automaton.expiries[following][0] else 0, top, start)
            for terminal in self._endings(int(automaton.winners[state, column])):
                for after in parser.shifted([top], Lexeme(terminal, start, at)):
                    following = int(automaton.following[self._begin(parser, after), column])
                    if following >= 0:
                        yield _Thread(following, 0, after, at)

    def _counted(self, thread: _Thread) -> _Thread:
        """See `LexedGrammar.counted`."""
        state, num_tokens = thread.state, thread.num_tokens + 1
        budget, expired = self._tables.automaton.expiries[state]
        while budget and num_tokens >= budget:
            state = expired
            budget, expired = self._tables.automaton.expiries[state]
        return thread._replace(state=state, num_tokens=num_tokens if budget else 0)

    def _finished(self, parser: CaptureParser, threads: Iterable[_Thread], end: int) -> Iterator[int]:
        """The stacks after the end of the text."""
        automaton = self._tables.automaton
        if not end:
            yield from parser.finished([0])
            return
        for state, _, top, start in threads:
            for terminal in self._endings(int(automaton.winners[state, automaton.end_class])):
                yield from parser.finished(parser.shifted([top], Lexeme(terminal, start, end)))


def _distinct(parser: CaptureParser, threads: Iterable[_Thread]) -> list[_Thread]:
    """The first of threads with the same future, at most MAX_STACKS."""
    found: dict[tuple[int, int, tuple[int, int]], _Thread] = {}
    for each in threads:
        found.setdefault((each.state, each.num_tokens, parser.place(each.top)), each)
        if len(found) == MAX_STACKS:
            break
    return list(found.values())
