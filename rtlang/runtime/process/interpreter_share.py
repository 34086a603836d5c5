"""Leaves the interpreter to the engine thread while other threads compute values.

The engine thread gives the interpreter away at every native call, some dozens in a step, and has to wait for it afterwards: until the next
switch, or for as long as one function in C takes, which is 10 to 20 ms for values of a megabyte. So threads beside it take turns, and rest
after their turn in proportion to it while the engine computes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

REST = 5.0
"""Seconds of rest for a second of work."""
MAX_REST_S = 0.1
MAX_WAIT_S = 0.25
"""Seconds after which a thread no longer waits for another one, which may hang."""


_T = TypeVar("_T")


def outcome_of(work: Callable[[], _T]) -> _T | Exception:
    """The result of a function, or its exception."""
    try:
        return work()
    except Exception as error:
        return error


class InterpreterShare:
    """Turns of threads beside an engine. Thread-safe.

    Args:
        is_busy: whether the engine computes.
        sleep: waits for some seconds.
    """

    def __init__(self, is_busy: Callable[[], bool], sleep: Callable[[float], None] = time.sleep) -> None:
        self._is_busy, self._sleep = is_busy, sleep
        self._turn = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Work within this context, and rest at its end."""
        is_alone = self._turn.acquire(timeout=MAX_WAIT_S)
        started = time.thread_time()
        try:
            yield
        finally:
            rest_s = min(MAX_REST_S, REST * (time.thread_time() - started))
            if self._is_busy():
                self._sleep(rest_s)
            if is_alone:
                self._turn.release()
