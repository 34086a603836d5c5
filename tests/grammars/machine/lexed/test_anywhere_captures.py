"""Captures, temperatures and budgets of rules in GBNF, against cases by hand and a brute-force interpreter."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.gbnf_option_oracle import LETTERS, GbnfOptionInterpreter, random_gbnf_option_grammar
from tests.support.long_tests import sized


def backend_of(texts: list[bytes]) -> RtlangBackend:
    end = len(texts)
    return RtlangBackend.create(Vocabulary((*texts, b"<end>"), frozenset([end]), frozenset([end]), end + 1))


WORDS = [b"ab ", b"cd", b"</t>", b"<t>"]
TOKENS = [*(bytes([byte]) for byte in range(256)), *WORDS]


def begun(source: str, *tokens: bytes) -> MachineMatcher:
    matcher = backend_of(TOKENS).compile(Constraint(ConstraintKind.GBNF, source)).matcher()
    for token in tokens:
        assert matcher.accept_token(TOKENS.index(token)), token
    return matcher


def spelled(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ('root ::= item ("," item)*\nitem[capture] ::= [0-9]+', "1,22,333", {"item": [b"1", b"22", b"333"]}),
        ('root ::= l\nl[capture] ::= [0-9] "," l | [0-9]', "1,2,3", {"l": [b"3", b"2,3", b"1,2,3"]}),
        ('root ::= l\nl[capture] ::= l "," [0-9] | [0-9]', "1,2,3", {"l": [b"1", b"1,2", b"1,2,3"]}),
        ("root ::= x x\nx[capture] ::= [a-c]*", "abc", {"x": [b"abc", b""]}),
        (
            'root[capture="o"] ::= r "z"\nr[capture="i", suffix="!!", stop_capture="m"] ::= [a-z]*',
            "xy!!z",
            {"m": [b"!!"], "i": [b"xy"], "o": [b"xy!!z"]},
        ),
        ('root[capture="o"] ::= r r\nr[capture="i", stop="!"] ::= [a-z]*', "x!y!", {"i": [b"x", b"y"], "o": [b"xy"]}),
        ('root ::= a*\na[capture] ::= "x"', "", {}),
    ],
)
def test_captures(source: str, text: str, expected: dict[str, list[bytes]]) -> None:
    matcher = begun(source, *spelled(text))
    assert matcher.is_accepting
    assert matcher.captures() == expected


def test_budgets_and_captures_follow_rollbacks_and_forks() -> None:
    source = 'root ::= "<t>" r "</t>" "1"\nr[max_tokens=2, capture] ::= [a-z ]*'
    matcher = begun(source, b"<t>", b"ab ")
    forked = matcher.fork()
    assert matcher.accept_token(TOKENS.index(b"cd"))
    listed = matcher.allowed(range(len(TOKENS)))
    assert {token for token, is_allowed in zip(TOKENS, listed, strict=True) if is_allowed} == {b"<", b"</t>"}
    assert matcher.accept_token(TOKENS.index(b"</t>"))
    assert matcher.captures() == {"r": [b"ab cd"]}
    matcher.rollback(2)
    assert matcher.captures() == {}
    assert not matcher.accepts([TOKENS.index(b"cd")] * 2)
    assert forked.accept_token(TOKENS.index(b"</t>"))
    assert forked.captures() == {"r": [b"ab "]}
    words = begun('root ::= "<t>" r "</t>"\nr[max_tokens=1] ::= ([a-z]+ " ")+', b"<t>", b"cd")  # inside a word
    assert not words.takes(TOKENS.index(b"</t>"))
    assert words.accepts([TOKENS.index(b"cd"), TOKENS.index(b"ab "), TOKENS.index(b"</t>")])
    assert not words.accepts([TOKENS.index(b"ab "), TOKENS.index(b"cd")])


def test_temperatures_are_inherited() -> None:
    source = 'root ::= a b\na[temperature=0.3] ::= "(" a ")" | c\nc ::= "x"+\nb[temperature=0.9] ::= "." d\nd[temperature=0] ::= [0-9]+'
    matcher = begun(source)
    found = []
    for token in spelled("(x).1"):
        found.append(matcher.temperature)
        assert matcher.accept_token(TOKENS.index(token))
    assert found == [0.3, 0.3, 0.3, 0.9, 0.0]
    either = begun('root ::= l | r\nl[temperature=0.2] ::= "a"+\nr[temperature=0.8] ::= "ab"')
    assert either.temperature == 0.8


def test_random_grammars_equal_an_interpreter() -> None:
    rng = random.Random(1)
    texts = {letter.encode() for letter in LETTERS}
    while len(texts) < 16:
        texts.add("".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 3))).encode())
    tokens = sorted(texts)
    backend, num_read = backend_of(tokens), 0
    for seed in range(sized(2_000, usual=12)):
        rng = random.Random(seed)
        random_grammar = random_gbnf_option_grammar(rng)
        try:
            grammar = backend.compile(Constraint(ConstraintKind.GBNF, random_grammar.source))
        except GrammarError as error:
            assert "may be empty" in error.reason, random_grammar.source  # noqa: PT017
            continue
        num_read += 1
        interpreter = GbnfOptionInterpreter(random_grammar)
        for _ in range(2):
            matcher, place, trail = grammar.matcher(), interpreter.start, []
            while sum(map(len, trail)) < 4:
                about = seed, trail, random_grammar.source
                assert matcher.is_accepting == interpreter.is_complete(place), about
                if matcher.is_accepting:
                    named = {
                        name: [each.decode() for each in found if each] for name, found in matcher.captures().items()
                    }
                    assert {name: found for name, found in named.items() if found} in interpreter.captures(place), about
                after = [interpreter.after(place, token.decode()) for token in tokens]
                assert matcher.allowed(range(len(tokens))) == list(map(bool, after)), about
                following = [token_id for token_id, reached in enumerate(after) if reached]
                if not following:
                    break
                chosen = rng.choice(following)
                place = after[chosen]
                trail.append(tokens[chosen])
                assert matcher.accept_token(chosen), about
    assert num_read > 10
