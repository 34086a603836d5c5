"""Waiting for what another thread or process does, without guessing how long it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable

LIMIT_S = 20.0
_INTERVAL_S = 0.005


def wait_until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Return once `condition` holds; fails after `limit_s` seconds."""
    pause = threading.Event()
    for _ in range(int(limit_s / _INTERVAL_S)):
        if condition():
            return
        pause.wait(_INTERVAL_S)
    raise AssertionError(f"nothing happened within {limit_s:g} s")
