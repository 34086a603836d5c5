"""Work beside a step: one thread acts at a time, in order, and only while the engine thread computes. No test depends on times."""

from __future__ import annotations

import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.runtime.host_overlap import VARIABLE, HostOverlap, overlap_of
from rtlang.runtime.loop import EngineLoop

LIMIT_S = 30.0


class Work:
    """Pieces of work that record the thread which did them."""

    def __init__(self) -> None:
        self.pieces: deque[Any] = deque()
        self.done: list[tuple[Any, str]] = []
        self.is_done = threading.Event()

    def act(self) -> bool:
        if not self.pieces:
            self.is_done.set()
            return False
        self.done.append((self.pieces.popleft(), threading.current_thread().name))
        return True


def test_work_is_done_beside_a_step_in_order() -> None:
    work, overlap = Work(), HostOverlap()
    overlap.start(work.act, lambda: bool(work.pieces))
    work.pieces.extend(range(100))
    with overlap:
        overlap.begin()
        assert work.is_done.wait(LIMIT_S)
    assert work.done == [(number, "rtlang-engine-2") for number in range(100)]
    overlap.close()


def test_nothing_is_done_outside_of_a_step() -> None:
    work, overlap = Work(), HostOverlap()
    overlap.start(work.act, lambda: bool(work.pieces))
    work.pieces.append(1)
    overlap.begin()  # by a runner that computes without the engine
    overlap.notify()
    with overlap:
        pass
    overlap.close()
    assert work.done == []


def test_the_engine_thread_waits_for_the_piece_at_hand_only() -> None:
    overlap = HostOverlap()
    is_begun, may_end = threading.Event(), threading.Event()
    num_acts = 0

    def act() -> bool:
        nonlocal num_acts
        num_acts += 1
        is_begun.set()
        assert may_end.wait(LIMIT_S)
        return True  # there is always more

    overlap.start(act, lambda: True)
    with overlap:
        overlap.begin()
        assert is_begun.wait(LIMIT_S)
        threading.Timer(0.01, may_end.set).start()
    seen = num_acts
    assert may_end.is_set()
    overlap.close()
    assert num_acts == seen


def test_an_error_of_the_work_is_kept_for_the_engine_thread() -> None:
    overlap = HostOverlap()
    is_raised = threading.Event()

    def act() -> bool:
        is_raised.set()
        raise ZeroDivisionError

    overlap.start(act, lambda: True)
    with overlap:
        overlap.begin()
        assert is_raised.wait(LIMIT_S)
    assert isinstance(overlap.error, ZeroDivisionError)
    overlap.close()


def test_the_variable_switches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    overlap = overlap_of(RuntimeConfig())
    assert overlap is not None
    assert overlap.choice.choose()
    assert overlap_of(RuntimeConfig(device="cuda")) is None
    monkeypatch.setenv(VARIABLE, "off")
    assert overlap_of(RuntimeConfig()) is None
    monkeypatch.setenv(VARIABLE, "perhaps")
    with pytest.raises(ConfigError, match="auto, on or off"):
        overlap_of(RuntimeConfig())


class OverlappedEngine:
    """Each step gives one output of a program that runs on, and waits until the second thread has done all there is to do."""

    def __init__(self, overlap: HostOverlap, num_steps: int = 0) -> None:
        self.overlap, self.num_steps = overlap, num_steps
        self.heard: list[tuple[str, int, str]] = []
        self.program = SimpleNamespace(needs_immediate_delivery=False)
        self.during_step: Any = lambda: None
        self.is_idle = threading.Event()

    @property
    def has_work(self) -> bool:
        return self.num_steps > 0

    def hear(self, what: str, number: int) -> None:
        self.heard.append((what, number, threading.current_thread().name))
        if (what, number) == ("output", 1):
            self.is_idle.set()

    def step(self, now: float) -> list[Any]:
        number = self.num_steps
        with self.overlap:
            self.overlap.begin()
            self.during_step()
        self.num_steps -= 1
        request = SimpleNamespace(listener=lambda output: self.hear("output", number), program=self.program)
        return [SimpleNamespace(request=request, is_last=self.num_steps == 0)]

    def note_time(self, seconds: float) -> None:
        assert seconds >= 0


def test_commands_that_come_during_a_step_run_beside_it() -> None:
    overlap = HostOverlap(is_forced=True)
    engine = OverlappedEngine(overlap)
    loop = EngineLoop(lambda wake: engine, lambda: None, lambda cause: None, overlap=overlap)  # type: ignore[arg-type, return-value]
    loop.start()

    def during() -> None:
        done = threading.Event()

        def command() -> None:
            assert loop.is_current_thread
            assert loop.run(lambda: 7) == 7, "a command may act on the engine at once"
            engine.hear("command", engine.num_steps)
            done.set()

        loop.post(command)
        assert done.wait(LIMIT_S)

    engine.during_step = during
    loop.run(lambda: setattr(engine, "num_steps", 3))
    assert engine.is_idle.wait(LIMIT_S)
    loop.stop()
    beside, main = "rtlang-engine-2", "rtlang-engine"
    assert engine.heard == [
        ("command", 3, beside),
        ("output", 3, beside),
        ("command", 2, beside),
        ("output", 2, beside),
        ("command", 1, beside),
        ("output", 1, main),
    ]
