"""The time of a compilation is that of its thread: it stands still while the thread waits."""

from __future__ import annotations

import threading
import time

from rtlang.engine.constraints.compile_time import STUCK_S, CompileTime, thread_clock
from tests.support.waiting import wait_until


class Clock:
    """Moves when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_waiting_is_no_time_and_working_is() -> None:
    cpu, wall = Clock(), Clock()
    compile_time = CompileTime(cpu, wall)
    for _ in range(1000):  # one percent of a core for a thousand seconds
        wall.now += 1.0
        cpu.now += 0.01
        assert compile_time.is_over(5.0) is (cpu.now - 100.0 >= 5.0)
    assert compile_time.left_s(20.0) < 10.1


def test_a_compilation_that_makes_no_progress_is_stuck() -> None:
    cpu, wall = Clock(), Clock()
    compile_time = CompileTime(cpu, wall)
    cpu.now += 1.0
    assert not compile_time.is_over(5.0)
    wall.now += STUCK_S - 1.0
    assert not compile_time.is_over(5.0)
    wall.now += 2.0
    assert compile_time.is_over(5.0)


def test_the_next_look_is_never_at_once() -> None:
    cpu = Clock()
    compile_time = CompileTime(cpu, Clock())
    cpu.now += 4.999
    assert compile_time.left_s(5.0) >= 0.05


def test_the_clock_of_a_thread_is_read_from_another_one() -> None:
    begun, ends = threading.Event(), threading.Event()
    clocks = []

    def work() -> None:
        clocks.append(thread_clock())
        begun.set()
        while not ends.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    (clock,) = clocks
    first, own = clock(), time.thread_time()
    while clock() < first + 0.02:
        ends.wait(0.001)  # this thread waits
    assert time.thread_time() - own < 0.02
    ends.set()
    thread.join()
    wait_until(lambda: clock() == clock())  # Python's part of the thread ends a little before the system's
    assert clock() >= first + 0.02
