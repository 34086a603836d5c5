"""Builds the terminals that lark cannot define from their expressions and the options of their rules."""

from __future__ import annotations

from collections.abc import Callable, Container

from rtlang_grammars.context_free.lazy_repeats import terminal_language
from rtlang_grammars.context_free.notation.plain_lark import PlainLark, TerminalSource, read_notation
from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal, evaluate, leaves_in
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.places import line_and_column

FindPatterns = Callable[[str, Container[str], Budget], dict[str, str]]
"""The patterns of some terminals of a plain Lark grammar with the start rule `start`, for Python's `re`."""


def build_terminals(plain: PlainLark, budget: Budget, find_patterns: FindPatterns) -> dict[str, BuiltTerminal]:
    """The terminals of a grammar that lark cannot define, by name.

    Raises:
        GrammarError: an expression is malformed, or contains itself; with `line:column`.
    """
    return _Builder(plain, budget, find_patterns).build() if plain.terminals else {}


def shaped_terminal(body: Language, marker: Language | None, options: RuleOptions) -> BuiltTerminal:
    """The terminal of a rule with options.

    Args:
        body: the texts of the rule.
        marker: the texts of `suffix` or `stop`; None without.
    """
    whole = body if marker is None else body.concat(marker)
    if options.max_chars is not None:
        most = options.max_chars
        within = whole.bounded(0, most)
        whole = within if marker is None else within.union(body.bounded(most, most))
        body = body.bounded(0, most)
    return BuiltTerminal(whole, body, options.is_lazy, options.max_tokens, marker)


class _Builder:
    def __init__(self, plain: PlainLark, budget: Budget, find_patterns: FindPatterns) -> None:
        self._plain, self._budget = plain, budget
        self._patterns: dict[int, dict[str, str]] = {}
        self._find_patterns = find_patterns
        self._languages: dict[str, Language] = {}
        self._leaves: dict[tuple[int, str], Language] = {}
        self._open: list[str] = []

    def build(self) -> dict[str, BuiltTerminal]:
        return {name: self._built(name, source) for name, source in self._plain.terminals.items()}

    def _built(self, name: str, source: TerminalSource) -> BuiltTerminal:
        try:
            body, options, marker = self._language(name), source.options or RuleOptions(), None
            if options.marker:
                marker = evaluate(options.marker, lambda leaf: self._leaf(source.scope, leaf), self._budget)
            return shaped_terminal(body, marker, options)
        except GrammarError as error:
            self._budget.check()
            if error.reason.startswith("Lark grammar"):
                raise
            what = f"terminal {name}" if source.options is None else "a rule with options"
            reason = f"Lark grammar: {what}: {error.reason}"
            raise GrammarError(reason, line_and_column(self._plain.source, source.at)) from None

    def _language(self, name: str) -> Language:
        found = self._languages.get(name)
        if found is None:
            if name in self._open:
                raise GrammarError(f"terminal {name} contains itself")
            self._open.append(name)
            source = self._plain.terminals[name]
            found = evaluate(source.body, lambda leaf: self._leaf(source.scope, leaf), self._budget)
            self._languages[name] = found
            self._open.pop()
        return found

    def _leaf(self, scope: int, leaf: str) -> Language:
        special = self._plain.scopes[scope].special
        if leaf in special:
            return self._language(special[leaf])
        found = self._leaves.get((scope, leaf))
        if found is None:
            if scope not in self._patterns:
                self._patterns[scope] = self._read_leaves(scope)
            found = self._leaves[scope, leaf] = terminal_language(self._patterns[scope][leaf], self._budget)
        return found

    def _read_leaves(self, scope: int) -> dict[str, str]:
        """The patterns of all leaves of a scope, as lark reads them."""
        listed: dict[str, None] = {}
        for source in self._plain.terminals.values():
            if source.scope == scope:
                marker = source.options.marker if source.options is not None else ()
                listed |= dict.fromkeys([*leaves_in(source.body), *leaves_in(marker)])
        leaves = [each for each in listed if each not in self._plain.scopes[scope].special]
        names = [f"NOTATIONLEAF{i}" for i in range(len(leaves))]
        lines = [f"{name}: {leaf}" for name, leaf in zip(names, leaves, strict=True)]
        text = "\n".join([*self._plain.scopes[scope].plain, *lines, f"start: {' | '.join(names)}", ""])
        try:
            found = self._find_patterns(read_notation(text).text, set(names), self._budget)
        except GrammarError as error:
            raise GrammarError(error.reason.removeprefix("Lark grammar: ")) from None
        return {leaf: found[name] for name, leaf in zip(names, leaves, strict=True)}
