"""Rewrites a grammar with larger terminals, so that masks are faster: strings, numbers and names instead of characters.

GBNF and EBNF have no terminals beyond characters and literals. Rules that are regular become terminals, neighbours within a rule that
nothing else shares are joined, and a rule that repeats regular parts beside others (`("a" | "${" expression "}")*`) reads a run of them at
once. The language is unchanged, given that a terminal may end wherever it matches. Rules with options stay rules; before
that, each rule whose options decide which texts it has (`max_tokens`, `lazy`, ...) becomes one terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from rtlang_grammars.context_free.cfg import Alternative, Cfg, Rule, RuleCall, Symbol, Terminal, TokenSymbol, prune
from rtlang_grammars.context_free.folding import regular_languages
from rtlang_grammars.context_free.notation.built_terminals import shaped_terminal
from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_INLINED = 32
_FEW_WORDS = 128


def with_regular_terminals(cfg: Cfg, budget: Budget) -> Cfg:
    """The same language with larger terminals, pruned.

    Raises:
        GrammarError: the budget ran out.
    """
    return _Folded(cfg, budget).result()


def with_shaped_rules(cfg: Cfg, markers: Mapping[str, Language], budget: Budget) -> Cfg:
    """The grammar in which each rule with such options is one terminal; other options stay with the rules.

    Args:
        markers: the texts of `suffix` or `stop`, by the names of rules.
    Raises:
        GrammarError: such a rule is not regular or has no text; without a place, the reason begins with the rule.
    """
    terminals, rules = list(cfg.terminals), list(cfg.rules)
    todo = [number for number, rule in enumerate(rules) if rule.options is not None and rule.options.shapes_text]
    while todo:  # inner rules first: with max_chars alone they have no options after it
        calls = {
            number: prune(Cfg(tuple(terminals), tuple(_without_options(rules, number)), number), budget)
            for number in todo
        }
        ready = [number for number in todo if not any(rule.options for rule in calls[number].rules)] or todo[:1]
        for number in ready:
            rules[number] = _shaped(calls[number], rules[number], markers.get(rules[number].name), terminals, budget)
        todo = [number for number in todo if number not in ready]
    return prune(Cfg(tuple(terminals), tuple(rules), cfg.start), budget)


def _without_options(rules: Sequence[Rule], number: int) -> list[Rule]:
    return [replace(each, options=None) if index == number else each for index, each in enumerate(rules)]


def _shaped(reachable: Cfg, rule: Rule, marker: Language | None, terminals: list[Terminal], budget: Budget) -> Rule:
    """The rule of a new terminal; `reachable` is the grammar that starts with it."""
    options = rule.options
    assert options is not None
    body = regular_languages(reachable, budget).get(reachable.start)
    if body is None:
        beside = sorted({each.name for each in reachable.rules if each.options})
        raise GrammarError(
            f"rule {rule.name}: lazy, suffix, stop, max_tokens and max_chars are allowed where a rule consists of literals, classes and "
            "rules without options that do not contain themselves; "
            + (
                f"not of {', '.join(beside)}, with options"
                if beside
                else "it contains itself, a token, or a rule with lazy or max_tokens"
            )
        )
    built = shaped_terminal(body, marker, options)
    if built.language.is_empty(budget):
        raise GrammarError(
            f"rule {rule.name}: max_chars = {options.max_chars} leaves it no text: expected at least its shortest text"
        )
    kept = options if options.is_reported else None
    is_nullable = built.language.accepts("", budget)
    language = built.language.bounded(1, None) if is_nullable else built.language
    if language.is_empty(budget) or (is_nullable and built.is_lazy):  # it ends before its first character
        return Rule(rule.name, ((),), kept)
    is_plain = not built.is_lazy and built.max_tokens is None
    terminals.append(Terminal(rule.name, language, built=None if is_plain else built))
    return Rule(rule.name, ((TokenSymbol(len(terminals) - 1),), *([()] if is_nullable else [])), kept)


class _Folded:
    """The state of one call of `with_regular_terminals`."""

    def __init__(self, cfg: Cfg, budget: Budget) -> None:
        self.cfg, self.budget = cfg, budget
        self.regular = regular_languages(cfg, budget)
        self.uses = Counter(each for rule in cfg.rules for way in rule.alternatives for each in way)
        self.terminals: list[Terminal] = []
        self.rules: list[tuple[str, list[Alternative]]] = []
        self.numbers: dict[int, int] = {}
        self.options: dict[int, RuleOptions | None] = {}
        self.waiting: list[int] = []
        self.made: dict[Hashable, Alternative] = {}

    def result(self) -> Cfg:
        """The rewritten grammar."""
        start = self._rule(self.cfg.start)
        while self.waiting:
            self._define(self.waiting.pop())
        rules = tuple(
            Rule(name, tuple(alternatives), self.options.get(number))
            for number, (name, alternatives) in enumerate(self.rules)
        )
        return prune(Cfg(tuple(self.terminals), rules, start.rule), self.budget)

    def _new_rule(self, name: str) -> RuleCall:
        self.budget.spend(states=1)
        self.rules.append((name, []))
        return RuleCall(len(self.rules) - 1)

    def _rule(self, index: int) -> RuleCall:
        """The new rule of an old one."""
        if index not in self.numbers:
            rule = self.cfg.rules[index]
            number = self.numbers[index] = self._new_rule(rule.name).rule
            self.options[number] = rule.options
            self.waiting.append(index)
        return RuleCall(self.numbers[index])

    def _define(self, index: int) -> None:
        own = self._rule(index)
        alternatives = self._inlined(index)
        runs = [each[:-1] for each in alternatives if len(each) > 1 and each[-1] == RuleCall(index)]
        repeated = [run for run in runs if all(self._language(each) is not None for each in run)]
        if repeated and len(repeated) < len(alternatives) and not self.cfg.rules[index].options:
            rest = self._new_rule(self.cfg.rules[index].name)
            language = self._union([self._joined(run) for run in repeated])
            run = None if language is None else self._symbols(("run", index), self.cfg.rules[index].name, language)
            if run is not None:
                self.rules[own.rule][1].extend([(*run, rest), (rest,)])
                own = rest
                alternatives = [
                    each for each in alternatives if each[-1:] != (RuleCall(index),) or each[:-1] not in repeated
                ]
        for alternative in alternatives:
            self.rules[own.rule][1].append(self._rewritten(alternative))

    def _inlined(self, index: int) -> list[Alternative]:
        """The alternatives of a rule, with those of a choice that it repeats and nothing else uses."""
        found: list[Alternative] = []
        for each in self.cfg.rules[index].alternatives:
            first = each[0] if len(each) == 2 and each[1] == RuleCall(index) else None
            ways: tuple[Alternative, ...] = ()
            if isinstance(first, RuleCall) and first.rule not in self.regular and first.rule != index:
                ways = () if self.cfg.rules[first.rule].options else self.cfg.rules[first.rule].alternatives
            if first is not None and self.uses[first] == 1 and 0 < len(ways) <= _MAX_INLINED:
                found += [(*way, each[1]) for way in ways]
            else:
                found.append(each)
        return found

    def _rewritten(self, alternative: Alternative) -> Alternative:
        symbols: list[Symbol] = []
        run: list[Symbol] = []
        for each in (*alternative, None):
            if each is not None and self._may_join(each):
                run.append(each)
                continue
            symbols += self._run(tuple(run))
            run = []
            if each is not None:
                symbols += self._symbol(each)
        return tuple(symbols)

    def _may_join(self, symbol: Symbol) -> bool:
        """Whether a symbol may be joined with its neighbours: its states would not be shared with other places anyway."""
        if self._language(symbol) is None:
            return False
        return self.uses[symbol] == 1 or (isinstance(symbol, TokenSymbol) and self._is_short(symbol.terminal))

    def _is_short(self, terminal: int) -> bool:
        return self.cfg.terminals[terminal].language.finite_words(_FEW_WORDS, self.budget) is not None

    def _run(self, run: tuple[Symbol, ...]) -> Alternative:
        if len(run) < 2:
            return self._symbol(run[0]) if run else ()
        language = self._joined(run)
        if language is None:
            return tuple(made for each in run for made in self._symbol(each))
        return self._symbols(run, " ".join(map(self._name, run)), language)

    def _symbol(self, symbol: Symbol) -> Alternative:
        """The new symbols of an old one."""
        language = self._language(symbol)
        if language is not None:
            return self._symbols(symbol, self._name(symbol), language)
        if isinstance(symbol, RuleCall):
            return (self._rule(symbol.rule),)
        terminal = self.cfg.terminals[symbol.terminal]
        if symbol not in self.made:
            self.terminals.append(terminal)
            self.made[symbol] = (TokenSymbol(len(self.terminals) - 1),)
        return self.made[symbol]

    def _symbols(self, key: Hashable, name: str, language: Language) -> Alternative:
        """The symbols of a regular language, made once: a terminal, or a rule where it may be empty."""
        if key not in self.made:
            self.budget.spend(states=1)
            is_nullable = language.accepts("", self.budget)
            nonempty = language.bounded(1, None) if is_nullable else language
            symbols: Alternative = ()
            if not nonempty.is_empty(self.budget):
                self.terminals.append(Terminal(name, nonempty))
                symbols = (TokenSymbol(len(self.terminals) - 1),)
            if is_nullable and symbols:
                optional = self._new_rule(name)
                self.rules[optional.rule][1].extend([symbols, ()])
                symbols = (optional,)
            elif not symbols and not is_nullable:
                symbols = (self._new_rule(name),)  # nothing matches
            self.made[key] = symbols
        return self.made[key]

    def _name(self, symbol: Symbol) -> str:
        if isinstance(symbol, TokenSymbol):
            return self.cfg.terminals[symbol.terminal].name
        return self.cfg.rules[symbol.rule].name

    def _language(self, symbol: Symbol) -> Language | None:
        if isinstance(symbol, RuleCall):
            return self.regular.get(symbol.rule)
        terminal = self.cfg.terminals[symbol.terminal]
        return terminal.language if terminal.is_plain else None

    def _joined(self, run: tuple[Symbol, ...]) -> Language | None:
        """The concatenation; None if a part is not regular or has a look-behind."""
        languages = [self._language(each) for each in run]
        known = [each for each in languages if each is not None]
        if len(known) < len(languages) or not known:
            return None
        try:
            return known[0].concat(*known[1:]) if len(known) > 1 else known[0]
        except GrammarError:
            return None

    def _union(self, languages: list[Language | None]) -> Language | None:
        """One or more strings of the union."""
        known = [each for each in languages if each is not None]
        if len(known) < len(languages):
            return None
        try:
            return (known[0].union(*known[1:]) if len(known) > 1 else known[0]).repeat(1)
        except GrammarError:
            return None
