"""What a grammar with a lexer is compiled to, as this package needs it; made by `lowering.lexed_tables`."""

from __future__ import annotations

from typing import Protocol

from rtlang_grammars.machine.lexer_run.lexer_layout import Ints, LexerArrays, ParserArrays
from rtlang_grammars.spec.tokens import Ranges


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
    """

    parser: ParserArrays
    lexer: LexerArrays
    ignored: frozenset[int]
    token_sets: set[Ranges]

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
