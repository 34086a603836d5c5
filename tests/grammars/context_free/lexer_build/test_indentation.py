"""Indentation against lark's own Indenter: verdicts and trees on random grammars and texts, and what is refused by name."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexer_build.indentation import NUM_COLUMNS
from rtlang_grammars.context_free.lexer_build.parse_trees import parse_tree
from rtlang_grammars.context_free.lexer_build.tokenization import LexemeTokenizer
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Indentation, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars_bench.random_indented_grammars import (
    TREE_LINES,
    TREES,
    lark_of,
    lark_tree,
    random_indented_grammar,
    random_indented_text,
)
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_grammars_accept_what_lark_accepts(first: int) -> None:
    num_grammars = num_accepted = 0
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        source, lines = random_indented_grammar(rng)
        parser = lark_of(source, lines)
        if parser is None:
            continue
        try:
            grammar = lexed_grammar(source, is_lark=True, indentation=lines)
        except GrammarError as error:
            assert "matches no string" in str(error) or "may be empty" in str(error), source  # noqa: PT017
            continue
        if grammar.tables.rules.num_conflicts:  # lark shifts, this parser follows every action
            continue
        tokenizer = LexemeTokenizer(read_source(source, indentation=lines), Budget(), is_lark=True)
        num_grammars += 1
        for _ in range(60):
            text = random_indented_text(rng, source)
            tree = lark_tree(parser, text)
            assert accepts(grammar, text) == (tree is not None), (seed, text, source, lines)
            if tree is None:
                with pytest.raises(GrammarError):
                    tokenizer.lexemes(text.encode())
            else:
                num_accepted += 1
                assert parse_tree(source, text, Lexer.LARK, lines) == tree, (seed, text, source, lines)
    assert num_grammars > 3
    assert num_accepted > 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n", True),
        ("a:\n b\n c\nd\n", True),
        ("a:\n  b\n c\nd\n", False),
        ("a:\n\tb:\n\t\tc\n\n\td\n", True),
        ("(a\n b\n   )\nd\n", True),
        ("a:\n        b\n\tc\n", True),
        ("a:\n b", False),
        ("a:\n b)\n", False),
        ("a:\n" + " " * (NUM_COLUMNS - 1) + "b\n", True),
        ("(a\n" + " " * 200 + "b)\n", True),
    ],
)
def test_lines_open_and_close_blocks(text: str, expected: bool) -> None:
    parser = lark_of(TREES, TREE_LINES)
    assert parser is not None
    assert (lark_tree(parser, text) is not None) == expected
    assert accepts(lexed_grammar(TREES, indentation=TREE_LINES), text) == expected


def test_a_line_may_not_be_indented_without_end() -> None:
    assert not accepts(lexed_grammar(TREES, indentation=TREE_LINES), "a:\n" + " " * NUM_COLUMNS + "b\n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"newline": "NL"}, "newline = 'NL': the grammar has no such terminal"),
        ({"indent": "NAME"}, "indent = 'NAME': expected a terminal without a pattern"),
        ({"open": ("LSQB",)}, "open = 'LSQB': the grammar has no such terminal"),
        ({"close": ("_NL",)}, "close = '_NL': the terminal is ignored or has another use"),
        ({"dedent": "_OTHER"}, "terminal _DEDENT is declared but has no pattern"),
    ],
)
def test_what_does_not_fit_the_grammar_is_refused_by_name(changes: dict[str, object], message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        lexed_grammar(TREES, indentation=replace(TREE_LINES, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (TREES + "%ignore _NL", "the terminal is ignored"),
        (TREES.replace("[\\t ]*)+/", "[\\t ]*)+(?=ab)/"), "look-ahead of several characters in the newline"),
    ],
)
def test_newlines_that_cannot_be_held_are_refused(source: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        lexed_grammar(source, indentation=TREE_LINES)


def test_declared_terminals_without_indentation_are_refused() -> None:
    with pytest.raises(GrammarError, match="terminal _DEDENT is declared but has no pattern"):
        lexed_grammar(TREES)


def test_an_indentation_survives_the_wire() -> None:
    constraint = Constraint(ConstraintKind.LARK, TREES, indentation=TREE_LINES)
    plain = constraint.to_plain()
    assert set(map(type, plain.values())) == {str}
    assert Constraint.from_plain(plain) == constraint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indentation": "{"}, "expected the JSON text"),
        ({"indentation": '{"newline": "A"}'}, "expected the JSON text"),
        ({"indentation": '{"newline": "A", "indent": "B", "dedent": "B"}'}, "three different names"),
        ({"indentation": '{"newline": "A", "indent": "B", "dedent": "C", "tab_len": 0}'}, "tab_len = 0"),
        ({"indentation": '{"newline": "A", "indent": "B", "dedent": "C", "open": 3}'}, "expected the JSON text"),
        ({"lexer": "anywhere"}, "allowed only for constraints of kind lark with a lexer"),
        ({"kind": "gbnf"}, "allowed only for constraints of kind lark with a lexer"),
    ],
)
def test_a_wrong_indentation_is_refused(changes: dict[str, str], message: str) -> None:
    plain = Constraint(ConstraintKind.LARK, TREES, indentation=TREE_LINES).to_plain()
    with pytest.raises(GrammarError, match=message) as caught:
        Constraint.from_plain(plain | changes)
    assert caught.value.location == "indentation"


def test_bad_fields_are_refused() -> None:
    with pytest.raises(GrammarError, match="tab_len = 1001"):
        Indentation("A", "B", "C", tab_len=1001)
