"""Rules that are called from a rule with a temperature: copies that have it, unless they have one of their own."""

from __future__ import annotations

from collections.abc import Mapping

from lark.grammar import NonTerminal, Rule

from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.spec.limits import Budget


def with_temperatures(
    rules: tuple[Rule, ...], start: str, options: Mapping[str, RuleOptions], budget: Budget
) -> tuple[tuple[Rule, ...], str, dict[str, tuple[str, float | None]]]:
    """Rules in which each name has one temperature.

    Returns:
        The rules, the start rule, and for each name in them the name in the given rules and its temperature.
    """
    by_origin: dict[str, list[Rule]] = {}
    for rule in rules:
        by_origin.setdefault(rule.origin.name, []).append(rule)
    own = {name: each.temperature for name, each in options.items() if each.temperature is not None}
    if not own:
        return rules, start, {name: (name, None) for name in by_origin}
    found: list[Rule] = []
    names: dict[tuple[str, float | None], str] = {}
    todo: list[tuple[str, float | None]] = []

    def name_of(name: str, outer: float | None) -> str:
        key = name, own.get(name, outer)
        if key not in names:
            names[key] = name if key[1] is None else f"{name} at {key[1]}"
            todo.append(key)
        return names[key]

    first = name_of(start, None)
    while todo:
        key = todo.pop()
        for rule in by_origin.get(key[0], ()):
            budget.spend(states=1)
            expansion = [
                NonTerminal(name_of(each.name, key[1])) if isinstance(each, NonTerminal) else each
                for each in rule.expansion
            ]
            found.append(Rule(NonTerminal(names[key]), expansion, rule.order, rule.alias, rule.options))
    return tuple(found), first, {written: key for key, written in names.items()}
