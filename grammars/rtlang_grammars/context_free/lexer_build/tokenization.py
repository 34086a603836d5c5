"""Divides complete texts into terminals by the rules of the lexer, in plain Python: for parse trees, and to check masks against."""

from __future__ import annotations

from typing import NamedTuple

from rtlang_grammars.context_free.lark_source import LarkSource
from rtlang_grammars.context_free.lexer_build.indentation import NUM_COLUMNS, numbered
from rtlang_grammars.context_free.lexer_build.lexer_automaton import LexerAutomaton, in_order
from rtlang_grammars.context_free.lexer_build.parser_tables import ParserTables
from rtlang_grammars.context_free.lexer_build.terminal_programs.instructions import END
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MAX_BACK = 16
"""See `machine.lexer_run.lexer_layout`."""


class _Node:
    """A state on a graph-structured stack."""

    __slots__ = ("below", "state")

    def __init__(self, state: int, below: list[_Node]) -> None:
        self.state, self.below = state, below


class Lexeme(NamedTuple):
    """A terminal in a text.

    Attributes:
        name: of the terminal.
        start, end: its bytes in the text's UTF-8.
    """

    name: str
    start: int
    end: int


class LexemeTokenizer:
    """The lexer and parser of one grammar. Used by one thread at a time."""

    def __init__(self, source: LarkSource, budget: Budget, *, is_lark: bool) -> None:
        """Compile a grammar.

        Raises:
            GrammarError: it cannot be held or made within the limits.
        """
        terminals = in_order(source.terminals, is_lark=is_lark)
        self._names, self._columns = numbered(terminals, source)
        self._rules = ParserTables(source.rules, source.start, self._names, budget)
        self._is_lark = is_lark
        self._ignored = frozenset(i for i, each in enumerate(self._names) if each in source.ignored)
        self._automaton = LexerAutomaton(
            terminals, budget, is_lark=is_lark, ignored=self._ignored, columns=self._columns
        )
        self._starts: dict[frozenset[int], int] = {}

    @property
    def has_conflicts(self) -> bool:
        """Whether the parser follows several actions at some place."""
        return self._rules.num_conflicts > 0

    def lexemes(self, text: bytes) -> list[Lexeme]:
        """The terminals of a complete text, without ignored ones; line breaks inside brackets are among them, indents and dedents are not.

        Raises:
            GrammarError: the text does not belong to the grammar; says where it fails.
        """
        automaton, found = self._automaton, []
        tops = [_Node(self._rules.start, [])]
        indents, depth = [0], 0
        begin = 0
        while begin < len(text):
            state = self._start(tops)
            at, last, end = begin, -1, begin
            while True:
                symbol = automaton.classes[text[at] if at < len(text) else END]
                winner, ended = int(automaton.winners[state, symbol]), at - int(automaton.num_behind[state, symbol])
                if winner >= 0 and (last < 0 or ended > end or (ended == end and winner < last) or self._is_lark):
                    last, end = winner, ended
                state = int(automaton.following[state, symbol])
                if state < 0:
                    break
                at += 1
                if at - end > MAX_BACK:
                    last = -1
            name = self._names[last]
            if last in self._ignored:
                after = tops
            elif self._columns is not None and self._columns.is_newline(last):
                name = self._names[self._columns.newline]
                after = tops if depth else self._next_line(tops, indents, last - self._columns.newline)
            else:
                after = self._shifted(tops, last) if last >= 0 else []
                depth += 0 if self._columns is None else self._columns.brackets.get(last, 0)
            if not after or depth < 0:
                raise GrammarError(f"no terminal that is allowed here matches at byte {begin} of the text")
            if last not in self._ignored:
                found.append(Lexeme(name, begin, end))
            tops, begin = after, end
        for _ in indents[1:]:
            assert self._columns is not None
            tops = self._shifted(tops, self._columns.dedent)
        if not self._shifted(tops, len(self._names)):
            raise GrammarError("the text is incomplete")
        return found

    def _next_line(self, tops: list[_Node], indents: list[int], column: int) -> list[_Node]:
        """The nodes on top after a line break outside brackets; changes the columns of the enclosing lines."""
        assert self._columns is not None
        if column == NUM_COLUMNS:
            return []
        tops = self._shifted(tops, self._columns.newline)
        if column > indents[-1]:
            indents.append(column)
            return self._shifted(tops, self._columns.indent)
        while column < indents[-1]:
            indents.pop()
            tops = self._shifted(tops, self._columns.dedent)
        return tops if column == indents[-1] else []

    def _start(self, tops: list[_Node]) -> int:
        terminals = self._ignored.union(*(self._rules.rows[self._rules.contexts[node.state]] for node in tops))
        if self._columns is not None:
            terminals |= {self._columns.newline}
        if terminals not in self._starts:
            self._starts[terminals] = self._automaton.start(terminals)
        return self._starts[terminals]

    def _shifted(self, tops: list[_Node], terminal: int) -> list[_Node]:
        """The nodes on top after a terminal; for the end of the text, one if it is complete."""
        rules = self._rules
        pairs: dict[tuple[int, int], _Node | None] = {}
        todo: list[tuple[int, _Node | None]] = []

        def add(state: int, below: _Node | None) -> None:
            if (state, id(below)) not in pairs:
                pairs[state, id(below)] = below
                todo.append((state, below))

        for node in tops:
            if not node.below:
                add(node.state, None)
            for each in node.below:
                add(node.state, each)
        while todo:
            state, below = todo.pop()
            if terminal == rules.num_terminals and state == rules.final and below is not None and not below.below:
                return [below]
            at, count = rules.reductions[state, terminal].tolist()
            for rule in rules.rules[at : at + count].tolist():
                ends = [_Node(state, [] if below is None else [below])]
                for _ in range(int(rules.sizes[rule])):
                    ends = list({id(each): each for node in ends for each in node.below}.values())
                for node in ends:
                    goto = int(rules.gotos[node.state, rules.heads[rule]])
                    if goto >= 0:
                        add(goto, node)
        shifting: dict[int, _Node] = {}
        for (state, _), below in pairs.items():
            if rules.shifts[state, terminal] >= 0:
                shifting.setdefault(state, _Node(state, [])).below.extend([] if below is None else [below])
        found: dict[int, _Node] = {}
        for state, node in shifting.items():
            to = int(rules.shifts[state, terminal])
            found.setdefault(to, _Node(to, [])).below.append(node)
        return list(found.values())
