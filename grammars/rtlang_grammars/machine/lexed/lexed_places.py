"""Places in a text of a grammar with a lexer, and steps between them: the lexer's automaton over bytes, the parser over its terminals.

A place is a set of parser stacks, the state of the lexer inside a lexeme, and the last match with the bytes after it, to which the lexer
goes back where a longer lexeme fails.
"""

from __future__ import annotations

from typing import NamedTuple

from rtlang_grammars.machine.lexer_run import lexeme_rules, viability
from rtlang_grammars.machine.lexer_run.lexer_layout import IS_SURE, KEEP, OK, WIN
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables
from rtlang_grammars.machine.lexer_run.stack_sets import StackSets
from rtlang_grammars.machine.lexer_run.workspace import new_visit

_END = 256

_read_symbol = lexeme_rules.read_symbol


class Configuration(NamedTuple):
    """A place in a text, without facts that follow from it.

    Attributes:
        stacks: number of a set of parser stacks, after all lexemes that have surely ended.
        state: state of the lexer.
        last: the last match inside the present lexeme, -1.
        last_at: where it ended in `tail`.
        tail: the last bytes, as many as may have to be read again.
        num_tokens: tokens with bytes of the present lexeme, as long as a budget of tokens counts them.
    """

    stacks: int
    state: int
    last: int
    last_at: int
    tail: bytes
    num_tokens: int = 0


class LexedPlaces:
    """Steps between places. Callers hold the grammar's lock.

    Attributes:
        tables: as given.
        stack_sets: the sets of parser stacks that texts have reached.
        visit: scratch of compiled code.
    """

    def __init__(self, tables: BoundTables) -> None:
        self.tables = tables
        self.stack_sets = StackSets(int(tables.parser.final[0]))
        self.visit = new_visit(len(tables.lexer.pairs), tables.num_terminals)
        self._contexts: dict[int, int] = {}
        self._viable: dict[tuple[int, int], int] = {}
        self._may_end: dict[Configuration, bool] = {}

    def shift(self, stacks: int, terminal: int) -> int:
        """The set of stacks after a terminal, -1 where the parser does not take it."""
        if terminal in self.tables.ignored:
            return stacks
        if terminal > self.tables.num_terminals:
            found = {self.shift(stacks, each) for each in self.endings(terminal)} - {-1}
            return self.stack_sets.union(found) if found else -1
        return self.stack_sets.shift(self.tables.parser, stacks, terminal)

    def endings(self, winner: int) -> list[int]:
        """The terminals that end at a place, as the lexer's automaton numbers them; none for -1."""
        at = winner - self.tables.num_terminals - 1
        if at < 0:
            return [winner] if winner >= 0 else []
        lists = self.tables.lexer.lists
        found: list[int] = lists[at + 1 : at + 1 + int(lists[at])].tolist()
        return found

    def can_end(self, stacks: int) -> bool:
        """Whether the text may end after the lexemes so far."""
        return self.shift(stacks, self.tables.num_terminals) >= 0

    def fresh(self, stacks: int) -> Configuration:
        """The place before the lexeme that follows a set of stacks."""
        return Configuration(stacks, self.lexer_state(stacks), -1, 0, b"")

    def run(
        self,
        configuration: Configuration,
        data: bytes,
        *,
        is_final: bool = False,
        ends: list[tuple[int, int]] | None = None,
    ) -> Configuration | None:
        """The place after bytes as the lexer sees them, alive or not; None where no lexeme goes on.

        Args:
            is_final: the text ends after them.
            ends: gets the terminals that end, each with where it ends from the first of the bytes on.
        """
        lexer = self.tables.lexer
        stacks, state, last, last_at, tail, _ = configuration
        text = tail + data
        at = len(tail)
        begin = 0  # bytes before are never read again
        is_fresh = self.tables.automaton.is_start[state]
        while True:
            if at >= len(text):
                if not is_final:
                    break
                if is_fresh:
                    return Configuration(stacks, state, -1, 0, b"")
            symbol = text[at] if at < len(text) else _END
            reached, last, last_at = map(int, _read_symbol(lexer, state, symbol, at, last, last_at))
            if reached >= 0:
                state, is_fresh = reached, False
                at += 1
                continue
            if last < 0:
                return None
            stacks = self.shift(stacks, last)
            if stacks < 0:
                return None
            if ends is not None:
                ends.append((last, last_at - len(tail)))
            state, last, at = self.lexer_state(stacks), -1, last_at
            begin, is_fresh = at, True
            lexer = self.tables.lexer
        keep = int(lexer.states[state, KEEP])
        if last >= 0 and lexer.states[state, IS_SURE]:
            last = -1
        cut = max(begin, min(len(text) - keep, last_at if last >= 0 else len(text)))
        return Configuration(stacks, state, last, last_at - cut if last >= 0 else 0, text[cut:])

    def is_complete(self, configuration: Configuration) -> bool:
        """Whether the text may end there."""
        if configuration.num_tokens:
            configuration = configuration._replace(num_tokens=0)
        found = self._may_end.get(configuration)
        if found is None:
            reached = self.run(configuration, b"", is_final=True)
            found = reached is not None and self.can_end(reached.stacks)
            if len(self._may_end) > 1 << 16:
                self._may_end.clear()
            self._may_end[configuration] = found
        return found

    def can_win(self, stacks: int, state: int) -> int:
        """See `viability.can_win`."""
        self.fit_verdicts()
        win = int(self.tables.lexer.states[state, WIN])
        found = self._viable.get((stacks, win))
        if found is None:
            first, size = self.stack_sets.span(stacks)
            tables = self.tables
            while (
                viability.is_viable(tables.parser, tables.lexer, self.stack_sets.stack, first, size, win, self.visit)
                != OK
            ):
                self.stack_sets.make_room()
            found = self._viable[stacks, win] = int(self.visit.out[0])
        return found

    def lexer_state(self, stacks: int) -> int:
        """The lexer's state before the lexeme that follows a set of stacks."""
        context = self._contexts.get(stacks)
        if context is None:
            contexts = sorted(
                {
                    int(self.tables.parser.contexts[self.stack_sets.node(node)[0]])
                    for node in self.stack_sets.tops(stacks)
                }
            )
            context = contexts[0]
            for other in contexts[1:]:
                if context != other:
                    if self.tables.parser.joins[context, other] < 0:
                        self.tables.join(context, other)
                    context = int(self.tables.parser.joins[context, other])
            self._contexts[stacks] = context
        return int(self.tables.parser.starts[context])

    def fit_verdicts(self) -> None:
        """Room for all pairs and sets of terminals: copies of this grammar add to the same tables."""
        if len(self.tables.lexer.pairs) > len(self.visit.verdicts):
            self.visit = new_visit(2 * len(self.tables.lexer.pairs), self.tables.num_terminals)
