"""The environment variable that asks for long tests: those marked `long`, and longer versions of a few others."""

from __future__ import annotations

import os

LONG = "RTLANG_TEST_LONG"


def is_long() -> bool:
    """Whether long tests were asked for."""
    return os.environ.get(LONG) == "1"
