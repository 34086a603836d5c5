"""Rules of GBNF and EBNF whose options decide which texts they have: the texts that remain, and refusals."""

from __future__ import annotations

import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.lowering.compilation import check_constraint
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import any_of
from rtlang_grammars.spec.vocabulary import Vocabulary


def test_texts_of_shaped_rules() -> None:
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    backend = RtlangBackend.create(Vocabulary(tokens, frozenset([256]), frozenset([256]), 257))
    cases = [
        ('root ::= "<" name ">" rest\nname[lazy] ::= [a-z]+\nrest ::= [a-z]+', ["<a>b", "<c>bb"], ["<ab>b", "<>b"]),
        ('root ::= r ">"\nr[max_chars=2] ::= [a-zé]*', [">", "a>", "éb>"], ["abc>"]),
        ('root ::= (r ",")* "."\nr[max_chars=0] ::= [a-z]*', [".", ",,."], ["a,."]),
        ('root ::= r ">"\nr[lazy] ::= "a"*', [">"], ["a>"]),
        ('root ::= r "z"\nr [suffix="]\\n"] ::= [a-z\\]]*'.replace("r [", "r["), ["ab]\nz", "]\nz"], ["ab]z", "abz"]),
        (
            'root ::= o ">"\no[max_chars=3] ::= "x" i\ni[max_chars=5] ::= j\nj[max_chars=4] ::= [a-z]*',
            ["xab>", "x>"],
            ["xabc>"],
        ),
        ('root ::= o ">"\no[max_chars=9] ::= "x" i i\ni[max_chars=1] ::= [a-z]*', ["xab>", "xa>"], ["xabc>"]),
        ('root ::= a\na[max_chars=3] ::= b ("," b)*\nb ::= [0-9]', ["1", "1,2"], ["1,2,3", ","]),
    ]
    for source, accepted, rejected in cases:
        grammar = backend.compile(Constraint(ConstraintKind.GBNF, source))
        verdicts = [grammar.matcher().completes_bytes(text.encode()) for text in (*accepted, *rejected)]
        assert verdicts == [True] * len(accepted) + [False] * len(rejected), source
    first = backend.compile(
        Constraint(ConstraintKind.EBNF, "top ::= r '>'\nr[lazy, capture] ::= [a-z]+ /* x */ | #x31")
    )
    matcher = first.matcher()
    assert matcher.completes_bytes(b"1>")
    assert not first.matcher().completes_bytes(b"ab>")


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ('root ::= r\nr[max_tokens=2] ::= "(" r ")" | "a"', "rule r: lazy, .*it contains itself, a token", "2:2"),
        ('root ::= r\nr[lazy] ::= s\ns[capture] ::= "a"', "not of s, with options", "2:2"),
        ("root ::= r\nr[lazy] ::= <[1]>", "it contains itself, a token", "2:2"),
        ('root ::= r\nr[max_chars=3] ::= s\ns[lazy] ::= "a"+', "or a rule with lazy or max_tokens", "2:2"),
        ('root ::= r\nr[lazy=1] ::= "a"', "rule r: option lazy: expected no value", "2:2"),
        ('root ::= r\nr[max_chars=1] ::= "ab"', "rule r: max_chars = 1 leaves it no text", "2:2"),
        ('root ::= r\nr[suffix=/a/] ::= "ab"', "options suffix and stop: expected a string", "2:2"),
        ('root ::= r*\nr[capture] ::= "a"*', "options of rules: .*may be empty", None),
    ],
)
def test_refusals(source: str, reason: str, location: str | None) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        check_constraint(Constraint(ConstraintKind.GBNF, source))
    assert caught.value.location == location


def test_composed_forms_have_no_options() -> None:
    with pytest.raises(GrammarError, match="not inside composed forms"):
        check_constraint(any_of("b", Constraint(ConstraintKind.GBNF, 'root[capture] ::= "a"')))


def test_options_that_are_not_reported_leave_plain_terminals() -> None:
    cfg = read_gbnf('root ::= r "!"\nr[max_chars=2] ::= [a-z]+')
    assert not cfg.has_options
    assert read_gbnf('root ::= r "!"\nr[max_chars=2, capture] ::= [a-z]+').has_options
