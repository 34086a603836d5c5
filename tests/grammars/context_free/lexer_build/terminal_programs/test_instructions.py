"""Look-ahead of several characters, against Python's `re` and, in lark's own Python grammar, against lark."""

from __future__ import annotations

import random
import re
from pathlib import Path

import lark
import pytest
from lark.indenter import PythonIndenter

from rtlang_grammars.spec.constraint import Indentation
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar
from tests.support.long_tests import sized

SNIPPETS = [
    "x = ''\n",
    "x = '' ''\n",
    "x = 'a\\'b' + r\"\\\" #\" # '\n",
    "x = '''a''b'''\n",
    'x = """"a\\""" + ""\n',
    "x = ''a\n",
    "x = '\n'\n",
    "if x:\n    y = (1,\n'' )\n\nz = 0\n",
    "if x:\ny = 1\n",
    "x = 01\n",
    "x = 00\n",
]


def test_look_ahead_is_that_of_re() -> None:
    rng = random.Random(5)

    def atom() -> str:
        return rng.choice(["a", "b", "[ab]", ".", "é", "(?:ab|c)"])

    def ahead() -> str:
        ways = ["".join(atom() + rng.choice(["", "?"]) for _ in range(rng.randint(1, 3))) for _ in range(2)]
        return f"(?{rng.choice('!=')}{rng.choice([ways[0], '|'.join(ways)])}{rng.choice(['', '', '(?!c)'])})"

    num_texts = 0
    for _ in range(sized(1000, usual=25)):
        parts = [rng.choice([ahead(), f"(?:{ahead()}{atom()})+", atom(), atom() + "*?"]) for _ in range(3)]
        pattern = "".join((*parts, rng.choice(["", ahead()])))
        try:
            grammar = lexed_grammar(f"start: A B*\nA.1: /{pattern}/\nB: /(?s:.)/")
        except GrammarError:
            continue
        for _ in range(20):
            text = "".join(rng.choice("abcé") for _ in range(rng.randint(1, 6)))
            num_texts += 1
            assert accepts(grammar, text) == (re.match(pattern, text) is not None), (pattern, text)
    assert num_texts > 200


def test_look_ahead_may_see_beyond_the_terminal() -> None:
    grammar = lexed_grammar('start: A B?\nA: /(?!if\\b|else\\b)[a-z]+(?!::|\\()/\nB: "::" | ":" | "(" | "."')
    texts = {
        "if": False,
        "iffy": True,
        "else.": False,
        "x::": False,
        "x:": True,
        "x(": False,
        "x.": True,
        "elsey": True,
    }
    assert {text: accepts(grammar, text) for text in texts} == texts
    with pytest.raises(GrammarError, match="more than 8 bytes after the terminal"):
        lexed_grammar("start: A\nA: /a(?!éééééb)/")


def test_larks_own_grammar_of_python_is_read_as_lark_does() -> None:
    source = "start: file_input\n" + (Path(lark.__file__).parent / "grammars/python.lark").read_text()
    brackets = ("LPAR", "LSQB", "LBRACE"), ("RPAR", "RSQB", "RBRACE")
    grammar = lexed_grammar(source, indentation=Indentation("_NEWLINE", "_INDENT", "_DEDENT", *brackets))
    oracle = lark.Lark(source, parser="lalr", postlex=PythonIndenter())
    for text in SNIPPETS:
        try:
            oracle.parse(text)
        except lark.exceptions.LarkError:
            expected = False
        else:
            expected = True
        assert accepts(grammar, text) == expected, text
