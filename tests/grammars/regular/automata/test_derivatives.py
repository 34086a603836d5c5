"""Derivatives, checked by brute force over short words."""

from __future__ import annotations

import itertools

import pytest

from rtlang_grammars.regular.automata.derivatives import Derivatives
from rtlang_grammars.regular.automata.terms import NOTHING, Terms
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.partition import Partition
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.regular.patterns.syntax import (
    PatternNode,
    alternation,
    complement,
    concatenation,
    intersection,
    repetition,
    text,
)
from rtlang_grammars.spec.limits import Budget

A, B = text("a"), text("b")
AB = alternation([A, B])
SETS = [code_points.of_text(letters) for letters in ("a", "b", "ab")]
TREES: dict[str, PatternNode] = {
    "count": repetition(AB, 2, 3),
    "ends in a": concatenation([repetition(AB, 0, None), A]),
    "both": intersection(
        [concatenation([repetition(AB, 0, None), A]), concatenation([B, repetition(AB, 0, None)])], 2, 3
    ),
    "not": complement(concatenation([A, repetition(AB, 0, None)])),
    "nested": repetition(concatenation([repetition(A, 0, 2), B]), 1, 2),
    "not within": concatenation([complement(text("a")), B]),
}
EXPECTED = {
    "count": lambda word: 2 <= len(word) <= 3,
    "ends in a": lambda word: word.endswith("a"),
    "both": lambda word: word.endswith("a") and word.startswith("b") and 2 <= len(word) <= 3,
    "not": lambda word: not word.startswith("a"),
    "nested": lambda word: word.endswith("b") and word.count("b") <= 2 and "aaa" not in word,
    "not within": lambda word: word.endswith("b") and word != "ab",
}


@pytest.mark.parametrize("name", TREES)
def test_derivation_by_each_character_decides_membership(name: str) -> None:
    partition = Partition([code_points.ALL, *SETS])
    terms = Terms(partition, Budget())
    derivatives = Derivatives(terms)
    start = terms.load(TREES[name])
    for length in range(6):
        for word in itertools.product("ab", repeat=length):
            term = start
            for letter in word:
                bit = 1 << partition.class_of(ord(letter))
                after = [rest for mask, rest in derivatives.step(term, 0) if mask & bit]
                assert len(after) <= 1  # the masks are disjoint
                term = after[0] if after else NOTHING
            assert terms.is_nullable(term, 0) == EXPECTED[name]("".join(word)), word


def test_steps_are_disjoint_and_never_lead_to_nothing() -> None:
    terms = Terms(Partition([code_points.ALL, *SETS]), Budget())
    derivatives = Derivatives(terms)
    worklist = [terms.load(syntax.intersection([TREES["count"], TREES["nested"]]))]
    seen = set(worklist)
    for term in worklist:
        for mask, rest in derivatives.step(term, 0):
            assert mask
            assert rest != NOTHING
            if rest not in seen:
                seen.add(rest)
                worklist.append(rest)
    assert 3 < len(seen) < 40
