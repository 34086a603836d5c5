"""EBNF expressions and their translation to a context-free grammar.

Readers build `Expression` trees; a `CfgBuilder` turns them into rules. The size is linear in the expression, and logarithmic in the bounds
of large repetitions: a nested alternation or repetition becomes a rule of its own, and nothing is multiplied out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from rtlang_grammars.context_free.cfg import Alternative, Cfg, Rule, RuleCall, Symbol, Terminal, TokenSymbol, prune
from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MAX_NESTING = 80
"""The maximal depth of nested brackets in an expression."""
MAX_COUNT = 1 << 30
"""The largest bound of a repetition."""
_MAX_UNROLLED = 64


@dataclass(frozen=True, slots=True)
class Name:
    """A reference to a rule or a terminal, with arguments if it is a template."""

    name: str
    arguments: tuple[Expression, ...]
    location: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """An anonymous terminal. Only the reader that created it interprets `source`."""

    source: str
    location: str


@dataclass(frozen=True, slots=True)
class EbnfSequence:
    """A concatenation; the empty string if there are no items."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class EbnfChoice:
    """An alternation."""

    alternatives: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class EbnfRepeat:
    """`low` to `high` repetitions; `high` None means unbounded."""

    item: Expression
    low: int
    high: int | None


Expression: TypeAlias = Name | Pattern | EbnfSequence | EbnfChoice | EbnfRepeat
Resolve: TypeAlias = "Callable[[Name | Pattern], Symbol]"
"""Maps a reference or a pattern to its symbol."""


def sequence(items: list[Expression]) -> Expression:
    """The concatenation of the items."""
    return items[0] if len(items) == 1 else EbnfSequence(tuple(items))


def choice(alternatives: list[Expression]) -> Expression:
    """The alternation of the alternatives."""
    return alternatives[0] if len(alternatives) == 1 else EbnfChoice(tuple(alternatives))


def names_in(expression: Expression) -> list[Name]:
    """The references in an expression, in source order."""
    found: list[Name] = []
    worklist = [expression]
    while worklist:
        part = worklist.pop()
        match part:
            case Name():
                found.append(part)
                worklist.extend(reversed(part.arguments))
            case EbnfSequence():
                worklist.extend(reversed(part.items))
            case EbnfChoice():
                worklist.extend(reversed(part.alternatives))
            case EbnfRepeat():
                worklist.append(part.item)
            case Pattern():
                pass
    return found


class CfgBuilder:
    """Collects rules and terminals. Owned by one reader.

    Attributes:
        budget: charged for rules, symbols and tests of terminals.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._terminals: list[Terminal] = []
        self._rules: list[tuple[str, list[Alternative]]] = []
        self._options: dict[int, RuleOptions] = {}
        self._by_key: dict[Hashable, Symbol] = {}

    def new_rule(self, name: str) -> RuleCall:
        """Add a rule without alternatives."""
        self.budget.spend(states=1)
        self._rules.append((name, []))
        return RuleCall(len(self._rules) - 1)

    def define(
        self, rule: RuleCall, expression: Expression, resolve: Resolve, options: RuleOptions | None = None
    ) -> None:
        """Add the alternatives of an expression to a rule, and give it options."""
        if options is not None:
            self._options[rule.rule] = options
        self._rules[rule.rule][1].extend(self._alternatives(expression, resolve))

    def add(self, rule: RuleCall, alternative: Alternative) -> None:
        """Add an alternative to a rule."""
        self._rules[rule.rule][1].append(alternative)

    def terminal(self, key: Hashable, make: Callable[[], Terminal]) -> Symbol:
        """The symbol of a terminal, created once per key. The terminal may match the empty string, or nothing.

        Raises:
            GrammarError: raised by `make`, or the budget ran out.
        """
        if key not in self._by_key:
            self._by_key[key] = self._terminal_symbol(make())
        return self._by_key[key]

    def build(self, start: Symbol) -> Cfg:
        """Return the grammar, pruned.

        Raises:
            GrammarError: the language is empty, or the budget ran out.
        """
        if isinstance(start, RuleCall):
            root = start
        else:
            root = self.new_rule("start")
            self.add(root, (start,))
        rules = tuple(
            Rule(name, tuple(alternatives), self._options.get(number))
            for number, (name, alternatives) in enumerate(self._rules)
        )
        return prune(Cfg(tuple(self._terminals), rules, root.rule), self.budget)

    def _token(self, terminal: Terminal, *, is_plain: bool) -> TokenSymbol | None:
        """The symbol of a terminal without the empty string; None if nothing is left."""
        self.budget.spend(states=1)
        language = terminal.language
        if terminal.tokens is not None:
            self._terminals.append(terminal)
            return TokenSymbol(len(self._terminals) - 1)
        if not is_plain or language.accepts("", self.budget):
            language = language.bounded(1, None)
            if language.is_empty(self.budget):
                return None
        self._terminals.append(Terminal(terminal.name, language, terminal.priority))
        return TokenSymbol(len(self._terminals) - 1)

    def _terminal_symbol(self, terminal: Terminal) -> Symbol:
        is_nullable = terminal.language.accepts("", self.budget)
        token = self._token(terminal, is_plain=not is_nullable)
        if token is not None and not is_nullable:
            return token
        rule = self.new_rule(terminal.name)
        alternatives = self._rules[rule.rule][1]
        if token is not None:
            alternatives.append((token,))
        if is_nullable:
            alternatives.append(())
        return rule

    def _alternatives(self, expression: Expression, resolve: Resolve) -> list[Alternative]:
        if isinstance(expression, EbnfChoice):
            return [each for way in expression.alternatives for each in self._alternatives(way, resolve)]
        if isinstance(expression, EbnfRepeat) and (expression.low, expression.high) == (0, 1):
            return [*self._alternatives(expression.item, resolve), ()]
        items = expression.items if isinstance(expression, EbnfSequence) else (expression,)
        symbols: list[Symbol] = []
        for item in items:
            self.budget.spend(states=1)
            symbols.extend(self._symbols(item, resolve))
        return [tuple(symbols)]

    def _symbols(self, expression: Expression, resolve: Resolve) -> Alternative:
        if isinstance(expression, Name | Pattern):
            return (resolve(expression),)
        if isinstance(expression, EbnfSequence):
            return self._alternatives(expression, resolve)[0]
        if isinstance(expression, EbnfRepeat) and (expression.low, expression.high) != (0, 1):
            return self._repeat(expression, resolve)
        rule = self.new_rule("choice")
        self.define(rule, expression, resolve)
        return (rule,)

    def _repeat(self, repeat: EbnfRepeat, resolve: Resolve) -> Alternative:
        low, high = repeat.low, repeat.high
        if high == 0:
            return ()
        symbols = self._symbols(repeat.item, resolve)
        if len(symbols) != 1:
            item = self.new_rule("group")
            self._rules[item.rule][1].append(symbols)
            symbols = (item,)
        symbol = symbols[0]
        if isinstance(symbol, TokenSymbol):
            return self._repeat_token(symbol, low, high)
        return self._repeat_symbol(symbol, low, high)

    def _repeat_token(self, token: TokenSymbol, low: int, high: int | None) -> Alternative:
        """The repetition of a terminal is regular, so its counting is left to the terminal's automaton."""
        terminal = self._terminals[token.terminal]
        if terminal.tokens is not None:
            return self._repeat_symbol(token, low, high)
        try:
            language = terminal.language.repeat(low, high)
        except GrammarError:  # it has a lookbehind, so it cannot be repeated within one string
            return self._repeat_symbol(token, low, high)
        return (
            self.terminal(("repeat", token, low, high), lambda: Terminal(terminal.name, language, terminal.priority)),
        )

    def _repeat_symbol(self, symbol: Symbol, low: int, high: int | None) -> Alternative:
        powers: list[Symbol] = [symbol]
        required = self._exactly(powers, low)
        if high is None:
            rule = self.new_rule("repeat")
            self._rules[rule.rule][1].extend([(symbol, rule), ()])
            return (*required, rule)
        return (*required, *self._at_most(powers, high - low, {}))

    def _exactly(self, powers: list[Symbol], count: int) -> Alternative:
        """Exactly `count` repetitions of the symbol powers[0]."""
        if count <= _MAX_UNROLLED:
            self.budget.spend(states=count)
            return (powers[0],) * count
        return tuple(self._power(powers, bit) for bit in reversed(range(count.bit_length())) if count >> bit & 1)

    def _power(self, powers: list[Symbol], exponent: int) -> Symbol:
        """2 ** exponent repetitions of the symbol powers[0]."""
        while len(powers) <= exponent:
            rule = self.new_rule("power")
            self._rules[rule.rule][1].append((powers[-1], powers[-1]))
            powers.append(rule)
        return powers[exponent]

    def _at_most(self, powers: list[Symbol], count: int, made: dict[int, RuleCall]) -> Alternative:
        """0 to `count` repetitions of the symbol powers[0], unambiguously."""
        if count == 0:
            return ()
        if count in made:
            return (made[count],)
        rule = made[count] = self.new_rule("repeat")
        alternatives = self._rules[rule.rule][1]
        if count <= _MAX_UNROLLED:
            alternatives += [(powers[0], *self._at_most(powers, count - 1, made)), ()]
        else:
            bit = count.bit_length() - 1
            alternatives.append(self._at_most(powers, (1 << bit) - 1, made))
            alternatives.append((self._power(powers, bit), *self._at_most(powers, count - (1 << bit), made)))
        return (rule,)
