"""Rules of a grammar as automata over symbols: the input of `GrammarTables`, built from a `Cfg`.

Rules that do not call themselves, except at their very ends, are inlined into the rules that use them if the result stays small:
alternatives with a common beginning then need no frames, and a repeat is a loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rtlang_grammars.context_free.cfg import Cfg, RuleCall, Terminal, TokenSymbol, strongly_connected_components
from rtlang_grammars.lowering.languages.token_sets import add_token_set
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import TOKEN_LEAD, Ranges

_MAX_INLINED = 48
_MAX_INLINED_ONCE = 1000
_MAX_INLINED_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """A symbol whose states are already in the tables and whose end does not depend on what follows.

    Attributes:
        start: the state to call.
        first: the first bytes of its texts, none of which is empty.
    """

    start: int
    first: bytes

    @classmethod
    def of_tokens(cls, tables: Tables, tokens: Ranges) -> Frame:
        """One of some tokens; adds its states."""
        return cls(add_token_set(tables, tokens), bytes([TOKEN_LEAD]))


@dataclass(slots=True)
class NumberedRule:
    """A nondeterministic automaton over symbols; position 0 is the start, position 1 the end.

    Attributes:
        name: for messages.
        moves: for each position, symbols with their next positions. A symbol is a terminal (its number) or a rule (-1 - its number).
        empty: for each position, the next positions that need no symbol.
    """

    name: str
    moves: list[list[tuple[int, int]]] = field(default_factory=lambda: [[], []])
    empty: list[list[int]] = field(default_factory=lambda: [[], []])

    def position(self) -> int:
        """Add a position."""
        self.moves.append([])
        self.empty.append([])
        return len(self.moves) - 1


@dataclass(slots=True)
class NumberedRules:
    """Rules and terminals by number.

    Attributes:
        rules: see `NumberedRule`.
        terminals: languages without the empty text, and frames.
        start: number of the start rule.
    """

    rules: list[NumberedRule] = field(default_factory=list)
    terminals: list[Language | Frame] = field(default_factory=list)
    start: int = 0

    def rule(self, name: str) -> int:
        """Add a rule that derives nothing yet; returns its number."""
        self.rules.append(NumberedRule(name))
        return len(self.rules) - 1

    def terminal(self, terminal: Language | Frame) -> int:
        """Add a terminal; returns its number."""
        self.terminals.append(terminal)
        return len(self.terminals) - 1

    def add(self, cfg: Cfg, tables: Tables, budget: Budget) -> int:
        """Add everything that a context-free grammar needs; returns the number of its start rule.

        Args:
            tables: where the states of tokens are added.
        Raises:
            GrammarError: the budget is used up.
        """
        terminals = [_terminal(each, tables) for each in cfg.terminals]
        return _Addition(self, cfg, terminals, budget).start()


def _terminal(terminal: Terminal, tables: Tables) -> Language | Frame:
    return terminal.language if terminal.tokens is None else Frame.of_tokens(tables, terminal.tokens)


class _Addition:
    """The state of one call of `NumberedRules.add`."""

    def __init__(self, grammar: NumberedRules, cfg: Cfg, terminals: list[Language | Frame], budget: Budget) -> None:
        self._grammar, self._cfg, self._budget = grammar, cfg, budget
        self._terminals = [grammar.terminal(terminal) for terminal in terminals]
        self._numbers: dict[int, int] = {}
        self._waiting: list[int] = []
        self._sizes = self._inlined_sizes()

    def start(self) -> int:
        """Add everything that is reachable from the start rule; returns the number of that rule."""
        number = self._number(self._cfg.start)
        while self._waiting:
            index = self._waiting.pop()
            self._write(self._grammar.rules[self._numbers[index]], index, 0, 1)
        return number

    def _number(self, index: int) -> int:
        if index not in self._numbers:
            self._numbers[index] = self._grammar.rule(self._cfg.rules[index].name)
            self._waiting.append(index)
        return self._numbers[index]

    def _write(self, rule: NumberedRule, index: int, begin: int, end: int) -> None:
        """Add the alternatives of rule `index` of the grammar between two positions of `rule`."""
        for alternative in self._cfg.rules[index].alternatives:
            self._budget.spend(states=1)
            at = begin
            for i, symbol in enumerate(alternative):
                is_last = i == len(alternative) - 1
                if is_last and symbol == RuleCall(index):
                    rule.empty[at].append(begin)
                    break
                to = end if is_last else rule.position()
                if isinstance(symbol, TokenSymbol):
                    rule.moves[at].append((self._terminals[symbol.terminal], to))
                elif symbol.rule in self._sizes:
                    inner = rule.position()  # a position of its own: the rule may lead back to it
                    rule.empty[at].append(inner)
                    self._write(rule, symbol.rule, inner, to)
                else:
                    rule.moves[at].append((-1 - self._number(symbol.rule), to))
                at = to
            if not alternative:
                rule.empty[begin].append(end)

    def _inlined_sizes(self) -> dict[int, int]:
        """The rules to inline, with their sizes; none of them calls itself except at its end."""
        rules = self._cfg.rules
        num_uses = [0] * len(rules)
        calls: list[list[int]] = []
        for index, rule in enumerate(rules):
            called = []
            for alternative in rule.alternatives:
                for i, symbol in enumerate(alternative):
                    if isinstance(symbol, RuleCall) and not (symbol.rule == index and i == len(alternative) - 1):
                        called.append(symbol.rule)
                        num_uses[symbol.rule] += 1
            calls.append(called)
        kept = _cut(calls)
        rest = [
            [] if index in kept else [each for each in called if each not in kept] for index, called in enumerate(calls)
        ]
        sizes: dict[int, int] = {}
        depths: dict[int, int] = {}
        for (index,) in strongly_connected_components(len(rules), rest.__getitem__):
            if index in kept:
                continue
            size = sum(
                1 + (sizes.get(symbol.rule, 0) if isinstance(symbol, RuleCall) else 0)
                for alternative in rules[index].alternatives
                for symbol in alternative
            )
            depth = 1 + max((depths.get(called, 0) for called in rest[index]), default=0)
            most = _MAX_INLINED if num_uses[index] > 1 else _MAX_INLINED_ONCE
            if size <= most and depth <= _MAX_INLINED_DEPTH:
                sizes[index], depths[index] = size, depth
        return sizes


def _cut(calls: list[list[int]]) -> set[int]:
    """Rules that break all recursion: from each cycle, the rule that lies on the most cycles."""
    kept: set[int] = set()
    waiting = [list(range(len(calls)))]
    while waiting:
        members = waiting.pop()
        places = {index: at for at, index in enumerate(members)}
        inner = [[places[each] for each in calls[index] if each in places] for index in members]
        for component in strongly_connected_components(len(members), inner.__getitem__):
            if len(component) == 1 and component[0] not in inner[component[0]]:
                continue
            inside = set(component)
            num_in = dict.fromkeys(component, 0)
            for at in component:
                for each in inner[at]:
                    if each in inside:
                        num_in[each] += 1
            middle = max(component, key=lambda at: (num_in[at] * len(inner[at]), -members[at]))
            kept.add(members[middle])
            waiting.append([members[at] for at in component if at != middle])
    return kept
