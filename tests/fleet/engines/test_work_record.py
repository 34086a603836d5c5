"""The record of an engine's process: its work and its stack when it is gone."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from rtlang.contract.process.current_work import CurrentWork
from rtlang.fleet.engines.engine_end import end_of
from rtlang.fleet.engines.work_record import StallWatch, ThreadClock, WorkRecord
from rtlang.fleet.messages.graph_ids import graph_id_of

PROCESS = """
import faulthandler, mmap, os, sys
from rtlang.contract.process.current_work import CurrentWork
work_fd, stack_fd, end = map(int, sys.argv[1:])
faulthandler.enable(stack_fd)
work = CurrentWork()
work.share(memoryview(mmap.mmap(work_fd, 0)).cast("Q"))
work.begin_turn()
work.begin(%d)
work.begin_node(2)
def leave():
    os.kill(os.getpid(), end)
leave()
"""


@pytest.fixture
def record() -> Iterator[WorkRecord]:
    record = WorkRecord()
    yield record
    record.close()
    record.close()


def test_a_record_outlives_its_process_with_the_stack_of_the_thread(record: WorkRecord) -> None:
    assert (record.sample().at_work, record.stack()) == (frozenset(), [])
    args = [str(record.work_fd), str(record.stack_fd), str(int(signal.SIGSEGV))]
    process = subprocess.run(
        [sys.executable, "-c", PROCESS % graph_id_of(1, 5), *args], pass_fds=(record.work_fd, record.stack_fd)
    )
    sample = record.sample()
    assert (sample.at_work, sample.node_id, sample.is_resting) == ({graph_id_of(1, 5)}, 2, False)
    assert record.num_stack_bytes > 0
    assert [place.split()[0] for place in record.stack()] == ["leave", "<module>"]
    end = end_of(process.returncode, record, is_silent=False, num_oom_kills=0)
    assert (end.has_crashed, end.event, end.at_work) == (True, "was ended by SIGSEGV", {5})
    assert str(end).startswith("was ended by SIGSEGV in leave (<string>:")


def counts(watch: StallWatch, record: WorkRecord, *, has_answered: bool = False) -> tuple[int, int]:
    watch.note(record.sample(), has_answered=has_answered)
    return watch.num_same, watch.num_frozen


def test_a_stall_is_the_same_work_for_one_graph_in_one_turn(record: WorkRecord) -> None:
    watch, work = StallWatch(), CurrentWork()
    work.share(memoryview(mmap.mmap(record.work_fd, 0)).cast("Q"))
    work.begin_turn()
    assert [counts(watch, record) for _ in range(2)] == [(0, 0), (0, 0)]
    work.begin(7)
    assert [counts(watch, record) for _ in range(3)] == [(0, 0), (1, 0), (2, 0)]
    work.begin_turn()
    work.begin(7)
    assert counts(watch, record) == (0, 0)
    work.rest()
    assert [counts(watch, record) for _ in range(2)] == [(0, 0), (0, 0)]


def test_a_process_is_frozen_while_it_works_beside_its_thread_and_does_not_answer(record: WorkRecord) -> None:
    watch, work = StallWatch(), CurrentWork()
    work.share(memoryview(mmap.mmap(record.work_fd, 0)).cast("Q"))
    work.begin_turn()
    work.rest()

    def observe() -> list[tuple[int, int]]:
        found = [counts(watch, record) for _ in range(3)]
        return [*found, counts(watch, record, has_answered=True), counts(watch, record)]

    assert work.run_beside(7, 3, observe) == [(0, 0), (0, 1), (0, 2), (0, 0), (0, 1)]
    assert work.run_beside(7, 3, lambda: counts(watch, record)) == (0, 0), "it is other work"
    assert [counts(watch, record) for _ in range(2)] == [(0, 0), (0, 0)]


def test_a_thread_that_waits_is_held_up_by_another(record: WorkRecord) -> None:
    watch, work = StallWatch(), CurrentWork()
    work.share(memoryview(mmap.mmap(record.work_fd, 0)).cast("Q"))
    work.begin_turn()
    work.begin(7)
    sample = record.sample()
    assert (sample.thread, sample.native_thread) == (threading.get_ident(), threading.get_native_id())
    for _ in range(4):
        watch.note(sample, is_idle=True)
    assert (watch.num_same, watch.num_idle, watch.is_held_up) == (3, 3, True)
    watch.note(sample, is_idle=True, has_answered=True)  # it waits for something else: others may run
    for _ in range(2):
        watch.note(sample)
    assert (watch.num_same, watch.num_idle, watch.is_held_up) == (6, 3, False)
    work.begin_turn()
    work.begin(7)
    watch.note(record.sample(), is_idle=True)
    assert (watch.num_idle, watch.is_held_up) == (0, False)


def test_the_clock_of_a_thread_tells_whether_it_computes() -> None:
    is_over, native = threading.Event(), list[int]()

    def compute() -> None:
        native.append(threading.get_native_id())
        while not is_over.is_set():
            pass

    def wait() -> None:
        native.append(threading.get_native_id())
        is_over.wait()

    threads = [threading.Thread(target=each) for each in (compute, wait)]
    for each in threads:
        each.start()
        while len(native) <= threads.index(each):
            time.sleep(0.01)
    try:
        clocks = ThreadClock(), ThreadClock()
        for clock, thread in zip(clocks, native, strict=True):
            assert not clock.is_idle(os.getpid(), thread)
            assert not clock.is_idle(os.getpid(), thread), "too soon"
        time.sleep(1.0)
        assert [clock.is_idle(os.getpid(), thread) for clock, thread in zip(clocks, native, strict=True)] == [
            False,
            True,
        ]
    finally:
        is_over.set()
    assert not ThreadClock().is_idle(None, 1)
    assert not ThreadClock().is_idle(os.getpid(), 0)


BESIDE = """
import threading
work.begin_step([%d])
thread = threading.Thread(target=lambda: work.run_beside(%d, 1, lambda: ctypes.string_at(8)))
thread.start()
thread.join()
"""


def test_the_thread_that_crashed_tells_the_graph(record: WorkRecord) -> None:
    code = "import ctypes\n" + PROCESS.replace("\nleave()\n", BESIDE)
    args = [str(record.work_fd), str(record.stack_fd), "0"]
    process = subprocess.run(
        [sys.executable, "-c", code % (graph_id_of(1, 5), graph_id_of(1, 6), graph_id_of(1, 7)), *args],
        pass_fds=(record.work_fd, record.stack_fd),
    )
    assert record.sample().at_work == {graph_id_of(1, 6), graph_id_of(1, 7)}
    end = end_of(process.returncode, record, is_silent=False, num_oom_kills=0)
    assert (end.has_crashed, end.at_work) == (True, {7})
    assert record.crashed_thread != record.sample().thread
