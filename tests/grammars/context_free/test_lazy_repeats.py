"""Lazy repeats against what Python's `re` prefers to match."""

from __future__ import annotations

import itertools
import re

import pytest

from rtlang_grammars.context_free.lazy_repeats import terminal_language, without_lazy_repeats
from rtlang_grammars.limits import Budget
from rtlang_grammars.spec import GrammarError

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
def test_what_python_prefers_is_the_language(pattern: str) -> None:
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


def test_a_string_ends_at_its_first_free_quote() -> None:
    language = terminal_language(r'"(?:(?:.*?)(?:(?<!\\)(\\\\)*?))"', Budget())
    for text in ('""', '"a"', r'"a\"b"', r'"a\\"', r'"\\\""'):
        assert language.accepts(text), text
    for text in ('"', '"a"b"', r'"a\\"b"', r'"a\"', '"\n"'):
        assert not language.accepts(text), text


@pytest.mark.parametrize("pattern", ["ab*", r"a\*?", "[*?]+", "a(?=b)c", "x{}?", "(?i:a)|b"])
def test_patterns_without_lazy_repeats_stay(pattern: str) -> None:
    assert without_lazy_repeats(pattern) == pattern


@pytest.mark.parametrize("pattern", ["a.*?" * 30 + "b", "(?x:a.*?b )"])
def test_what_is_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(GrammarError, match="lazy quantifier"):
        without_lazy_repeats(pattern)
