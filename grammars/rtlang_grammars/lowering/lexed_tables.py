"""What a grammar with a lexer compiles to, without a vocabulary: the lexer's automaton, the parser's tables, and contexts that join them.

A context is the set of terminals that lark's contextual lexer looks for: its parser state's and the ignored ones. Where several
stacks are alive their contexts join; such contexts are made when a text first needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.lark_source import LarkSource, SourceTerminal, read_source
from rtlang_grammars.context_free.lexer_build.anywhere_automaton import AnywhereAutomaton
from rtlang_grammars.context_free.lexer_build.blocked_terminals import BlockedTerminals
from rtlang_grammars.context_free.lexer_build.bracket_depths import check_brackets
from rtlang_grammars.context_free.lexer_build.free_sequences import FreeSequences, covers, doomed_terminals
from rtlang_grammars.context_free.lexer_build.indentation import NUM_COLUMNS, numbered
from rtlang_grammars.context_free.lexer_build.inherited_temperatures import with_temperatures
from rtlang_grammars.context_free.lexer_build.lexer_automaton import LexerAutomaton, in_order
from rtlang_grammars.context_free.lexer_build.optional_terminals import with_optional_terminals
from rtlang_grammars.context_free.lexer_build.parser_tables import ParserTables
from rtlang_grammars.context_free.lexer_build.token_terminals import with_disjoint_tokens
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.lowering.lexer_loops import LexerLoops
from rtlang_grammars.lowering.report_tables import reports_of
from rtlang_grammars.lowering.schema_rules import SchemaRules
from rtlang_grammars.machine.lexed.ways_on import NO_WATCHES, Kind, TooLargeError, WaysOn
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    ANYWHERE,
    HOME,
    IS_FREE,
    IS_SURE,
    KEEP,
    LEFTMOST,
    LONGEST,
    MANY,
    NO_NEWLINE,
    STEP_BITS,
    WIN,
    WINNER_BITS,
    Ints,
    LexerArrays,
    ParserArrays,
)
from rtlang_grammars.spec.constraint import Indentation
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import SpecialTokens

_MAX_CONTEXTS = 4096


class LexedTables:
    """The tables of one grammar. They grow as texts are followed; the owner must serialize access.

    Attributes:
        names: of the terminals, by number.
        source: the grammar as lark reads it.
        automaton, rules, ignored, token_sets, parser, lexer, reports, joined, on_join: see `machine.lexer_run.lexer_tables.BoundTables`.
    """

    def __init__(
        self,
        source: str,
        budget: Budget,
        *,
        is_lark: bool = False,
        start: str = "start",
        tokens: SpecialTokens | None = None,
        indentation: Indentation | None = None,
    ) -> None:
        """Compile a Lark grammar.

        Args:
            tokens: of the vocabulary; None: every token is taken for known.
        Raises:
            GrammarError: it cannot be read, held or made within the limits.
        """
        read = read_source(
            source, start=start, budget=budget, tokens=tokens, indentation=indentation, schemas=SchemaRules(budget)
        )
        if not is_lark:
            read = with_optional_terminals(read, budget)
        found = with_disjoint_tokens(read)
        terminals = in_order(found.terminals, is_lark=is_lark)
        self.token_sets = {each.tokens for each in terminals if each.tokens is not None}
        self.names, self.columns = numbered(terminals, found)
        self.source = found
        rules, first, origins = with_temperatures(found.rules, start, found.options, budget)
        self._written = rules, first
        parser = ParserTables(rules, first, self.names, budget)
        if self.columns is not None:
            check_brackets(parser, self.columns, self.names)
        self.reports = reports_of(
            parser.head_names,
            origins,
            found.options,
            _built_by_rule(found),
            has_budgets=any(each.built is not None and each.built.max_tokens is not None for each in found.terminals),
        )
        if found.indentation is not None and self.reports.captures:
            raise GrammarError("Lark grammar: capture is not supported together with indentation")
        self.ignored = frozenset(i for i, name in enumerate(self.names) if name in found.ignored)
        automaton = LexerAutomaton(terminals, budget, is_lark=is_lark, ignored=self.ignored, columns=self.columns)
        inner = {each.name for each in found.terminals if each.built is not None and each.built.is_inner}
        no_skip = frozenset(i for i, name in enumerate(self.names) if name in inner)
        order = LEFTMOST if is_lark else LONGEST
        self._join_up(parser, automaton, order, budget, no_skip, skips_at_start=found.skips_at_start)
        self._check_start(automaton, terminals)

    def _join_up(
        self,
        rules: ParserTables,
        automaton: LexerAutomaton | AnywhereAutomaton,
        order: int,
        budget: Budget,
        no_skip: frozenset[int] = frozenset(),
        *,
        skips_at_start: bool = True,
    ) -> None:
        """Set all attributes but `names`, `token_sets`, `ignored`, `columns`, `reports` and `source`, which are there.

        Args:
            order: see `LexerArrays.order`.
            no_skip: terminals before which nothing is ignored.
            skips_at_start: whether something may be ignored at the start of the text.
        """
        self.rules, self.automaton = rules, automaton
        self._declared = frozenset(() if self.columns is None else (self.columns.indent, self.columns.dedent))
        self.joined: list[tuple[int, int]] = []
        self.on_join: Callable[[], None] | None = None
        self._refused: dict[frozenset[int], GrammarError] = {}
        self._order = np.array([order], dtype=np.int32)
        self._budget = budget
        self._numbers: dict[frozenset[int], int] = {}
        self._members: list[frozenset[int]] = []
        self._joins = np.full((8, 8), -1, dtype=np.int32)
        self._starts: list[int] = []
        self._wins: dict[tuple[frozenset[int], int], int] = {}
        self._doubtful: set[int] = set()
        self._pairs: dict[tuple[int, int, bool], int] = {}
        self._pair_terminals: list[int] = []
        self._enders: dict[int, int] = {}
        self._win_of: list[int] = []
        self._win_pairs: list[int] = []
        self._win_sizes: list[int] = []
        self._ignorable = 0  # the classes with which ignored terminals begin, as bits
        for terminal in self.ignored:
            self._ignorable |= self.automaton.firsts[terminal]
        self._loops = LexerLoops()
        everywhere = self.ignored | (frozenset() if self.columns is None else {self.columns.newline})
        numbers = self._contexts(
            [
                row - self._declared | (everywhere if not row or row - no_skip else frozenset())
                for row in self.rules.rows
            ]
        )
        self._everything = -1
        self._free: FreeSequences | None = None
        if isinstance(automaton, LexerAutomaton):
            starts = [self._starts[number] for number in numbers]
            self._free = self._free_sequences(automaton, starts, is_lark=order == LEFTMOST)
        contexts = np.array(numbers, dtype=np.int32)[self.rules.contexts]
        if not skips_at_start:  # the parser never comes back to its first state
            row = self.rules.rows[int(self.rules.contexts[0])] - self._declared
            contexts[0] = self._contexts([row])[0]
        self.parser = self._parser(contexts)
        self.lexer = self._lexer()

    @property
    def num_terminals(self) -> int:
        """Number of terminals."""
        return len(self.names)

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
            (joined,) = self._contexts([members])
        except GrammarError as error:
            self._refused[members] = error
            raise
        if len(self._members) > len(self._joins):
            grown = np.full((2 * len(self._joins),) * 2, -1, dtype=np.int32)
            grown[: len(self._joins), : len(self._joins)] = self._joins
            self._joins = grown
        self._joins[one, other] = self._joins[other, one] = joined
        self.parser = self.parser._replace(joins=self._joins, starts=np.array(self._starts, dtype=np.int32))
        if len(self._win_of) < len(self.automaton.wins):
            self.lexer = self._lexer()
        self.joined.append((one, other))
        if self.on_join is not None:
            self.on_join()

    def _contexts(self, sets: list[frozenset[int]]) -> list[int]:
        """The numbers of contexts; makes those that are new."""
        new = [each for each in dict.fromkeys(sets) if each not in self._numbers]
        if len(self._members) + len(new) > _MAX_CONTEXTS:
            raise GrammarError(f"too ambiguous: more than {_MAX_CONTEXTS} different sets of terminals may be expected")
        self._starts += self.automaton.starts(new)
        for each in new:
            self._numbers[each] = len(self._members)
            self._members.append(each)
        return [self._numbers[each] for each in sets]

    def _parser(self, contexts: Ints) -> ParserArrays:
        tables = self.rules
        while len(self._joins) < len(self._members):
            self._joins = np.full((2 * len(self._joins),) * 2, -1, dtype=np.int32)
        is_ignored = np.zeros(self.num_terminals + 1, dtype=np.uint8)
        is_ignored[sorted(self.ignored)] = 1
        rows = [tables.rows[number] for number in tables.contexts.tolist()]
        row_at = np.zeros(tables.num_states + 1, dtype=np.int32)
        np.cumsum([len(row) for row in rows], out=row_at[1:])
        row_terminals = [terminal for row in rows for terminal in sorted(row)]
        return ParserArrays(
            *_actions(tables),
            np.stack([tables.sizes, tables.heads], axis=1),
            tables.gotos,
            row_at,
            np.array(row_terminals or [0], dtype=np.int32),
            is_ignored,
            contexts,
            self._joins,
            np.array(self._starts, dtype=np.int32),
            np.array([tables.start, tables.final, self._everything], dtype=np.int32),
            self._line_columns(),
        )

    def _pair(self, terminal: int, classes: int, sure: int) -> int:
        """The number of a terminal that ends before classes, and surely before some of them."""
        is_free = self._order[0] == ANYWHERE or (self._free is not None and self._free.is_free(terminal, sure))
        if self.columns is not None:  # nothing better is known there
            is_free |= bool(classes & self._ignorable) or classes == (1 << self.automaton.num_classes) - 1
        key = terminal, self._enders.setdefault(classes, len(self._enders)), is_free
        found = self._pairs.setdefault(key, len(self._pairs))
        if found == len(self._pair_terminals):
            self._pair_terminals.append(terminal)
        if not is_free and self.columns is None:  # `ways_on` knows no columns
            self._doubtful.add(found)
        return found

    def _free_sequences(self, automaton: LexerAutomaton, starts: list[int], *, is_lark: bool) -> FreeSequences | None:
        """The proof that the lexer leaves the parser a way on; None where there is none."""
        if self.rules.num_conflicts:
            if is_lark and automaton.renames:  # by an expression that a smaller context has not
                return None
            automaton.budget = self._budget.renewed()
            try:
                (number,) = self._contexts([self.ignored.union(*self._members)])
            except GrammarError:  # it is needed for the proof only
                self._budget.check()
                return None
            self._everything = self._starts[number]
        doomed = doomed_terminals(automaton, self.rules, self.ignored) if self.columns is None else frozenset()
        if doomed:
            names = {self.names[each] for each in doomed}
            rules, start = self._written
            left = [rule for rule in rules if names.isdisjoint(symbol.name for symbol in rule.expansion)]
            try:
                if start not in {rule.origin.name for rule in left} or not covers(
                    ParserTables(left, start, self.names, self._budget.renewed()), self.rules, doomed
                ):
                    doomed = frozenset()
            except GrammarError:  # these rules match nothing
                self._budget.check()
                doomed = frozenset()
        return FreeSequences(
            automaton, self.rules, starts, self.ignored, self.columns, everything=self._everything, doomed=doomed
        )

    def _check_start(self, automaton: LexerAutomaton, terminals: Sequence[SourceTerminal]) -> None:
        """Refuse a grammar of which the lexer leaves no text."""
        start = int(self.parser.starts[self.parser.contexts[self.rules.start]])
        pairs = self.lexer.win_pairs[slice(*np.cumsum(self.lexer.wins[self.lexer.states[start, WIN], :2]))]
        if self.columns is not None or self.lexer.pairs[pairs, IS_FREE].all():
            return
        few, exact = WaysOn(self, Kind.FEW), WaysOn(self, Kind.MANY if self.rules.num_conflicts else Kind.EXACT)
        lead = start, start, (1 << self.automaton.num_classes) - 1, NO_WATCHES
        try:
            for ways_on in (few, exact):
                if ways_on.can_end(self.rules.start, [], lead, lambda node: (self.rules.start, [])):
                    return
        except TooLargeError:
            return
        blocked = BlockedTerminals(terminals, automaton, self.rules)
        raise GrammarError(*blocked.reason(few.blocked))

    def _line_columns(self) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """See `machine.lexer_run.lexer_layout.ParserArrays`."""
        if self.columns is None:
            return np.full(1, -1, dtype=np.int32)
        brackets = [self.columns.brackets.get(number, 0) for number in range(self.num_terminals + 1)]
        return np.array(
            [self.columns.newline, NUM_COLUMNS, self.columns.indent, self.columns.dedent, *brackets], dtype=np.int32
        )

    def _lexer(self) -> LexerArrays:
        """Arrays of the automaton as it is now; numbers given before stay."""
        automaton, num_classes = self.automaton, self.automaton.num_classes
        for state in range(len(self._win_of), len(automaton.wins)):
            found = frozenset(self._pair(*each) for each in automaton.wins[state])
            key = found, -1 if self._doubtful.isdisjoint(found) else state
            if key not in self._wins:
                self._wins[key] = len(self._wins)
                self._win_pairs += sorted(
                    found, key=self._pair_terminals.__getitem__
                )  # newlines, which take longest, last
                self._win_sizes.append(len(found))
            self._win_of.append(self._wins[key])
        sizes = np.array(self._win_sizes, dtype=np.int32)
        states = np.zeros((len(automaton.wins), 4), dtype=np.int32)
        states[:, WIN], states[:, IS_SURE] = self._win_of, automaton.is_sure
        self._loops.extend(automaton)
        states[:, HOME] = self._loops.homes
        for state, pending in enumerate(automaton.pending):
            if pending:
                states[state, KEEP] = max(num_bytes for _, num_bytes in pending)
        steps = (automaton.num_behind.astype(np.int64) << WINNER_BITS | automaton.winners + 1) << STEP_BITS
        return LexerArrays(
            automaton.classes,
            steps | automaton.following + 1,
            states,
            self._loops.exits,
            np.stack(
                [np.cumsum(sizes, dtype=np.int32) - sizes, sizes, [state for _, state in self._wins]], axis=1
            ).astype(np.int32),
            np.array(self._win_pairs or [0], dtype=np.int32),
            np.array(list(self._pairs) or [(0, 0, False)], dtype=np.int32),
            _rows(self._enders, num_classes),
            _rows(automaton.firsts, num_classes),
            self._order,
            _rows(automaton.column_sets, NUM_COLUMNS + 1),
            np.array([NO_NEWLINE if self.columns is None else self.columns.newline], dtype=np.int32),
            np.array(automaton.lists or [0], dtype=np.int32),
        )


def _built_by_rule(source: LarkSource) -> dict[str, BuiltTerminal]:
    """The terminals of rules with options by the names of these."""
    built = {each.name: each.built for each in source.terminals if each.built is not None}
    found: dict[str, BuiltTerminal] = {}
    for rule in source.rules:
        name = rule.expansion[0].name.removesuffix("?") if rule.expansion else ""
        if rule.origin.name in source.options and name in built:
            found[rule.origin.name] = built[name]
    return found


def _actions(tables: ParserTables) -> tuple[Ints, Ints]:
    """See `lexer_layout.ParserArrays.actions` and `.lists`."""
    counts = tables.reductions[:, :, 1]
    is_shift = tables.shifts >= 0
    rules = tables.rules[np.minimum(tables.reductions[:, :, 0], len(tables.rules) - 1)]
    actions = np.where(is_shift, tables.shifts + 1, np.where(counts > 0, -1 - rules, 0)).astype(np.int32)
    lists: list[int] = []
    for state, terminal in zip(*np.nonzero(counts + is_shift > 1), strict=True):
        at, count = tables.reductions[state, terminal].tolist()
        found = [int(actions[state, terminal])] if is_shift[state, terminal] else []
        found += [-1 - rule for rule in tables.rules[at : at + count].tolist()]
        actions[state, terminal] = MANY + len(lists)
        lists += [len(found), *found]
    actions[tables.final, -1] = 1  # the final state has no other action before the end of the text
    return actions, np.array(lists or [0], dtype=np.int32)


def _rows(sets: Collection[int], num_classes: int) -> NDArray[np.uint8]:
    """Sets of classes as rows of 0 and 1, and a last row of 0."""
    width = (num_classes + 7) // 8
    data = b"".join(each.to_bytes(width, "little") for each in sets) + bytes(width)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8).reshape(-1, width), axis=1, bitorder="little")
    return np.ascontiguousarray(bits[:, :num_classes])
