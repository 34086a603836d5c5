"""Syntactic checks, checked against automata."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.patterns import syntactic_checks, syntax
from rtlang_grammars.spec.limits import Budget
from tests.support.grammars.texts import patterns
from tests.support.long_tests import sized


def _is_empty(tree: syntax.PatternNode) -> bool:
    return CodePointAutomaton(tree, Budget()).start == NO_STATE


def _enumerate_more_than(tree: syntax.PatternNode, limit: int) -> bool:
    """Removes strings one by one."""
    words: list[str] = []
    for _ in range(limit + 1):
        left_out = syntax.complement(syntax.any_of_texts(words))
        word = Language(syntax.intersection([tree, left_out])).shortest()
        if word is None:
            return False
        words.append(word)
    return True


def _tree(pattern: str, mode: str, wrapping: str) -> syntax.PatternNode:
    tree = compile_regex(pattern, mode="full" if mode == "full" else "search")._tree
    if wrapping == "negation":
        return syntax.complement(tree)
    if wrapping == "lengths":
        return syntax.intersection([tree], 1, 3)
    if wrapping == "both":
        return syntax.intersection([syntax.complement(tree), syntax.complement(syntax.any_of_texts(["", "ab", "b"]))])
    return tree


trees = st.builds(
    _tree,
    patterns(assertions=True),
    st.sampled_from(["full", "search"]),
    st.sampled_from(["plain", "negation", "lengths", "both"]),
)


@settings(max_examples=sized(150), deadline=None, derandomize=True)
@given(trees)
def test_languages_found_nonempty_are_nonempty(tree: syntax.PatternNode) -> None:
    if syntactic_checks.has_string(tree):
        assert not _is_empty(tree)
    for limit in (0, 2, 5):
        if syntactic_checks.has_more_strings_than(tree, limit):
            assert _enumerate_more_than(tree, limit)


@settings(max_examples=sized(150), deadline=None, derandomize=True)
@given(trees)
def test_every_string_starts_within_the_prefix_sets(tree: syntax.PatternNode) -> None:
    sets = syntactic_checks.prefix(tree)
    for text in Language(tree).samples(random.Random(1), 8):
        assert len(text) >= len(sets)
        for character, points in zip(text, sets, strict=False):
            assert code_points.contains(points, ord(character))


def are_disjoint(one: syntax.PatternNode, other: syntax.PatternNode) -> bool:
    """Whether prefixes or suffixes show that the languages are disjoint."""
    ends = (syntactic_checks.prefix, syntactic_checks.suffix)
    return any(syntactic_checks.are_apart(end(one), end(other)) for end in ends)


@settings(max_examples=sized(150), deadline=None, derandomize=True)
@given(trees, trees)
def test_languages_found_disjoint_are_disjoint(one: syntax.PatternNode, other: syntax.PatternNode) -> None:
    if are_disjoint(one, other):
        assert _is_empty(syntax.intersection([one, other]))


@pytest.mark.parametrize(
    ("pattern", "num_places"), [("^abc_", 4), ("^(ab|cd)(x|yz)", 3), ("^[a-z]{2,3}$", 2), ("^(?=a)ab", 2), ("a", 0)]
)
def test_prefix_sets_of_patterns(pattern: str, num_places: int) -> None:
    assert len(syntactic_checks.prefix(compile_regex(pattern, mode="search")._tree)) == num_places


def test_common_patterns_are_decided() -> None:
    name, title = (compile_regex(f"^({word}_[a-z]{{2,5}})$", mode="search") for word in ("name", "title"))
    assert are_disjoint(name._tree, title._tree)
    assert syntactic_checks.has_more_strings_than(name._tree, 64)
    assert syntactic_checks.has_string(name.union(title).complement()._tree)
    assert syntactic_checks.has_more_strings_than(name.complement().intersect(title.complement())._tree, 64)
    assert syntactic_checks.has_string(name.bounded(2, 7)._tree)
    assert not syntactic_checks.has_string(name.bounded(0, 6)._tree)
    assert not syntactic_checks.has_more_strings_than(compile_regex("^(a|b)(c|d)$", mode="search")._tree, 4)


def test_checks_do_not_change_answers() -> None:
    language = compile_regex("^x-[a-c]$", mode="search")
    texts = ["x-a", "x-d", "x-", "", "y-a", "x-aa"]
    seen = [Language(language._tree).accepts(text) for text in texts]
    language.shortest()  # builds the automaton
    assert seen == [language.accepts(text) for text in texts] == [True, False, False, False, False, False]
    assert Language(language._tree).finite_words(3) == ["x-a", "x-b", "x-c"]
    assert Language(language._tree).finite_words(2) is None
