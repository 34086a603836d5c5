"""Ready grammars against samples, the lark library, and the standard library's readers."""

from __future__ import annotations

import csv
import functools
import io
import json
import random

import lark
import pytest

from rtlang_grammars.backends import create_backend
from rtlang_grammars.budget import BudgetKeeper
from rtlang_grammars.closing import CompletionSearch
from rtlang_grammars.lark_library import LIBRARY, library_constraint, library_grammar
from rtlang_grammars.spec import CompiledGrammar
from tests.support.vocabularies import random_text, small_vocabulary, spell

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
SEARCH = CompletionSearch(VOCABULARY)

GOOD = {
    "json": [
        "null",
        " true ",
        "-12.5e+3",
        '""',
        '"a\\n\\u00e9 é 日本"',
        "[]",
        "[1, [2], {}]",
        '{"a": {"b": [null, "x"]}, "c": 0}',
        '{\n  "k" : [ ]\n}',
    ],
    "csv": ["a", "a,b\n1,2\n", '"x, y","say ""hi"""\n,\n', "", "name,age\nÉva,3", '"two\nlines",1'],
    "arithmetic": ["1", "1+2", "(1 + 2.5) * -3", "2^10 / (4 - 0.5)", "-(1)", "((7))"],
    "sql_select": [
        "SELECT * FROM users",
        "SELECT DISTINCT a, b AS c FROM t AS u;",
        "SELECT COUNT(*), MAX(t.price) FROM t WHERE a = 1 AND (b <> 'it''s' OR NOT c IS NULL) GROUP BY t.a HAVING COUNT(*) > 2",
        "SELECT a FROM t LEFT JOIN u ON t.id = u.id ORDER BY a DESC, b LIMIT 10 OFFSET 5",
        "SELECT a FROM t WHERE b IN (1, 2, 'x') AND c BETWEEN 1 AND 5 AND d NOT LIKE 'a%'",
        "SELECT a * 2 + b FROM t",
    ],
}
BAD = {
    "json": ["", "nul", "01", "1.", "[1,]", "{a: 1}", '{"a" 1}', '"\n"', '"\\x"', "[1] 2", "'a'"],
    "csv": ['"open', 'a"b', '"a"b,c', "a\r"],
    "arithmetic": ["", "1+", "(1", "1 2", "01", "1  + 2", "--1", "x", "1.", "()"],
    "sql_select": [
        "",
        "SELECT",
        "select * from users",
        "SELECT  * FROM t",
        "SELECT a, FROM t",
        "SELECT * FROM t WHERE",
        "SELECT * FROM t; DROP TABLE t",
        "SELECT * FROM t LIMIT x",
        "SELECT * FROM t WHERE a = 'open",
        "DELETE FROM t",
    ],
}


@functools.cache
def compiled(name: str) -> CompiledGrammar:
    return create_backend("llguidance", VOCABULARY, SEARCH).compile(library_constraint(name))


@functools.cache
def parser(name: str) -> lark.Lark:
    return lark.Lark(library_grammar(name), parser="earley", lexer="dynamic_complete" if name != "json" else "dynamic")


def matches(name: str, text: str, rng: random.Random | None = None) -> bool:
    return compiled(name).matcher().accepts([*spell(VOCABULARY, text, rng), END])


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in LIBRARY for text in GOOD[name]])
def test_good_texts_match_however_they_are_spelled(name: str, text: str) -> None:
    assert matches(name, text)
    for seed in range(5):
        assert matches(name, text, random.Random(seed))
    parser(name).parse(text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in LIBRARY for text in BAD[name]])
def test_bad_texts_do_not_match(name: str, text: str) -> None:
    assert not matches(name, text)
    with pytest.raises(lark.exceptions.LarkError):
        parser(name).parse(text)


@pytest.mark.parametrize("name", LIBRARY)
def test_generated_texts_parse(name: str) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        matcher = compiled(name).matcher()
        path = SEARCH.find(matcher, 40)
        assert path is not None
        text = random_text(VOCABULARY, matcher, BudgetKeeper(SEARCH, path), 40, rng)
        if name == "json":
            json.loads(text)
        elif name == "csv":
            assert list(csv.reader(io.StringIO(text), strict=True)) or not text.strip("\n")
        else:
            parser(name).parse(text)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="sql_select"):
        library_grammar("nothing")
