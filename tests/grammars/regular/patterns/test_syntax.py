"""Syntax trees: simplification, depth and minimal length."""

from __future__ import annotations

from rtlang_grammars.regular.language import Language
from rtlang_grammars.regular.patterns.syntax import (
    ANY_TEXT,
    CHARACTER,
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    Characters,
    Concatenation,
    Intersection,
    Repetition,
    alternation,
    any_of_texts,
    character,
    complement,
    concatenation,
    intersection,
    repetition,
    text,
)

A, B = character(ord("a")), character(ord("b"))


def test_concatenations_are_flattened_and_absorbed_by_nothing() -> None:
    tree = concatenation([A, concatenation([B, A]), EMPTY_TEXT])
    assert isinstance(tree, Concatenation)
    assert tree.items == (A, B, A)
    assert concatenation([A, NOTHING]) is NOTHING
    assert concatenation([A]) is A
    assert text("") is EMPTY_TEXT


def test_single_character_alternatives_become_one_set() -> None:
    tree = alternation([A, alternation([B, text("ab")]), character(ord("c"))])
    assert isinstance(tree, Alternation)
    first = tree.items[0]
    assert isinstance(first, Characters)
    assert first.points == ((ord("a"), ord("c")),)
    assert len(tree.items) == 2
    assert alternation([]) is NOTHING


def test_an_alternation_with_the_empty_string_is_a_repetition() -> None:
    tree = alternation([EMPTY_TEXT, A])
    assert isinstance(tree, Repetition)
    assert (tree.item, tree.low, tree.high) == (A, 0, 1)


def test_nested_repetitions_are_merged_if_equivalent() -> None:
    def bounds(outer: tuple[int, int | None], inner: tuple[int, int | None]) -> tuple[object, int, int | None]:
        tree = repetition(repetition(A, *inner), *outer)
        assert isinstance(tree, Repetition)
        return tree.item, tree.low, tree.high

    assert bounds((0, None), (0, 1)) == (A, 0, None)
    assert bounds((2, 5), (0, 3)) == (A, 0, 15)
    assert bounds((2, 5), (1, None)) == (A, 2, None)
    assert bounds((1, None), (1, 4)) == (A, 1, None)
    inner = repetition(A, 2, 3)
    outer = repetition(inner, 2, 3)
    assert isinstance(outer, Repetition)
    assert (outer.item, outer.low, outer.high) == (inner, 2, 3)
    assert repetition(A, 1, 1) is A
    assert repetition(A, 0, 0) is EMPTY_TEXT
    assert repetition(NOTHING, 0, None) is EMPTY_TEXT
    assert repetition(NOTHING, 1, None) is NOTHING


def test_nested_intersections_merge_their_bounds() -> None:
    tree = intersection([intersection([text("ab"), ANY_TEXT], 1, 9), intersection([B], 2, None)], 0, 5)
    assert isinstance(tree, Intersection)
    assert (tree.low, tree.high, len(tree.items)) == (2, 5, 2)
    assert intersection([A], 3, 2) is NOTHING
    assert intersection([A, NOTHING]) is NOTHING
    counted = intersection([ANY_TEXT], 2, 4)
    assert isinstance(counted, Repetition)
    assert (counted.item, counted.low, counted.high) == (CHARACTER, 2, 4)
    assert intersection([A]) is A


def test_double_complements_cancel() -> None:
    assert complement(complement(A)) is A
    assert complement(NOTHING) is ANY_TEXT
    assert complement(ANY_TEXT) is NOTHING


def test_depth_and_min_length_are_computed() -> None:
    tree = repetition(concatenation([A, alternation([text("ab"), repetition(B, 3, 4)])]), 2, None)
    assert tree.min_length == 2 * (1 + 2)
    assert tree.depth == 5
    assert A.depth == 1
    assert text("ab").depth == 2


def test_literals_share_common_prefixes() -> None:
    words = ["", "car", "cart", "cat", "dog", "do", "x" * 50, "x" * 49 + "y", "\U0001f600"]
    language = Language(any_of_texts(words + words))
    assert language.finite_words(20) == sorted(words, key=lambda word: (len(word), word))
    chain = ["a" * count for count in range(80)]
    tree = any_of_texts(chain)
    assert tree.depth < 100
    assert Language(tree).finite_words(100) == chain
    assert any_of_texts([]) is NOTHING
