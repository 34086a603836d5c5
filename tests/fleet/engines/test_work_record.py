"""The record of an engine's process: its work and its stack when it is gone."""

from __future__ import annotations

import mmap
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rtlang.contract.process.current_work import CurrentWork
from rtlang.fleet.engines.engine_end import end_of
from rtlang.fleet.engines.work_record import StallWatch, WorkRecord
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


def test_a_stall_is_the_same_work_for_one_graph_in_one_turn(record: WorkRecord) -> None:
    watch, work = StallWatch(), CurrentWork()
    work.share(memoryview(mmap.mmap(record.work_fd, 0)).cast("Q"))
    work.begin_turn()
    assert [watch.note(record.sample()) for _ in range(2)] == [0, 0]
    work.begin(7)
    assert [watch.note(record.sample()) for _ in range(3)] == [0, 1, 2]
    work.begin_turn()
    work.begin(7)
    assert watch.note(record.sample()) == 0
    work.rest()
    assert [watch.note(record.sample()) for _ in range(2)] == [0, 0]
