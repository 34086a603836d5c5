"""The one switch for long tests, RTLANG_TEST_LONG=1: tests marked `long` run, and random tests take all their cases."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

LONG = "RTLANG_TEST_LONG"


def is_long() -> bool:
    """Whether long tests were asked for."""
    return os.environ.get(LONG) == "1"


def sized(count: int, *, usual: int | None = None) -> int:
    """Number of cases of a random test: all `count` where long tests were asked for, else `usual`, a quarter if not given.

    A usual run takes the first ones, so a seed that fails there is one of the long run. It takes 10 or more where there are so many.
    """
    if is_long():
        return count
    return min(count, max(10, count // 4) if usual is None else usual)


def spread(first: Sequence[Any], second: Sequence[Any], *, usual: int) -> list[tuple[Any, Any]]:
    """Combinations of two parameters: all where long tests were asked for, else every value of each with a share of the other's.

    Args:
        usual: a usual run takes one combination out of so many; at most the number of values of either.
    """
    return [
        (one, other)
        for number, one in enumerate(first)
        for place, other in enumerate(second)
        if is_long() or (number + place) % usual == 0
    ]


def crossed(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of the values of parameters: all where long tests were asked for, else some that have every pair of values.

    Args:
        parameters: three or more, since the pairs of two are all their combinations.
    """
    combinations = list(itertools.product(*parameters))
    if is_long():
        return combinations
    numbers = list(itertools.product(*(range(len(values)) for values in parameters)))
    pairs = {each: set(itertools.combinations(enumerate(each), 2)) for each in numbers}
    missing = set().union(*pairs.values())
    chosen = set()
    while missing:
        best = max(numbers, key=lambda each: len(pairs[each] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return [combination for each, combination in zip(numbers, combinations, strict=True) if each in chosen]
