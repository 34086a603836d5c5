"""The one switch for long tests, RTLANG_TEST_LONG=1: tests marked `long` run, and random tests take all their cases."""

from __future__ import annotations

import os

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
