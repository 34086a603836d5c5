"""GBNF and W3C EBNF, checked against regular expressions and equivalent Lark grammars."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang_grammars.context_free.gbnf_reader import GrammarNotation, read_gbnf
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.tokens import SpecialTokens
from tests.support.grammars.cfg_membership import cfg_accepts

REGULAR = {
    "literals": ('root ::= "ab" | "a" "b"? "c"', "ab|ab?c"),
    "classes": ("root ::= [a-c] [^a] [abc]", "[a-c][^a][abc]"),
    "groups": ('root ::= ("a" | "b" ("c")*)+', "(a|bc*)+"),
    "counts": ('root ::= "a"{2} "b"{1,} "c"{0,2} "a"{,1}', "aab+c{0,2}a?"),
    "rules": ('root ::= x y-z  # comment\nx ::= "a" |\n  "b"\n\ny-z ::= x*', "[ab][ab]*"),
    "any character": ("root ::= . .", "(?s:..)"),
    "repeats of repeats": ('root ::= "a"?* "b"', "a*b"),
    "empty": ('root ::= "" | "a" ()', "a?"),
    "no spaces": ('root::="a"x\nx::=[bc]', "a[bc]"),
}


@pytest.mark.parametrize(("source", "pattern"), REGULAR.values(), ids=REGULAR)
def test_regular_grammars_agree_with_patterns(source: str, pattern: str) -> None:
    cfg = read_gbnf(source)
    num_good = 0
    for size in range(6):
        for letters in itertools.product("abc", repeat=size):
            text = "".join(letters)
            is_good = re.fullmatch(pattern, text) is not None
            assert cfg_accepts(cfg, text) == is_good, text
            num_good += is_good
    assert num_good


def test_the_json_grammar_of_llama_cpp_accepts_json() -> None:
    cfg = read_gbnf(
        r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space
ws ::= | " " | "\n" [ \t]{0,20}
"""
    )
    for text in ("{}", '{"a": [1, -2.5e3, "x\\"\\u00e9é"],"b":{} }', '{ "k":\n\ttrue}'):
        assert cfg_accepts(cfg, text), text
    for text in ("[]", '{"a":}', '{"a":"\n"}', "{'a':1}", '{"a":01}', '{"a":"\\x"}'):
        assert not cfg_accepts(cfg, text), text


def test_left_recursion_and_nesting_are_supported() -> None:
    cfg = read_gbnf('root ::= root "+" t | t\nt ::= "(" root ")" | "1"')
    assert cfg_accepts(cfg, "1+(1+1)+1")
    assert not cfg_accepts(cfg, "1+(1")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8))
def test_any_string_can_be_written_as_a_literal(text: str) -> None:
    spelled = "".join(
        f"\\U{ord(each):08x}" if ord(each) % 3 == 0 else f"\\x{ord(each):02X}" if ord(each) < 256 else each
        for each in text
    )
    cfg = read_gbnf(f'root ::= "{spelled}"')
    assert cfg_accepts(cfg, text)
    assert not cfg_accepts(cfg, text + "x")


def test_w3c_notation_is_supported() -> None:
    source = """
/* a date, of a kind */
Date ::= Year '-' ('0' [1-9] | "1" [0-2]) #x2E [#x30-#x31]? /* dot */
Year ::= [0-9] [0-9] '\\'
"""
    cfg = read_gbnf(source, notation=GrammarNotation.W3C)
    assert cfg_accepts(cfg, "20\\-12.1")
    assert cfg_accepts(cfg, "20\\-01.")
    assert not cfg_accepts(cfg, "20\\-13.1")


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ("", "start rule root is not defined", None),
        ('x ::= "a"', "start rule root is not defined", None),
        ("root ::= x", "rule x is not defined", "1:10"),
        ('root ::= "a"\nroot ::= "b"', "defined twice", "2:1"),
        ('root ::= "a', "not terminated", "1:10"),
        ('root ::= "a\n"', "not terminated", "1:10"),
        ("root ::= [a", "not terminated", "1:10"),
        ("root ::= [b-a]", "out of order", "1:14"),
        ('root ::= ("a"', "not closed", "1:10"),
        ('root ::= "a")', "unexpected '\\)'", "1:13"),
        (r'root ::= "\q"', "unknown escape", "1:11"),
        (r'root ::= "\ud800"', "not a Unicode character", "1:11"),
        ('root ::= "a"{3,2}', "ascending", "1:13"),
        ('root ::= "a"{x}', "expected bounds of the form", "1:13"),
        ("root ::= <think", "expected a token", "1:10"),
        ("root = x", "expected a rule name and ::=", "1:1"),
        ("root ::= root", "nothing can match", None),
        ("root ::= " + "(" * 90, "nested too deeply", "1:90"),
        ('root ::= "a"' + "*" * 90, "too many quantifiers", "1:93"),
    ],
)
def test_syntax_errors_are_located(source: str, reason: str, location: str | None) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_gbnf(source)
    assert caught.value.location == location


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "EBNF grammar: no rules are defined"),
        ("s ::= 'a", "EBNF grammar: this literal is not terminated (at 1:7)"),
        ("s ::= t", "EBNF grammar: rule t is not defined (at 1:7)"),
        ("s ::= 'a'\ns ::= 'b'", "EBNF grammar: rule s is defined twice (at 2:1)"),
    ],
)
def test_errors_name_the_w3c_notation(source: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_gbnf(source, notation="w3c")
    assert str(caught.value) == message


def test_hostile_grammars_stop_within_the_budget() -> None:
    with pytest.raises(GrammarError, match="too complex"):
        read_gbnf('root ::= "a"' + ' | "b" "c"' * 3000, budget=Budget(Limits(max_states=2000)))


TOKENS = SpecialTokens((b"a", b"<|x|>", b"<think>", b"</think>"), (1,))


def test_tokens_are_terminals() -> None:
    cfg = read_gbnf('root ::= <think> !</think>* </think> <[1]> !<|x|> "a"', tokens=TOKENS)
    assert {each.name: each.tokens for each in cfg.terminals} == {
        "<think>": ((2, 2),),
        "!</think>": ((0, 2),),
        "</think>": ((3, 3),),
        "<[1]>": ((1, 1),),
        "!<|x|>": ((0, 0), (2, 3)),
        '"a"': None,
    }


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ("root ::= <thing>", r"no token <thing>", "1:10"),
        ("root ::= <[9]>", "no token 9", "1:10"),
        ("root ::= !<[a]>", "expected token ids", "1:10"),
        ("root ::= <>", "expected a token", "1:10"),
        ("root ::= ! <think>", "unexpected '!'", "1:10"),
        ('root ::= "b"\n  "a<|x|>"', r"spells the special token <\|x\|> .* write <\[1\]> for the token", "2:3"),
    ],
)
def test_tokens_that_are_wrong_are_located(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_gbnf(source, tokens=TOKENS)
    assert caught.value.location == location
