"""Rules as automata: random grammars keep their language, and what may be put into others is."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.lowering.grammars.rules import Frame, NumberedRules
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.limits import Budget


def made(source: str) -> NumberedRules:
    budget = Budget()
    grammar = NumberedRules()
    grammar.start = grammar.add(read_lark(source, budget=budget), Tables(budget), budget)
    return grammar


def accepts(grammar: NumberedRules, text: str) -> bool:
    """By trying every way, position by position; no rule of the tests begins with itself."""

    def ends(rule: int, begin: int) -> set[int]:
        found: set[int] = set()
        waiting, seen = [(0, begin)], {(0, begin)}
        while waiting:
            at, place = waiting.pop()
            if at == 1:
                found.add(place)
            reached = [(to, place) for to in grammar.rules[rule].empty[at]]
            for symbol, to in grammar.rules[rule].moves[at]:
                if symbol < 0:
                    reached += [(to, end) for end in ends(-1 - symbol, place)]
                else:
                    language = grammar.terminals[symbol]
                    assert isinstance(language, Language)
                    reached += [
                        (to, end) for end in range(place + 1, len(text) + 1) if language.accepts(text[place:end])
                    ]
            for each in reached:
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        return found

    return len(text) in ends(grammar.start, 0)


@pytest.mark.parametrize(
    ("source", "num_rules"),
    [
        ('start: a b*\na: "x" | "y" a\nb: "(" a ")"', 1),  # a calls itself only at its end
        ('start: "x" start "y" | "z"', 1),
        ('start: text\ntext: ("a" | link | bold)*\nlink: "<" text ">"\nbold: "*" text "*"', 2),
        ("start: " + " ".join(f"r{i}" for i in range(9)) + "".join(f'\nr{i}: "a" | "b" "c"' for i in range(9)), 1),
    ],
)
def test_few_rules_are_left(source: str, num_rules: int) -> None:
    assert len(made(source).rules) == num_rules


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        ('start: a b*\na: "x" | "y" a\nb: "(" a ")"', ["x", "yyx", "yx(yx)(x)"], ["", "y", "x(", "x()"]),
        (
            'start: text\ntext: ("a" | link | bold)*\nlink: "<" text ">"\nbold: "*" text "*"',
            ["", "a<>a", "<*a*>a"],
            ["<", "*a", "<*a>*"],
        ),
        ('start: (a "," )* a?\na: "p" a | "q"', ["", "q", "ppq,q,", "q,pq"], ["p", ",", "qq"]),
        (
            "start: x{3,5}".replace("{3,5}", "~3..5") + '\nx: "a" x | "b" start "." | "c"',
            ["ccc", "acaccac", "bccc.cc"],
            ["cc", "bccc"],
        ),
    ],
)
def test_texts_are_those_of_the_grammar(source: str, good: list[str], bad: list[str]) -> None:
    grammar = made(source)
    for text in [*good, *bad]:
        assert accepts(grammar, text) == (text in good), text


def test_a_large_count_of_a_rule_stays_small() -> None:
    grammar = made('start: x~4000\nx: "a" | "(" x ")"')
    assert sum(len(moves) for rule in grammar.rules for moves in rule.moves) < 2000


def test_a_long_chain_of_rules_needs_no_recursion_of_the_reader() -> None:
    chain = "".join(f'\nr{i}: "a" r{i + 1}' for i in range(900))
    grammar = made(f'start: r0{chain}\nr900: "a"')
    assert 1 < len(grammar.rules) < 900


def test_symbols_are_numbered_in_the_order_they_are_added() -> None:
    grammar = NumberedRules()
    assert [grammar.rule("a"), grammar.rule("b")] == [0, 1]
    assert [grammar.terminal(Language.literal("x")), grammar.terminal(Frame(7, b"{"))] == [0, 1]
