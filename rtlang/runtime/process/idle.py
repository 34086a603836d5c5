"""Gives memory back when a runtime has nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.engine import Engine

SOON_S = 5.0
"""Seconds without work after which the memory of free pages and of the heap is given back."""


def idle_actions(config: RuntimeConfig) -> list[tuple[float, Callable[[Engine], None]]]:
    """Actions to run once after a number of seconds without work, in ascending order."""
    actions = [
        (SOON_S, partial(Engine.rest, is_long=False)),
        (config.cache_idle_s, partial(Engine.rest, is_long=True)),
    ]
    return sorted(actions, key=lambda action: action[0])
