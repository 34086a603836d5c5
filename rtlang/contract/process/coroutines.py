"""Coroutines in plain code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


def run_coroutine(make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine from plain code: in this thread, or in another one if an event loop is already running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    outcome: list[_T | BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(make()))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name="rtlang-run", daemon=True)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
