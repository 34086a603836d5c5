"""Tokens in the source of Lark grammars: where they are found, what they stand for, and where errors are."""

from __future__ import annotations

import pytest
from lark.grammar import Terminal as LarkTerminal

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lark_tokens import take_out_tokens
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.tokens import AnyTokens, SpecialTokens

TOKENS = SpecialTokens((b"a", b"<|im_start|>", b"<s>", b"[INST]", b"<|end|>"), (1, 2, 3, 4), (4,))


def expansion_of(source: str) -> list[object]:
    """The only alternative of the start rule: literals as their texts, tokens as their ids."""
    found = read_source(source, tokens=TOKENS)
    by_name = {each.name: each for each in found.terminals}
    (rule,) = [rule for rule in found.rules if rule.origin.name == "start"]
    terminals = [by_name[each.name] for each in rule.expansion if isinstance(each, LarkTerminal)]
    return [each.tokens or each.text or each.pattern for each in terminals]


def test_tokens_are_terminals_of_rules() -> None:
    source = 'start: <|im_start|> "a" <s><[1-3]>"b" <[^2]> /<s>/ // <|nothing|>\n'
    inst = ((1, 1), (3, 3))
    assert expansion_of(source) == [((1, 1),), "a", ((2, 2),), ((1, 3),), "b", ((0, 1), (3, 3)), "<s>"]
    assert inst[0] == (1, 1)


def test_lines_and_columns_stay() -> None:
    source = 'start: <s> x /<s>"/ "\\"<" // <s>\n  # <|im_start|>\nx: <|im_start|>~2 "a"\n'
    found = take_out_tokens(source, TOKENS)
    lines, written = found.text.splitlines(), source.splitlines()
    assert [len(line) for line in lines[: len(written)]] == [len(line) for line in written]
    assert {token.source for token in found.tokens.values()} == {"<s>", "<|im_start|>"}
    assert lines[0].endswith('x /<s>"/ "\\"<" // <s>')
    assert lines[1] == written[1]
    assert lines[-1] == f"%declare {' '.join(found.tokens)}"


def test_a_source_without_tokens_stays_as_it_is() -> None:
    source = 'start: "a" /</ // <s>\n'
    assert take_out_tokens(source, TOKENS).text == source


def test_the_names_that_stand_for_tokens_are_free() -> None:
    source = 'start: AA <s>AB\nAA: "x"\nAB: "y"\n'
    assert expansion_of(source) == ["x", ((2, 2),), "y"]


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ('start: "a"\n  | <|im_stort|>', r"no token <\|im_stort\|>; did you mean <\|im_start\|>", "2:5"),
        ('start: "a" <[1,17]>', "no token 17", "1:12"),
        ("start: <[1-]> x", "expected token ids", "1:8"),
        ("start: <>", "expected the name of a token", "1:8"),
        ("start: x<s>\nx: /b/", "a blank is missing before <s>", "1:9"),
        ('A: <s> "a"\nstart: A', "terminal A contains <s>: tokens are allowed in rules only", "1:1"),
        ('start: <s>\n  y "b"', "Unexpected token", "2:5"),
        ("start: <s> ) x", r"'\)'", "1:12"),
        ("start: (<s>", "Unexpected token", "1:12"),
        ('start: "x"\n | "a<s>b"', r"'a<s>b' spells the special token <s> .* write <s> without quotes", "2:4"),
        (r'start: "\x3cs>"', "spells the special token <s>", "1:8"),
        ('start: "[INST]"', r"write <\[3\]> without quotes", "1:8"),
        ('start: a\na: "x"\nB: "b<s>"', "spells the special token <s>", "3:4"),
        ("start: <s> z <s>", "z", "1:12"),
    ],
)
def test_errors_show_tokens_as_they_were_written_and_where(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_source(source, tokens=TOKENS)
    assert caught.value.location == location
    assert "AA" not in caught.value.reason


def test_without_a_vocabulary_every_token_is_known_and_strings_are_text() -> None:
    found = read_source('start: <|anything|> "<s>" <[7]>', tokens=AnyTokens())
    assert sum(each.tokens is not None for each in found.terminals) == 2
    assert [each.text for each in found.terminals if each.tokens is None] == ["<s>"]


def test_tokens_are_ignored_repeated_and_arguments_of_templates() -> None:
    source = 'start: pair{<s>, "a"}\npair{x, y}: x ~ 2 y?\n%ignore <|im_start|>\n'
    found = read_source(source, tokens=TOKENS)
    by_name = {each.name: each.tokens for each in found.terminals}
    assert {by_name[name] for name in found.ignored} == {((1, 1),)}
    assert ((2, 2),) in by_name.values()
