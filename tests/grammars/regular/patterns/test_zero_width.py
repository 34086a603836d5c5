"""Anchors are eliminated, and no repetition consists of an assertion alone."""

from __future__ import annotations

import itertools
import re

import pytest

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.patterns.parser import parse_pattern
from rtlang_grammars.regular.patterns.syntax import ANY_TEXT, NOTHING, ZeroWidth
from rtlang_grammars.regular.patterns.zero_width import consuming_paths, lookaround, resolve_anchors, zero_width_paths
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

WORDS = ["".join(letters) for length in range(5) for letters in itertools.product("ab", repeat=length)]
ANCHORED = [
    "^a|b$",
    "(^|a)b",
    "a(b|$)",
    "(^a)*b",
    "(a$|b)*",
    "(?:^|a)(?:b|$)",
    "a?^b?$",
    "$^",
    "b^",
    "(a|^){2,3}b",
    "(?:(?:^a|b)*$|a)+",
]


def _tree(pattern: str) -> syntax.PatternNode:
    tree = parse_pattern(pattern, RegexDialect.ECMA, Budget())
    return resolve_anchors(syntax.concatenation([ANY_TEXT, tree, ANY_TEXT]), Budget())


@pytest.mark.parametrize("pattern", ANCHORED)
def test_anchors_are_eliminated(pattern: str) -> None:
    tree = _tree(pattern)
    assert tree.zero_width == 0
    language = Language(tree)
    for word in WORDS:
        assert language.accepts(word) == (re.search(pattern, word) is not None), word


@pytest.mark.parametrize("pattern", [r"\bfoo", "a(?!b)", "(?<=a)b", "^(?!a)", "(?<!a)$"])
def test_assertions_at_the_ends_of_a_search_are_absorbed(pattern: str) -> None:
    assert _tree(pattern).zero_width & ZeroWidth.BEHIND == 0


def test_a_tree_is_the_union_of_its_zero_width_and_consuming_paths() -> None:
    for pattern in ("a?", "(a|^)b?", "(?=a)|b", "(a?b?)*", "a{0,3}", "ab", ""):
        tree = parse_pattern(pattern, RegexDialect.ECMA, Budget())
        through, taking = zero_width_paths(tree, Budget()), consuming_paths(tree, Budget())
        assert syntax.is_nothing(taking) or taking.min_length > 0
        whole = Language(resolve_anchors(tree, Budget()))
        parts = Language(resolve_anchors(syntax.alternation([through, taking]), Budget()))
        assert whole.includes(parts), pattern
        assert parts.includes(whole), pattern


def test_an_assertion_can_be_required_only_a_few_times() -> None:
    assert compile_regex("(?:a|(?=b)){8}b").accepts("aab")
    with pytest.raises(GrammarError, match="may be at most 8") as caught:
        compile_regex("(?:a|(?=b)){9}b")
    assert caught.value.location == "1:12"


def test_trivial_assertions_are_removed() -> None:
    for is_ahead in (True, False):
        assert syntax.is_empty_text(lookaround(ANY_TEXT, is_ahead=is_ahead, is_negative=False))
        assert syntax.is_nothing(lookaround(ANY_TEXT, is_ahead=is_ahead, is_negative=True))
        assert syntax.is_nothing(lookaround(NOTHING, is_ahead=is_ahead, is_negative=False))
        assert syntax.is_empty_text(lookaround(NOTHING, is_ahead=is_ahead, is_negative=True))
