"""What a grammar with a lexer is compiled to, as this package needs it; made by `lowering.lexed_tables`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rtlang_grammars.machine.lexer_run.lexer_layout import Ints, LexerArrays, ParserArrays
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.tokens import Ranges


@dataclass(frozen=True, slots=True)
class Capture:
    """The texts that a rule reports.

    Attributes:
        name: of its texts; None: they are not reported.
        body, marker: the languages of the text before its marker and of the marker; None without a marker.
        marker_name: of the markers; None: they are not reported.
        is_hidden: the marker is not part of captures of enclosing rules.
    """

    name: str | None
    body: Language | None = None
    marker: Language | None = None
    marker_name: str | None = None
    is_hidden: bool = False

    def marker_at(self, text: bytes) -> int:
        """Where the marker begins in a text of the rule; its length if there is none, at the end of a budget."""
        if self.body is None or self.marker is None:
            return len(text)
        for at in range(len(text) + 1):
            if self.marker.accepts(text[at:]) and self.body.accepts(text[:at]):
                return at
        return len(text)


@dataclass(frozen=True, slots=True)
class RuleReports:
    """The options of rules that matchers report or count, by the numbers of the rules' origins.

    Attributes:
        temperatures: of rules.
        captures: of rules.
        has_budgets: whether some rule has a budget of tokens.
    """

    temperatures: Mapping[int, float] = field(default_factory=dict)
    captures: Mapping[int, Capture] = field(default_factory=dict)
    has_budgets: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything to report or to count."""
        return bool(self.temperatures or self.captures or self.has_budgets)


class LexerStates(Protocol):
    """The lexer's automaton; see `context_free.lexer_build.lexer_automaton`."""

    num_classes: int
    end_class: int
    class_sizes: list[int]
    first_bytes: list[bytes]
    following: Ints
    winners: Ints
    num_behind: Ints
    is_start: list[bool]
    pending: list[frozenset[tuple[int, int]]]
    expiries: list[tuple[int, int]]


class Rules(Protocol):
    """The rules that the parser was made from; see `context_free.lexer_build.parser_tables`."""

    gotos: Ints
    heads: Ints
    kernels: Ints
    start_head: int

    @property
    def rule_symbols(self) -> list[tuple[int, ...]]:
        """For each rule its symbols."""


class BoundTables(Protocol):
    """The tables of one grammar. They grow as texts are followed; the owner must serialize access.

    Attributes:
        parser, lexer: arrays for compiled code.
        automaton, rules: what they were made from.
        num_terminals: terminals, numbered from 0; the end of the text has this number.
        ignored: terminals that may stand between all others.
        token_sets: the sets of tokens among the terminals.
        reports: options of rules; such grammars are not stored on disk.
        joined: the contexts that were joined, in order; the numbers of contexts and lexer states follow from it.
        on_join: called after a join.
    """

    parser: ParserArrays
    lexer: LexerArrays
    ignored: frozenset[int]
    token_sets: set[Ranges]
    reports: RuleReports
    joined: list[tuple[int, int]]
    on_join: Callable[[], None] | None

    @property
    def automaton(self) -> LexerStates:
        """The lexer's automaton; another object after a join, or not."""

    @property
    def rules(self) -> Rules:
        """The rules that the parser was made from."""

    @property
    def num_terminals(self) -> int:
        """Number of terminals."""

    @property
    def num_states(self) -> int:
        """States of the lexer and of the parser."""

    @property
    def num_rows(self) -> int:
        """States of the lexer."""

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays."""

    def join(self, one: int, other: int) -> None:
        """Make the context of two contexts together; replaces `parser` and `lexer`.

        Raises:
            GrammarError: there are too many.
        """
