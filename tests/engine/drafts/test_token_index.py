"""The index against a search through the whole text."""

from __future__ import annotations

import random

import pytest

from rtlang.engine.drafts.token_index import LONGEST_MATCH, SHORTEST_MATCH, TokenIndex
from tests.support.long_tests import sized


def naive_find(tokens: list[int], context: list[int]) -> tuple[int, int] | None:
    """The last of the longest matches, of all places."""
    best = None
    for place in range(SHORTEST_MATCH, len(tokens)):
        length = 0
        while length < min(LONGEST_MATCH, place, len(context)) and tokens[place - 1 - length] == context[-1 - length]:
            length += 1
        if length >= SHORTEST_MATCH and (best is None or length >= best[1]):
            best = place, length
    return best


@pytest.mark.parametrize("seed", range(sized(20)))
def test_the_longest_match_is_found(seed: int) -> None:
    rng = random.Random(seed)
    index = TokenIndex()
    for _ in range(12):
        index.extend(rng.choices(range(6), k=rng.randint(0, 5)))
        context = rng.choice([index.tokens, rng.choices(range(6), k=rng.randint(0, 20))])
        found, expected = index.find(context), naive_find(index.tokens, context)
        if expected is None:
            assert found is None
        elif sum(index.tokens[at - 2 : at] == context[-2:] for at in range(2, len(index.tokens) + 1)) <= 8:
            assert found == expected
        else:  # only the last places are tried
            assert found is not None


def test_a_text_that_repeats_itself_goes_on_so() -> None:
    index = TokenIndex()
    index.extend([1, 2, 3, 1, 2, 3, 1, 2])
    assert index.find(index.tokens) == (5, 5)
    assert index.following(5, 7) == [3, 1, 2, 3, 1, 2, 3]
    assert index.following(0, 3) == [1, 2, 3]


def test_a_text_without_repetition_has_no_match() -> None:
    index = TokenIndex()
    index.extend(range(50))
    assert index.find(index.tokens) is None
    assert index.find([7]) is None
    assert index.find([7, 8]) == (9, 2)
