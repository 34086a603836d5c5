"""Temperatures of rules that other rules call."""

from __future__ import annotations

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexer_build.inherited_temperatures import with_temperatures
from rtlang_grammars.spec.limits import Budget


def test_a_rule_has_a_copy_for_each_temperature_that_it_is_called_with() -> None:
    source = read_source('start: a b c\na[temperature=0.5]: b "x" | "(" a ")"\nb: "y" c\nc[temperature=0.9]: b | "z"\n')
    rules, start, origins = with_temperatures(source.rules, source.start, source.options, Budget())
    assert start == "start"
    assert {(name, temperature) for name, temperature in origins.values()} == {
        ("start", None), ("a", 0.5), ("b", None), ("b", 0.5), ("b", 0.9), ("c", 0.9),
    }  # fmt: skip
    called = {
        (rule.origin.name, each.name) for rule in rules for each in rule.expansion if each.name.startswith(("b", "c"))
    }
    assert ("a at 0.5", "b at 0.5") in called
    assert ("b at 0.5", "c at 0.9") in called
    assert ("start", "b") in called


def test_without_temperatures_rules_stay() -> None:
    source = read_source('start: a\na[capture]: "x"\n')
    rules, start, origins = with_temperatures(source.rules, source.start, source.options, Budget())
    assert (rules, start, origins["a"]) == (source.rules, "start", ("a", None))
