"""Divides complete texts into terminals by the rules of the lexer, in plain Python: for parse trees, and to check masks against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from rtlang_grammars.context_free.lexing.lark_source import Source
from rtlang_grammars.context_free.lexing.lexer_automaton import LexerAutomaton, in_order
from rtlang_grammars.context_free.lexing.parser_tables import ParserTables
from rtlang_grammars.context_free.lexing.terminal_threads import END
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MAX_BACK = 16
"""See `machine.lexing.layout`."""

_Stack: TypeAlias = tuple[int, "_Stack | None"]
"""The parser's state, and the stack below."""


class Lexeme(NamedTuple):
    """A terminal in a text.

    Attributes:
        name: of the terminal.
        start, end: its bytes in the text's UTF-8.
    """

    name: str
    start: int
    end: int


class Tokenizer:
    """The lexer and parser of one grammar. Used by one thread at a time."""

    def __init__(self, source: Source, budget: Budget, *, is_lark: bool) -> None:
        """Compile a grammar.

        Raises:
            GrammarError: it cannot be held or made within the limits.
        """
        terminals = in_order(source.terminals, is_lark=is_lark)
        self._names = [each.name for each in terminals]
        self._rules = ParserTables(source.rules, source.start, self._names, budget)
        self._automaton = LexerAutomaton(terminals, budget, is_lark=is_lark)
        self._ignored = frozenset(i for i, each in enumerate(self._names) if each in source.ignored)
        self._starts: dict[frozenset[int], int] = {}

    @property
    def has_conflicts(self) -> bool:
        """Whether the parser follows several actions at some place."""
        return self._rules.num_conflicts > 0

    def lexemes(self, text: bytes) -> list[Lexeme]:
        """The terminals of a complete text, without ignored ones.

        Raises:
            GrammarError: the text does not belong to the grammar; says where it fails.
        """
        automaton, found = self._automaton, []
        stacks: frozenset[_Stack] = frozenset([(self._rules.start, None)])
        begin = 0
        while begin < len(text):
            state = self._start(stacks)
            at, last, end = begin, -1, begin
            while True:
                symbol = automaton.classes[text[at] if at < len(text) else END]
                winner, ended = int(automaton.winners[state, symbol]), at - int(automaton.num_behind[state, symbol])
                if winner >= 0 and (last < 0 or ended > end or (ended == end and winner < last)):
                    last, end = winner, ended
                state = int(automaton.following[state, symbol])
                if state < 0:
                    break
                at += 1
                if at - end > MAX_BACK:
                    last = -1
            after = stacks if last in self._ignored else self._shifted(stacks, last) if last >= 0 else frozenset()
            if not after:
                raise GrammarError(f"no terminal that is allowed here matches at byte {begin} of the text")
            if last not in self._ignored:
                found.append(Lexeme(self._names[last], begin, end))
            stacks, begin = after, end
        if not self._shifted(stacks, len(self._names)):
            raise GrammarError("the text is incomplete")
        return found

    def _start(self, stacks: Iterable[_Stack]) -> int:
        terminals = self._ignored.union(*(self._rules.rows[stack[0]] for stack in stacks))
        if terminals not in self._starts:
            self._starts[terminals] = self._automaton.start(terminals)
        return self._starts[terminals]

    def _shifted(self, stacks: Iterable[_Stack], terminal: int) -> frozenset[_Stack]:
        """The stacks after a terminal; for the end of the text, those that are complete."""
        rules = self._rules
        found: set[_Stack] = set()
        todo, seen = list(stacks), set(stacks)
        while todo:
            stack = todo.pop()
            state = stack[0]
            if terminal == rules.num_terminals and state == rules.final:
                found.add(stack)
            to = int(rules.shifts[state, terminal])
            if to >= 0:
                found.add((to, stack))
            at, count = rules.reductions[state, terminal].tolist()
            for rule in rules.rules[at : at + count].tolist():
                under: _Stack | None = stack
                for _ in range(int(rules.sizes[rule])):
                    assert under is not None
                    under = under[1]
                assert under is not None
                goto = int(rules.gotos[under[0], rules.heads[rule]])
                if goto >= 0 and (goto, under) not in seen:
                    seen.add((goto, under))
                    todo.append((goto, under))
        return frozenset(found)
