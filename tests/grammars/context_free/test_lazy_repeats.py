"""Lazy quantifiers, checked against the matches of Python's `re`."""

from __future__ import annotations

import itertools
import re

import pytest

from rtlang_grammars.context_free.lazy_repeats import terminal_language, without_lazy_repeats
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

PATTERNS = [
    '".*?"',
    '"(?:.|a)*?"b',
    "a+?b",
    "ab??c?",
    "a{1,3}?b",
    "a{2}?b",
    "a{1,}?b*",
    "(a.*?b|c.*?a)c",
    "a.*?b.*?c",
    "(?i:a.*?B)c",
    "(?s:a.*?)(?i:B)",
    r"[ab]*?c\.?",
    "a*?b*?c",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_language_is_the_matches_of_re(pattern: str) -> None:
    language = terminal_language(pattern, Budget())
    num_preferred = 0
    for size in range(6):
        for letters in itertools.product('abcB"', repeat=size):
            text = "".join(letters)
            match = re.match(pattern, text)
            is_preferred = match is not None and match.end() == size
            assert language.accepts(text) == is_preferred, text
            num_preferred += is_preferred
    assert num_preferred


def test_a_lazy_string_ends_at_the_first_quote() -> None:
    language = terminal_language(r'"(?:(?:.*?)(?:(?<!\\)(\\\\)*?))"', Budget())
    for text in ('""', '"a"', r'"a\"b"', r'"a\\"', r'"\\\""'):
        assert language.accepts(text), text
    for text in ('"', '"a"b"', r'"a\\"b"', r'"a\"', '"\n"'):
        assert not language.accepts(text), text


@pytest.mark.parametrize("pattern", ["ab*", r"a\*?", "[*?]+", "a(?=b)c", "x{}?", "(?i:a)|b"])
def test_patterns_without_lazy_quantifiers_are_unchanged(pattern: str) -> None:
    assert without_lazy_repeats(pattern) == pattern


@pytest.mark.parametrize("pattern", ["a.*?" * 30 + "b", "(?x:a.*?b )"])
def test_unsupported_lazy_quantifiers_are_errors(pattern: str) -> None:
    with pytest.raises(GrammarError, match="lazy quantifier"):
        without_lazy_repeats(pattern)
