"""Terminals that may be empty, which no lexer can find: rules get a terminal that is not empty, or nothing, in their place.

Alternatives with terminals that match nothing at all (`/a/ & /b/`) are left out.
"""

from __future__ import annotations

import re
from dataclasses import replace

from lark.grammar import NonTerminal, Rule
from lark.grammar import Terminal as LarkTerminal

from rtlang_grammars.context_free.lark_source import LarkSource, SourceTerminal
from rtlang_grammars.context_free.lazy_repeats import terminal_language
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_LOOKS_AROUND = re.compile(r"\(\?<?[=!]|\\[bBAZ]|(?<![\\\[])[\^$]|[*+?}]\?")


def with_optional_terminals(source: LarkSource, budget: Budget) -> LarkSource:
    """The grammar with the same texts in which no terminal may be empty; terminals that look around themselves stay as they are.

    Raises:
        GrammarError: a terminal is too complex.
    """
    optional: dict[str, SourceTerminal | None] = {}
    impossible = {
        each.name for each in source.terminals if each.built is not None and each.built.language.is_empty(budget)
    }
    if impossible:
        source = _without(source, impossible)
    for each in source.terminals:
        if each.tokens is None and _may_be_empty(each, budget):
            optional[each.name] = _not_empty(each, budget)
    if not optional:
        return source
    kept = [optional.get(each.name, each) for each in source.terminals]
    rules = [
        Rule(
            rule.origin,
            [
                NonTerminal(_rule_of(each.name)) if isinstance(each, LarkTerminal) and each.name in optional else each
                for each in rule.expansion
            ],
            rule.order,
            rule.alias,
            rule.options,
        )
        for rule in source.rules
    ]
    used = {each.name for rule in source.rules for each in rule.expansion if isinstance(each, LarkTerminal)}
    for name, terminal in optional.items():
        if name in used:
            rules.append(Rule(NonTerminal(_rule_of(name)), []))
            if terminal is not None:
                rules.append(Rule(NonTerminal(_rule_of(name)), [LarkTerminal(name)]))
    return replace(
        source,
        terminals=tuple(each for each in kept if each is not None),
        ignored=source.ignored - {name for name, terminal in optional.items() if terminal is None},
        rules=tuple(rules),
    )


def _without(source: LarkSource, names: set[str]) -> LarkSource:
    """The grammar without the alternatives that have some terminals."""
    rules = [rule for rule in source.rules if names.isdisjoint(each.name for each in rule.expansion)]
    if all(rule.origin.name != source.start for rule in rules):
        raise GrammarError("the grammar matches no string: its terminals match none")
    return replace(
        source,
        terminals=tuple(each for each in source.terminals if each.name not in names),
        ignored=source.ignored - names,
        rules=tuple(rules),
    )


def _rule_of(name: str) -> str:
    return f"{name}?"


def _may_be_empty(terminal: SourceTerminal, budget: Budget) -> bool:
    if terminal.built is not None:
        return terminal.built.language.accepts("", budget)
    if terminal.text:
        return False
    if not terminal.text and terminal.text is not None:
        return True
    return _LOOKS_AROUND.search(terminal.pattern) is None and re.fullmatch(terminal.pattern, "") is not None


def _not_empty(terminal: SourceTerminal, budget: Budget) -> SourceTerminal | None:
    """The terminal without the empty text; None where nothing is left."""
    built = terminal.built
    if built is None:
        try:
            language = terminal_language(terminal.pattern, budget)
        except GrammarError as error:
            budget.check()
            raise GrammarError(
                f"Lark grammar: terminal {terminal.name[:80]}: {error.reason}", terminal.location
            ) from None
        built = BuiltTerminal(language, language)
    automaton = built.language.automaton(budget)
    if built.is_lazy or not (automaton.row(automaton.start) >= 0).any():
        return None  # a lazy terminal that may be empty is always empty
    return replace(terminal, pattern="", text=None, built=built)
