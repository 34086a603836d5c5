"""The lexer against lark's: random grammars whose terminals overlap, and the cases that decide what programmers mean."""

from __future__ import annotations

import random

import lark
import pytest

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexer_build.lexer_automaton import LexerAutomaton, in_order
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars_bench.random_lark_grammars import random_grammar, random_texts
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar

WORDS = "%import common.WS\n%ignore WS\n"
COMMENTS = 'start: "x" "ab"\n%ignore /#[^\\n]*/\n%ignore " "\n%ignore "\\n"\n'
SELECT = f'start: "select" NAME "from" NAME\nNAME: /[a-z]+/\n{WORDS}'
IF = f'start: "if" N | N "=" N\nN: /[a-z]+/\n{WORDS}'
STRINGS = f'start: "[" [S ("," S)*] "]"\n%import common.ESCAPED_STRING -> S\n{WORDS}'


def lark_of(source: str) -> lark.Lark | None:
    """lark's contextual lexer and LALR parser for a grammar without conflicts; None where it has no such parser."""
    try:
        return lark.Lark(source, parser="lalr", lexer="contextual", strict=False)
    except lark.exceptions.LarkError:
        return None


def lark_accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_random_grammars_accept_what_lark_accepts(first: int) -> None:
    num_grammars = num_accepted = 0
    for seed in range(first, first + 40):
        rng = random.Random(seed)
        source = random_grammar(rng)
        parser = lark_of(source)
        if parser is None:
            continue
        try:
            grammar = lexed_grammar(source, is_lark=True)
        except GrammarError as error:
            reason = str(error)
        else:
            reason = ""
        if "matches no string" in reason:
            assert not any(lark_accepts(parser, text) for text in random_texts(rng, source, 40))
        if reason:  # what cannot be held is refused by name
            assert "matches no string" in reason or "begin with itself" in reason
            continue
        if grammar.tables.rules.num_conflicts:  # lark shifts, this parser follows every action
            continue
        num_grammars += 1
        for text in random_texts(rng, source, 40):
            expected = lark_accepts(parser, text)
            num_accepted += expected
            assert accepts(grammar, text) == expected, (seed, text, source)
    assert num_grammars > 5
    assert num_accepted > 5


@pytest.mark.parametrize("is_lark", [False, True], ids=["longest", "lark"])
@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        (COMMENTS, "x #c ab", False),
        (COMMENTS, "x #c\nab", True),
        (SELECT, "select afromb", False),
        (SELECT, "select a from b", True),
        (SELECT, "select from from b", True),
        (IF, "if if", True),
        (IF, "if = x", False),
        (IF, "x = if", True),
        (f"start: IF N\nIF: /if(?![a-z])/\nN: /[a-z]+/\n{WORDS}", "ifx", False),
        (f"start: IF N\nIF: /if(?![a-z])/\nN: /[a-z]+/\n{WORDS}", "if x", True),
        (f"start: IF N\nIF: /if\\b/\nN: /[a-z]+/\n{WORDS}", "ifx", False),
        ("start: N /é/?\nN: /[a-z]+\\b/", "aé", False),
        ("start: N /-/?\nN: /[a-z]+\\b/", "a-", True),
        ('start: A "c"\nA: /a(?=c)/', "ac", True),
        ('start: A ("c" | "d")\nA: /a(?=c)/', "ad", False),
        ('start: A ".." | A "."\nA: /a(?=\\.\\.)/', "a..", True),
        ('start: A ".." | A "."\nA: /a(?=\\.\\.)/', "a.", False),
        ('start: N (".." N)?\nN: /[0-9]+(\\.[0-9]+)?/', "1..2", True),
        ('start: N (".." N)?\nN: /[0-9]+(\\.[0-9]+)?/', "1.5..2", True),
        ('start: A B\nA.2: "a"\nB: /[ab]+/', "aab", True),
        (STRINGS, '["a","b"]', True),
        (STRINGS, '["a\\"b"]', True),
        (STRINGS, '["a" "b"]', False),
    ],
)
def test_both_orders_agree_with_lark(source: str, text: str, expected: bool, *, is_lark: bool) -> None:
    parser = lark_of(source)
    assert parser is not None
    assert lark_accepts(parser, text) == expected
    assert accepts(lexed_grammar(source, is_lark=is_lark), text) == expected


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('start: "a" ("\\n" "a")*\n%ignore /[ \\n]+/', ["a\na", "a", "a a"]),
        ('start: ("é"i | NAME "!")\nNAME: /\\w+/i', ["É", "é", "É!", "e!"]),
        ('start: ("kind"i | NAME "!")\nNAME: /\\w+/i', ["Kind", "\u212aind", "\u212aind!", "kin!"]),
        ('start: A C+ | B D\nA.2: /a(?=éé)/\nB: /aé/\nC: "é"\nD: "éx"', ["aéé", "aééx", "aéx"]),
    ],
)
def test_rare_orders_are_those_of_lark(source: str, texts: list[str]) -> None:
    parser, grammar = lark_of(source), lexed_grammar(source, is_lark=True)
    assert parser is not None
    assert [accepts(grammar, text) for text in texts] == [lark_accepts(parser, text) for text in texts]


def test_the_longest_match_wins_where_lark_takes_the_first() -> None:
    alternatives = 'start: W "!"\nW: /a|ab/'
    assert accepts(lexed_grammar(alternatives), "ab!")
    assert not accepts(lexed_grammar(alternatives, is_lark=True), "ab!")
    power = 'start: N (OP N)*\nOP: "*" | "//" | POWER\nPOWER: "**"\nN: /[0-9]+/'
    assert accepts(lexed_grammar(power), "2**3")


def test_a_keyword_in_any_case_is_no_name() -> None:
    source = 'start: "if"i N\nN: /[a-z]+/i\n%ignore " "'
    for is_lark in (False, True):
        grammar = lexed_grammar(source, is_lark=is_lark)
        assert accepts(grammar, "IF a")
        assert accepts(grammar, "if if")
        assert not accepts(grammar, "of a")


def test_a_context_that_cannot_be_made_leaves_nothing_behind() -> None:
    source = read_source("start: A | B | C\nA: /(?:x{7})+y/\nB: /(?:x{11})+z/\nC: /(?:x{13})+w/")
    automaton = LexerAutomaton(in_order(source.terminals, is_lark=False), Budget(), is_lark=False)
    first = automaton.start([0])
    num_states = len(automaton.following)
    automaton.budget = Budget(Limits(max_states=500))
    for _ in range(2):
        with pytest.raises(GrammarError, match="too complex"):
            automaton.start([0, 1, 2])
        assert len(automaton.following) == len(automaton.wins) == len(automaton.is_start) == num_states
    automaton.budget = Budget()
    assert automaton.start([0]) == first
    assert automaton.start([0, 1]) == num_states
