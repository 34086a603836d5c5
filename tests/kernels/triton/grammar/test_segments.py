"""Segments of a pool never overlap and leave no room unused, against a map of every element."""

from __future__ import annotations

import random

import pytest

from rtlang_kernels.triton.grammar.segments import Segments


@pytest.mark.parametrize("seed", range(5))
def test_segments_match_a_map_of_the_elements(seed: int) -> None:
    rng, segments, is_taken, held = random.Random(seed), Segments(40), [False] * 40, dict[int, int]()
    for _ in range(200):
        if held and rng.random() < 0.5:
            start = rng.choice(sorted(held))
            segments.give_back(start)
            for index in range(start, start + held.pop(start)):
                is_taken[index] = False
        else:
            size = rng.randint(1, 9)
            free = [at for at in range(41 - size) if not any(is_taken[at : at + size])]
            taken = segments.take(size)
            assert taken == (free[0] if free else None)
            if taken is not None:
                held[taken] = size
                is_taken[taken : taken + size] = [True] * size


def test_a_segment_is_given_back_once() -> None:
    segments = Segments(4)
    assert segments.take(5) is None
    assert segments.take(4) == 0
    segments.give_back(0)
    with pytest.raises(ValueError, match="start = 0"):
        segments.give_back(0)
