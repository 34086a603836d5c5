"""What a grammar with a lexer compiles to, without a vocabulary: the lexer's automaton, the parser's tables, and contexts that join them.

A context is the set of terminals that lark's contextual lexer looks for: those of the parser's state and the ignored ones. Where several
stacks are alive their contexts join; such contexts are made when a text first needs them.
"""

from __future__ import annotations

import numpy as np

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexing.lexer_automaton import LexerAutomaton, in_order
from rtlang_grammars.context_free.lexing.parser_tables import ParserTables
from rtlang_grammars.machine.lexing.completion import LexedCompletion
from rtlang_grammars.machine.lexing.grammar import LexedGrammar
from rtlang_grammars.machine.lexing.layout import Lexer, Parser
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import Constraint
from rtlang_grammars.spec.constraint import Lexer as Lexing
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import SpecialTokens

_MAX_CONTEXTS = 4096


class LexedTables:
    """The tables of one grammar. They grow as texts are followed; the owner must serialize access.

    Attributes:
        terminals: by number.
        source: the grammar as lark reads it.
        automaton, rules, ignored, token_sets, parser, lexer: see `machine.lexing.tables.LexedTables`.
    """

    def __init__(
        self,
        source: str,
        budget: Budget,
        *,
        is_lark: bool = False,
        start: str = "start",
        tokens: SpecialTokens | None = None,
    ) -> None:
        """Compile a Lark grammar.

        Args:
            tokens: of the vocabulary; None: every token is taken for known.
        Raises:
            GrammarError: it cannot be read, held or made within the limits.
        """
        found = read_source(source, start=start, budget=budget, tokens=tokens)
        self.source, self.terminals = found, in_order(found.terminals, is_lark=is_lark)
        self.token_sets = {each.tokens for each in self.terminals if each.tokens is not None}
        self.rules = ParserTables(found.rules, start, [each.name for each in self.terminals], budget)
        self.ignored = frozenset(i for i, each in enumerate(self.terminals) if each.name in found.ignored)
        self.automaton = LexerAutomaton(self.terminals, budget, is_lark=is_lark, ignored=self.ignored)
        self._refused: dict[frozenset[int], GrammarError] = {}
        self._order = np.array([is_lark], dtype=np.int32)
        self._budget = budget
        self._numbers: dict[frozenset[int], int] = {}
        self._members: list[frozenset[int]] = []
        self._joins = np.full((8, 8), -1, dtype=np.int32)
        self._starts: list[int] = []
        self._wins: dict[frozenset[tuple[int, int]], int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._enders: dict[int, int] = {}
        self._win_of: list[int] = []
        contexts = [self._context(row | self.ignored) for row in self.rules.rows]
        self.parser = self._parser(contexts)
        self.lexer = self._lexer()

    @property
    def num_terminals(self) -> int:
        """Number of terminals."""
        return len(self.terminals)

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for group in (self.parser, self.lexer) for array in group)

    @property
    def num_states(self) -> int:
        """States of the lexer and of the parser."""
        return len(self.automaton.wins) + self.rules.num_states

    @property
    def num_rows(self) -> int:
        """States of the lexer."""
        return len(self.automaton.wins)

    def join(self, one: int, other: int) -> None:
        """Make the context of two together.

        Raises:
            GrammarError: there are too many.
        """
        members = self._members[one] | self._members[other]
        if members in self._refused:
            raise self._refused[members]
        self.automaton.budget = self._budget.renewed()
        try:
            joined = self._context(members)
        except GrammarError as error:
            self._refused[members] = error
            raise
        if len(self._members) > len(self._joins):
            grown = np.full((2 * len(self._joins),) * 2, -1, dtype=np.int32)
            grown[: len(self._joins), : len(self._joins)] = self._joins
            self._joins = grown
        self._joins[one, other] = self._joins[other, one] = joined
        self.parser = self.parser._replace(joins=self._joins, starts=np.array(self._starts, dtype=np.int32))
        self.lexer = self._lexer()

    def _context(self, terminals: frozenset[int]) -> int:
        found = self._numbers.get(terminals)
        if found is None:
            if len(self._members) >= _MAX_CONTEXTS:
                raise GrammarError(
                    f"too ambiguous: more than {_MAX_CONTEXTS} different sets of terminals may be expected"
                )
            start = self.automaton.start(terminals)
            found = self._numbers[terminals] = len(self._members)
            self._members.append(terminals)
            self._starts.append(start)
        return found

    def _parser(self, contexts: list[int]) -> Parser:
        tables = self.rules
        while len(self._joins) < len(self._members):
            self._joins = np.full((2 * len(self._joins),) * 2, -1, dtype=np.int32)
        is_ignored = np.zeros(len(self.terminals) + 1, dtype=np.uint8)
        is_ignored[sorted(self.ignored)] = 1
        row_at = np.zeros(tables.num_states + 1, dtype=np.int32)
        np.cumsum([len(row) for row in tables.rows], out=row_at[1:])
        row_terminals = [terminal for row in tables.rows for terminal in sorted(row)]
        return Parser(
            tables.shifts,
            tables.reductions,
            tables.rules,
            tables.sizes,
            tables.heads,
            tables.gotos,
            row_at,
            np.array(row_terminals or [0], dtype=np.int32),
            is_ignored,
            np.array(contexts, dtype=np.int32),
            self._joins,
            np.array(self._starts, dtype=np.int32),
            np.array([tables.start, tables.final], dtype=np.int32),
        )

    def _lexer(self) -> Lexer:
        """Arrays of the automaton as it is now; numbers given before stay."""
        automaton, num_classes = self.automaton, self.automaton.num_classes
        firsts = np.zeros((len(self.terminals) + 1, num_classes), dtype=np.uint8)
        for terminal, classes in enumerate(automaton.firsts):
            firsts[terminal] = _bits(classes, num_classes)
        for win in automaton.wins[len(self._win_of) :]:
            if win not in self._wins:
                for terminal, classes in sorted(win):
                    self._enders.setdefault(classes, len(self._enders))
                    self._pairs.setdefault((terminal, self._enders[classes]), len(self._pairs))
                self._wins[win] = len(self._wins)
            self._win_of.append(self._wins[win])
        ignorable = 0
        for terminal in self.ignored:
            ignorable |= automaton.firsts[terminal]
        enders = np.zeros((len(self._enders) + 1, num_classes + 1), dtype=np.uint8)
        for classes, number in self._enders.items():
            enders[number, :num_classes] = _bits(classes, num_classes)
            enders[number, num_classes] = bool(classes & ignorable) or classes == (1 << num_classes) - 1
        win_pairs = [
            [self._pairs[terminal, self._enders[classes]] for terminal, classes in sorted(win)] for win in self._wins
        ]
        sizes = np.array([len(each) for each in win_pairs], dtype=np.int32)
        states = np.zeros((len(automaton.wins), 3), dtype=np.int32)
        states[:, 0], states[:, 1], states[:, 2] = (
            self._win_of,
            automaton.is_sure,
            [max((num_bytes for _, num_bytes in each), default=0) for each in automaton.pending],
        )
        return Lexer(
            automaton.classes,
            automaton.following,
            automaton.winners,
            automaton.num_behind,
            states,
            np.stack([np.cumsum(sizes) - sizes, sizes], axis=1).astype(np.int32),
            np.array([pair for each in win_pairs for pair in each] or [0], dtype=np.int32),
            np.array(list(self._pairs) or [(0, 0)], dtype=np.int32),
            enders,
            firsts,
            self._order,
        )


def _bits(classes: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    data = np.frombuffer(classes.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(data, bitorder="little")[:count]


def compile_lexed(
    constraint: Constraint, budget: Budget, index: VocabularyIndex
) -> tuple[LexedGrammar, LexedCompletion]:
    """Compile a Lark grammar with a lexer for a vocabulary.

    Raises:
        GrammarError: it cannot be read, held or made within the limits, or no text begins what it asks for.
    """
    is_lark = constraint.lexer is Lexing.LARK
    tables = LexedTables(constraint.source, budget, is_lark=is_lark, tokens=index.vocabulary.tokens)
    grammar = LexedGrammar(index, tables)
    budget.check()
    return grammar, LexedCompletion(grammar)
