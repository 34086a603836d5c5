"""Escapes and character classes, checked per character against `re` and the tables of ECMA-262."""

from __future__ import annotations

import re
import warnings

import pytest

from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.errors import GrammarError

CHARACTERS = [*map(chr, range(0x180)), "\u2028", "\u2029", "\ufeff", "😀", "٣", "\u212a"]


def _matched(pattern: str, dialect: str) -> set[str]:
    language = compile_regex(pattern, dialect="python" if dialect == "python" else "ecma")
    return {each for each in CHARACTERS if language.accepts(each)}


PYTHON = [
    *(
        r"\a",
        r"\f",
        r"\n",
        r"\r",
        r"\t",
        r"\v",
        r"\\",
        r"\x41",
        r"\u00e9",
        r"\U0001F600",
        r"\0",
        r"\101",
        r"[\101\7]",
        r"\.",
    ),
    *(
        r"[]a]",
        r"[^]a]",
        r"[a-]",
        r"[-a]",
        r"[a\-c]",
        r"[\b]",
        r"[^\W\d]",
        r"[a-c-]",
        r"\N{DIGIT THREE}",
        r"[\s\S]",
        r"(?a:\w)",
        r"(?i:[k-m])",
    ),
    *(r"(?i:[^K])", r"(?s:.)", ".", r"[.]", r"[[]", r"(?ai)\W", "(?ai)k", "(?ai)[K-M]", r"\_", r"\-", r"[\d-]"),
]


@pytest.mark.parametrize("pattern", PYTHON)
def test_python_escapes_agree_with_re(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(pattern)
    assert _matched(pattern, "python") == {each for each in CHARACTERS if compiled.fullmatch(each)}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\cJ", "\n"),
        (r"\0", "\0"),
        (r"\x41", "A"),
        (r"\u{1F600}", "😀"),
        (r"\uD83D\uDE00", "😀"),
        (r"\u00e9", "é"),
        (r"\d", "0123456789"),
        (r"\/", "/"),
        (r"[\b]", "\b"),
        (r"[\w-]", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"),
        (r"[a-\d]", "a-0123456789"),
        (r"[]", ""),
        (r"[\-_ ~]", "-_ ~"),
        (r"\p{Nd}", "0123456789٣"),
        (r"\p{Script=Han}", ""),
        (r"[^\P{ASCII}\W\d_A-Z]", "abcdefghijklmnopqrstuvwxyz"),
        ("{", "{"),
        ("]", "]"),
        ("}", "}"),
    ],
)
def test_ecma_escapes_agree_with_the_standard(pattern: str, expected: str) -> None:
    assert _matched(pattern, "ecma") == set(expected)


def test_ecma_classes_exclude_the_right_characters() -> None:
    everything = set(CHARACTERS)
    assert everything - _matched(".", "ecma") == set("\n\r\u2028\u2029")
    assert everything - _matched("[^]", "ecma") == set()
    assert everything & set("\u00a0\ufeff\u2028 \t\v") <= _matched(r"\s", "ecma")
    assert "٣" not in _matched(r"\w", "ecma")
    assert "\u212a" not in _matched(r"\w", "ecma")


@pytest.mark.parametrize(
    ("pattern", "dialect", "reason", "location"),
    [
        (r"ab\1", "ecma", "backreferences", "1:3"),
        (r"(?<n>a)\k<n>", "ecma", "backreferences", "1:8"),
        ("a\n\\q", "ecma", r"unknown escape \\q", "2:1"),
        (r"\Z", "ecma", "python dialect", "1:1"),
        (r"\p{Nope}", "ecma", "unknown Unicode property 'Nope'", "1:1"),
        (r"\pL", "ecma", "in braces", "1:1"),
        (r"a\x4", "ecma", "2 hexadecimal digits", "1:2"),
        (r"\u{110000}", "ecma", "code point out of range", "1:1"),
        (r"\u{}", "ecma", "hexadecimal", "1:1"),
        (r"\07", "ecma", "octal", "1:1"),
        ("x[a-", "ecma", "no closing bracket", "1:2"),
        ("[z-a]", "ecma", "range out of order", "1:2"),
        (r"[a-\d]", "python", "single characters", "1:2"),
        (r"\p{L}", "python", "not supported in the python dialect", "1:1"),
        (r"\N{NOPE}", "python", "unknown character name", "1:1"),
        (r"\q", "python", r"unknown escape \\q", "1:1"),
        ("ab\\", "python", "ends within an escape", "1:4"),
        (r"\U00110000", "python", "code point out of range", "1:1"),
    ],
)
def test_invalid_escapes_are_located(pattern: str, dialect: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        compile_regex(pattern, dialect="python" if dialect == "python" else "ecma")
    assert caught.value.location == location
