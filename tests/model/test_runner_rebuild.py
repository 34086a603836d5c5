"""A new runner is made on a thread of its own, and closing ends its pause."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.model.runner_rebuild import RunnerRebuild


def test_a_runner_is_made_on_another_thread() -> None:
    runner: Any = object()
    threads: list[threading.Thread] = []

    def make() -> Any:
        threads.append(threading.current_thread())
        return runner

    rebuild = RunnerRebuild(make)
    assert rebuild.start(0).result() is runner
    assert threads[0] is not threading.current_thread()
    rebuild.close()
    assert not threads[0].is_alive()


def test_an_error_is_that_of_the_future() -> None:
    def make() -> Any:
        raise ValueError("no memory")

    with pytest.raises(ValueError, match="no memory"):
        RunnerRebuild(make).start(0).result()


def test_closing_ends_a_pause_and_makes_nothing() -> None:
    made: list[int] = []

    def make() -> Any:
        made.append(1)

    rebuild = RunnerRebuild(make)
    rebuilt = rebuild.start(10)
    rebuild.close()
    with pytest.raises(EngineDeadError):
        rebuilt.result()
    assert not made
