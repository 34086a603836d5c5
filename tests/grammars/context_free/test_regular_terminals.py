"""Larger terminals: the language is unchanged, and strings, numbers and names of published grammars become terminals."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.context_free.cfg import Cfg
from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.context_free.regular_terminals import with_regular_terminals
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars_bench.gbnf_fuzz import random_rules, random_texts, source_of
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.random_grammars import lark_grammars, words
from tests.support.long_tests import sized

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""

TEMPLATE = 'root ::= "\\"" ([a-z ] | "\\\\" ["n] | "${" root "}")* "\\""'


def folded(source: str) -> Cfg:
    return with_regular_terminals(read_gbnf(source), Budget())


def texts_of(cfg: Cfg) -> list[str | None]:
    return [each.language.shortest() for each in cfg.terminals]


def test_the_rules_of_json_become_terminals() -> None:
    cfg = folded(JSON)
    assert {'""', "0", "null", "{", "}", "[", "]", ":", ","} <= {*texts_of(cfg)}
    assert len(cfg.terminals) == 10  # and the blanks
    for text in ('{"a":{},"b" : [1,"\\u00e9",\nnull]}', "{}"):
        assert cfg_accepts(cfg, text)
    assert not cfg_accepts(cfg, '{"a"}')


def test_a_repeat_reads_a_run_of_its_regular_parts_at_once() -> None:
    cfg = folded(TEMPLATE)
    (run,) = (each.language for each in cfg.terminals if each.language.accepts('a \\n b\\"'))
    assert not run.accepts("")
    for text in ('"ab\\n"', '"a${"b"}c${""}"', '""'):
        assert cfg_accepts(cfg, text), text
    assert not cfg_accepts(cfg, '"a${b}"')


@pytest.mark.parametrize("source", ["root ::= [^x] root [a] | [b]", 'root ::= "a" root | x "b"\nx ::= "(" x ")" | ""'])
def test_grammars_keep_their_language(source: str) -> None:
    before, after = read_gbnf(source), folded(source)
    rng = random.Random(1)
    for _ in range(sized(200)):
        text = "".join(rng.choice("ab()é") for _ in range(rng.randint(0, 6)))
        assert cfg_accepts(after, text) == cfg_accepts(before, text), text


def test_random_gbnf_keeps_its_language() -> None:
    num_accepted = 0
    for seed in range(sized(40)):
        rng = random.Random(seed)
        rules = random_rules(rng)
        try:
            before = read_gbnf(source_of(rules))
        except GrammarError:
            continue
        after = with_regular_terminals(before, Budget())
        for text in random_texts(rng, rules)[:6]:
            expected = cfg_accepts(before, text)
            num_accepted += expected
            assert cfg_accepts(after, text) == expected, (seed, text)
    assert num_accepted > sized(40)


@given(lark_grammars(), st.lists(words(), min_size=1, max_size=6))
@settings(max_examples=sized(60), deadline=None, derandomize=True)
def test_random_lark_grammars_keep_their_language(source: str, texts: list[str]) -> None:
    try:
        before = read_lark(source)
    except GrammarError:
        return
    after = with_regular_terminals(before, Budget())
    for text in texts:
        assert cfg_accepts(after, text) == cfg_accepts(before, text), text
