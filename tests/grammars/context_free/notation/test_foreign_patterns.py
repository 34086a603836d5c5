"""Patterns in the spelling of Rust's and JavaScript's expressions: llguidance (Rust's own engine) is the oracle."""

from __future__ import annotations

import re
import unicodedata

import llguidance
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.context_free.notation.foreign_patterns import with_python_patterns
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

PATTERNS = [
    r"(?<name>ab)+(?P<other>c)",
    r"x\u{1F600}+\x{2e}y",
    r"\p{Lu}\P{Lu}\pN",
    r"[\p{Greek}_(?<a]+",
    r"[^\p{L}]x",
    r"[]\u{5d}\u{41}-\u{43}]+",
    r"\\p{2}",
    r"a\u{2f}b",
]
TEXTS = [
    *["abc", "ababc", "ab", "x😀.y", "x😀ay", "Éé٣", "éÉ3", "Aa1", "α_β(?<a", "αb", "1x", "ax", "]AC]", "D"],
    *["\\pp", "\\p", "a/b", "a.b"],
]


def test_patterns_match_as_in_llguidance() -> None:
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    backend = RtlangBackend.create(Vocabulary(tokens, frozenset([256]), frozenset([256]), 257))
    other = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()))
    for number, pattern in enumerate(PATTERNS):
        source = f"start: /{pattern}/"
        lexer = Lexer.ANYWHERE if number % 2 else Lexer.LONGEST
        grammar = backend.compile(Constraint(ConstraintKind.LARK, source, lexer=lexer))
        for text in TEXTS:
            matcher = llguidance.LLMatcher(other, llguidance.LLMatcher.grammar_from_lark(source))
            is_read = matcher.try_consume_tokens(list(text.encode())) == len(text.encode())
            assert grammar.matcher().completes_bytes(text.encode()) == (is_read and matcher.is_accepting()), (
                pattern,
                text,
            )


class _Bytes:
    bos_token_id = None
    eos_token_id = 256
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    special_token_ids = (256,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


def test_characters_and_properties_are_as_python_knows_them() -> None:
    written = with_python_patterns(r"start: /\cA\u{20}\u{2d}[\u{5e}\p{Zs}]/").removeprefix("start: /").removesuffix("/")
    for space in (chr(code) for code in range(0x10000) if unicodedata.category(chr(code)) == "Zs"):
        assert re.fullmatch(written, f"\x01 -{space}")
    assert re.fullmatch(written, "\x01 -^")
    assert not re.fullmatch(written, "\x01 -a")
    assert with_python_patterns('start: "\\p{L}" // /\\p{L}/\n') == 'start: "\\p{L}" // /\\p{L}/\n'


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        (r"start: A /\p{Nope}/", "unknown Unicode property 'Nope'", "1:10"),
        (r"start: /\u{110000}/", "expected a Unicode character", "1:8"),
        (r"start: /\u{d800}/", "not a surrogate", "1:8"),
    ],
)
def test_refusals(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        with_python_patterns(source)
    assert caught.value.location == location
