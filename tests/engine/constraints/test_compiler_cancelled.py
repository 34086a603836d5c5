"""Compilations whose requests are cancelled, and the time limit of those that begin again in a later lane."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rtlang.work.fair_queue import Owner
from rtlang_grammars import GrammarError
from tests.engine.constraints.test_compiler import WORD, Manual, make


class Stoppable:
    """Calls `meanwhile` in a compilation, and stops if it is told to."""

    def __init__(self, working: Any, meanwhile: Callable[[], None]) -> None:
        self._working, self._meanwhile = working, meanwhile
        self.num_stopped = 0

    def compile(self, constraint: Any, is_unwanted: threading.Event) -> Any:
        self._meanwhile()
        if is_unwanted.is_set():
            self.num_stopped += 1
            raise GrammarError("the compile was cancelled")
        return self._working.compile(constraint)


def test_a_queued_compilation_whose_requests_are_all_cancelled_is_not_begun() -> None:
    manual = Manual()
    compiler, timers = make(manual)
    first, second = compiler.session(WORD, 4), compiler.session(WORD, 4)
    first.cancel()
    assert compiler._waiting
    second.cancel()
    assert not compiler._waiting
    manual.run()
    assert (compiler.num_compiled, timers.started) == (0, [])


def test_a_running_compilation_whose_requests_are_all_cancelled_is_stopped() -> None:
    manual = Manual()
    compiler, timers = make(manual)
    compiler._backend = backend = Stoppable(compiler._make_backend()[0], lambda: asked.cancel() or None)  # type: ignore[assignment]
    asked = compiler.session(WORD, 4)
    manual.run()
    assert backend.num_stopped == 1
    assert timers.started[0].is_cancelled
    assert (compiler._waiting, compiler._running, dict(compiler._cache)) == ({}, set(), {})


def test_a_request_that_comes_while_a_compilation_is_being_stopped_is_compiled_anew() -> None:
    manual = Manual()
    compiler, _ = make(manual)
    later = []

    def meanwhile() -> None:
        if not later:
            asked.cancel()
            later.append(compiler.session(WORD, 4))

    compiler._backend = Stoppable(compiler._make_backend()[0], meanwhile)  # type: ignore[assignment]
    asked = compiler.session(WORD, 4)
    while manual.jobs:
        manual.run()
    assert later[0].result(0).is_accepting is False
    assert (compiler._waiting, compiler._running) == ({}, set())


@pytest.mark.parametrize("owner", [Owner("local"), Owner("local", "7")], ids=["user", "client"])
def test_what_waits_in_the_next_lane_has_all_its_time(owner: Owner) -> None:
    compiler, timers = make(Manual())
    compiler.session(WORD, 4, owner)
    compiler._start_timer_of(WORD)
    compiler._move_on(WORD)
    assert timers.started[0].is_cancelled
    assert len(timers.started) == 1


def test_stop_patterns_of_a_cancelled_request_are_not_compiled() -> None:
    manual = Manual()
    compiler, _ = make(manual)
    asked = compiler.stop_patterns(("a+b",))
    asked.cancel()
    manual.run()
    assert not compiler._stop_compiler._known
