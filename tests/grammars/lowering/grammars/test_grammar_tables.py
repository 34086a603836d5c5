"""Lark grammars on the machine: against Lark's own Earley parser, and every token tried."""

from __future__ import annotations

import functools
import random

import lark
import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.context_free.lark_library import LIBRARY, library_constraint
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)

GRAMMARS = {
    "nested": ('start: "(" start ")" | "[" (start ("," start)*)? "]" | /[a-c]+/', "()[],ab"),
    "statements": (
        """
        start: statement+
        statement: NAME "=" sum ";"
        sum: atom ("+" atom)*
        atom: NAME | /[0-9]+/ | "{" sum "}"
        NAME: /[a-z]+/
        %ignore " "
        """,
        "a=1+;{} ",
    ),
    "left recursion": ('start: start "+" t | t\nt: t "*" f | f\nf: "a" | "(" start ")"', "a+*()"),
    "ambiguous": ('start: start start | "a" | "ab" | "b"?', "abc"),
    "right recursion": ('start: "a" start "b"? | "c"', "abc"),
    "empty rules": ('start: x y z\nx: "a"?\ny: x x\nz: ("b" y)*', "ab"),
    "unit cycle": ('start: a\na: b | "x"\nb: a "y" | a', "xy"),
    "operators": ('start: "a"~2..3 ["b"] ("c" | "d")+ "e"~2', "abcde"),
    "templates": ('start: list{item, ","}\nlist{x, y}: "[" (x (y x)*)? "]"\nitem: "a" | list{item, ";"}', "[],;a"),
    "terminals": (
        'start: A B?\nA: "a".."c" X~1..2 | /x\\/y/i\nX: "\\n" | "\\\\"\nB: "if"i\n%import common.DIGIT\n',
        "abX/y\n\\iF",
    ),
    "blanks": (
        "start: (WORD | NUMBER)*\n%import common.WORD\n%import common.NUMBER\n%import common.WS\n%ignore WS",
        "a1. \n",
    ),
    "keywords": ('start: "if" NAME | NAME "=" NAME\nNAME: /[a-z]+/\n%ignore / +/', "if=a "),
    "joined repeats": ('start: (T | "<" start ">" | "&")*\nT: /[a-c ]+/', "<>&ab c"),
    "joined pairs": ('start: (T T | "x")* "y"?\nT: /(ab|c)+/', "abcxy"),
    "circles": ('start: a* "."\na: "x" b | "y"\nb: "(" start ")" c?\nc: "z" | "[" a "]"', "xyz()[]."),
    "lazy": ('start: COMMENT+ "x"?\nCOMMENT: "/*" /(.|\\n)*?/ "*/"', "/*x\n"),
    "unproductive": ('start: "a" | loop | loop "b"\nloop: "x" loop', "abx"),
}


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


@functools.cache
def matcher_of(source: str) -> MachineMatcher:
    matcher = backend().compile(Constraint(ConstraintKind.LARK, source, lexer=Lexer.ANYWHERE)).matcher()
    assert isinstance(matcher, MachineMatcher)
    return matcher


def mask(matcher: MachineMatcher) -> list[int]:
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


def parses(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_are_accepted_as_lark_says(name: str) -> None:
    source, alphabet = GRAMMARS[name]
    parser = lark.Lark(source, parser="earley", lexer="dynamic_complete")
    rng = random.Random(3)
    num_accepted = 0
    for _ in range(150):
        if rng.random() < 0.5:  # a text near the language: a prefix that the machine allows, and its completion
            matcher, tokens = matcher_of(source).fork(), list[int]()
            for _ in range(rng.randint(0, 6)):
                allowed = [
                    t
                    for t in mask(matcher)
                    if t not in VOCABULARY.eos_token_ids and VOCABULARY.token_bytes[t].isascii()
                ]
                if not allowed:
                    break
                tokens.append(rng.choice(allowed))
                assert matcher.accept_token(tokens[-1])
            closing = matcher.closing_bytes()
            assert closing is not None
            text = (VOCABULARY.text_of(tokens) + closing).decode()
            if rng.random() < 0.3 and text:
                at = rng.randrange(len(text))
                text = text[:at] + rng.choice(alphabet) + text[at + 1 :]
        else:
            text = "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 7)))
        accepted = matcher_of(source).accepts([*spell(VOCABULARY, text, rng), END])
        assert accepted == parses(parser, text), text
        num_accepted += accepted
    assert num_accepted > 20


@pytest.mark.parametrize("source", [source for source, _ in GRAMMARS.values()], ids=list(GRAMMARS))
def test_mask_equals_trying_every_token_and_every_way_can_be_completed(source: str) -> None:
    rng = random.Random(4)
    for _ in range(3):
        matcher = matcher_of(source).fork()
        for _ in range(10):
            allowed = mask(matcher)
            assert allowed == [t for t in range(VOCABULARY.vocab_size) if matcher.fork().accept_token(t)]
            closing = matcher.shortest_completion(200)
            assert closing is not None
            assert matcher.accepts([*closing, END])
            allowed = [token for token in allowed if token not in VOCABULARY.eos_token_ids]
            if not allowed:
                break
            assert matcher.accept_token(rng.choice(allowed))


@pytest.mark.parametrize("name", [name for name in LIBRARY if library_constraint(name).lexer is Lexer.ANYWHERE])
def test_the_library_compiles_and_is_completed(name: str) -> None:
    rng = random.Random(5)
    parser = lark.Lark(library_constraint(name).source, parser="earley", lexer="dynamic")
    for _ in range(5):
        matcher, tokens = matcher_of(library_constraint(name).source).fork(), list[int]()
        for _ in range(12):
            allowed = [t for t in mask(matcher) if t not in VOCABULARY.eos_token_ids]
            allowed = [t for t in allowed if VOCABULARY.token_bytes[t].isascii()] or allowed
            if not allowed:
                break
            tokens.append(rng.choice(allowed))
            assert matcher.accept_token(tokens[-1])
        closing = matcher.closing_bytes()
        assert closing is not None
        parser.parse((VOCABULARY.text_of(tokens) + closing).decode())


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("", None),
        ('start: "a', "1:8"),
        ("start: missing", None),
        ('other: "a"', None),
        ("start: /a(/", "1:8"),
        ("start: A\nA: /a(?<=ba)/", None),
        ("start: start", None),
        ('start: "x"\n%import nothing.AT_ALL', None),
        ('start: "a"~3..2', None),
        ('start: "' + "a" * 200_000 + '"', None),
        ("start: " + "(" * 5000 + '"a"' + ")" * 5000, None),
    ],
    ids=lambda value: str(value)[:25],
)
def test_a_bad_grammar_is_refused(source: str, location: str | None) -> None:
    with pytest.raises(GrammarError) as caught:
        backend().compile(Constraint(ConstraintKind.LARK, source, lexer=Lexer.ANYWHERE))
    assert caught.value.reason
    if location is not None:
        assert caught.value.location == location


GBNF = """
root ::= (pair ", "?)* end?   # llama.cpp's own notation
pair ::= [a-c]{1,2} "=" ("\\x41" | number)
number ::= "-"? [0-9]+ ("." [0-9]+)?
end ::= "\\n" root
"""
EBNF = """
list ::= item (', ' item)*  /* the first rule is the start */
item ::= [a-c]+ | '(' list ')' | #x41
"""


@pytest.mark.parametrize(
    ("kind", "source", "good", "bad"),
    [
        (
            ConstraintKind.GBNF,
            GBNF,
            ["", "a=1", "ab=-1.5, c=A", "a=A\nb=2", "a=1b=2"],
            ["a", "abc=1", "a=1.", "d=1", "\na"],
        ),
        (ConstraintKind.EBNF, EBNF, ["a", "ab, (c, (A))", "A"], ["", "a,b", "()", "d", "(a"]),
    ],
)
def test_the_other_notations_are_read(kind: ConstraintKind, source: str, good: list[str], bad: list[str]) -> None:
    grammar = backend().compile(Constraint(kind, source))
    for text in [*good, *bad]:
        assert grammar.matcher().accepts([*spell(VOCABULARY, text), END]) == (text in good), text
    with pytest.raises(GrammarError) as caught:
        backend().compile(Constraint(kind, source + "other ::= ("))
    assert caught.value.location is not None


def test_many_options_are_not_multiplied_out() -> None:
    source = "start: " + " ".join(f'"{chr(97 + i)}"?' for i in range(26)) + ' "!"'
    assert matcher_of(source).accepts([*spell(VOCABULARY, "acz!"), END])
    assert not matcher_of(source).accepts(spell(VOCABULARY, "ca"))
