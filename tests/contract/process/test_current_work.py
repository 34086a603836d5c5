"""The record of a thread's work, and the only work that another thread may end."""

from __future__ import annotations

import itertools
import mmap
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from rtlang.contract.process.current_work import (
    MAX_BESIDE,
    MAX_ROW_GRAPHS,
    NUM_WORDS,
    CurrentWork,
    WorkSample,
    read_sample,
)
from rtlang.contract.process.stoppable_work import WorkStopped
from tests.support.long_tests import sized


def test_a_record_says_what_the_thread_does_and_for_whom() -> None:
    work = CurrentWork()
    assert (work.sample().is_resting, work.sample().at_work) == (True, frozenset())
    work.begin_turn()
    assert (work.sample().turn, work.sample().graph_id, work.sample().thread) == (1, None, threading.get_ident())
    work.begin(7)
    work.begin_node(0)
    assert (work.sample().graph_id, work.sample().node_id, work.sample().at_work) == (7, 0, {7})
    work.begin(8)
    assert (work.sample().graph_id, work.sample().node_id) == (8, None)
    work.begin_step([3, 4, 3])
    assert (work.sample().graph_id, work.sample().at_work, work.sample().piece) == (None, {3, 4}, None)
    work.begin(4)
    assert work.sample().at_work == {4}, "after the step, its results are those of one graph after the other"
    work.end_step()
    assert work.sample().at_work == frozenset()
    work.begin(5)
    work.rest()
    assert (work.sample().at_work, work.sample().piece) == (frozenset(), None)


def test_shared_memory_has_the_record_when_its_thread_is_gone() -> None:
    memory = mmap.mmap(-1, 8 * NUM_WORDS)
    work = CurrentWork()
    work.share(memoryview(memory).cast("Q"))
    work.begin_turn()
    work.begin_step(range(1, MAX_ROW_GRAPHS + 50))
    found = read_sample(memoryview(memory[:]).cast("Q"))
    assert len(found.at_work) == MAX_ROW_GRAPHS
    work.begin(9)
    assert read_sample(memoryview(memory[:]).cast("Q")).at_work == {9}


def test_work_on_other_threads_is_recorded_while_it_runs() -> None:
    work = CurrentWork()
    work.begin_turn()
    work.begin(7)

    def look(graph_ids: list[int], depth: int) -> WorkSample:
        if depth == len(graph_ids):
            return work.sample()
        found: list[WorkSample] = []
        thread = threading.Thread(
            target=lambda: found.append(work.run_beside(graph_ids[depth], 2, lambda: look(graph_ids, depth + 1)))
        )
        thread.start()
        thread.join(60)
        return found[0]

    assert look([8, 9], 0).at_work == {7, 8, 9}
    assert work.sample().at_work == {7}
    many = list(range(100, 100 + MAX_BESIDE + 2))
    assert look(many, 0).at_work == {7, *many[:MAX_BESIDE]}, "more threads are not recorded"
    sample = look([8, 9], 0)
    assert {each.node_id for each in sample.beside} == {2}
    assert sample.at_work_in(sample.thread) == {7}
    assert sample.at_work_in(1) == {7, 8, 9}, "a thread of a library, which works for any of them"
    assert sample.at_work_in(next(each.thread for each in sample.beside if each.graph_id == 9)) == {9}


class Worker:
    """A thread that does as it is told, one turn after the other."""

    def __init__(self) -> None:
        self.work = CurrentWork()
        self.results: list[object] = []
        self._acts: list[Callable[[], object]] = []
        self._wake, self._is_over = threading.Semaphore(0), False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def do(self, act: Callable[[], object]) -> None:
        self._acts.append(act)
        self._wake.release()

    def end(self) -> None:
        if self._thread.is_alive():
            self.do(self._leave)
        self._thread.join(60)
        assert not self._thread.is_alive(), "nothing may be raised outside the stoppable piece"

    def _leave(self) -> None:
        self._is_over = True

    def _run(self) -> None:
        for graph_id in itertools.count(1):
            self._wake.acquire()
            self.work.begin_turn()
            self.work.begin(graph_id)
            act = self._acts[graph_id - 1]
            try:
                self.results.append(act())
            except WorkStopped as stopped:
                self.results.append(stopped)
            if self._is_over:
                return


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.end()


def loop() -> None:
    while True:
        pass


def interrupt(worker: Worker) -> WorkSample:
    """Interrupt the piece that runs, or the next one."""
    while True:
        sample = worker.work.sample()
        if worker.work.interrupt(sample, 2.5):
            return sample
        time.sleep(0)


def test_a_stoppable_piece_ends_at_once_and_the_thread_goes_on(worker: Worker) -> None:
    worker.do(lambda: worker.work.run_stoppable(loop))
    sample = interrupt(worker)
    assert not worker.work.interrupt(sample, 9.0), "once"
    worker.do(lambda: worker.work.run_stoppable(lambda: sum(range(1000))))
    worker.do(lambda: "other")
    worker.end()
    stopped, *rest = worker.results
    assert isinstance(stopped, WorkStopped)
    assert stopped.seconds == 2.5
    assert rest == [499500, "other", None]


def test_stoppable_work_on_another_thread_ends_and_that_of_the_engines_thread_goes_on(worker: Worker) -> None:
    results: list[object] = []

    def beside() -> None:
        try:
            worker.work.run_beside(9, 1, lambda: worker.work.run_stoppable(loop))
        except WorkStopped as stopped:
            results.append((stopped.seconds, stopped.thread))

    is_over = threading.Event()
    worker.do(lambda: worker.work.run_stoppable(lambda: is_over.wait(60)))
    thread = threading.Thread(target=beside)
    thread.start()
    while not any(worker.work.interrupt_beside(each, 30.0) for each in worker.work.sample().beside):
        time.sleep(0)
    thread.join(60)
    assert results == [(30.0, "a thread")]
    assert worker.work.sample().beside == ()
    is_over.set()
    worker.end()
    assert worker.results[0] is True


def test_other_work_is_never_interrupted() -> None:
    work = CurrentWork()
    work.begin_turn()
    work.begin(1)
    assert not work.interrupt(work.sample(), 2.0)
    with pytest.raises(ZeroDivisionError):
        work.run_stoppable(lambda: 1 // 0)
    assert not work.interrupt(work.sample(), 2.0)


def test_a_piece_that_began_after_the_reading_is_not_interrupted() -> None:
    work = CurrentWork()
    work.begin_turn()
    work.begin(1)
    old = work.sample()
    work.begin_turn()
    work.begin(1)
    assert work.run_stoppable(lambda: work.interrupt(old, 2.0)) is False


def test_sliced_work_ends_when_it_was_asked_to() -> None:
    work = CurrentWork()
    work.poll(1)
    work.asked_to_stop = 1, 4.0
    work.poll(2)
    with pytest.raises(WorkStopped) as stopped:
        work.poll(1)
    assert stopped.value.seconds == 4.0
    work.poll(1)


def test_interrupts_at_random_moments_end_their_piece_and_nothing_else(worker: Worker) -> None:
    """Pieces of about the time that an interrupt takes, so that many come at their last instruction or just too late."""
    rng = random.Random(3)
    num_pieces = sized(100_000, usual=3000)
    lengths = [rng.randrange(60) for _ in range(num_pieces)]
    is_over = threading.Event()

    def pieces() -> int:
        num_stopped = 0
        for index, length in enumerate(lengths, 1):
            worker.work.begin(index)
            try:
                total = worker.work.run_stoppable(lambda n=length: sum(each for each in range(n)))  # type: ignore[misc]
                assert total == length * (length - 1) // 2
            except WorkStopped:
                num_stopped += 1
        is_over.set()
        return num_stopped

    worker.do(pieces)
    num_sent = 0
    while not is_over.is_set():
        num_sent += worker.work.interrupt(worker.work.sample(), 1.0)
    worker.end()
    num_stopped = worker.results[0]
    assert isinstance(num_stopped, int)
    assert 0 <= num_stopped <= num_sent <= num_pieces, "an interrupt that came too late is taken back"
