"""How an engine has ended, by its exit code and what the kernel says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from rtlang.fleet.engines.engine_end import CONNECTION_LOST, count_oom_kills, end_of, is_suspended
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    ("code", "num_oom_kills", "is_silent", "has_crashed", "event"),
    [
        (None, 0, False, False, "has ended"),
        (0, 0, False, False, "ended with code 0"),
        (70, 0, False, True, "ended with code 70"),
        (-signal.SIGSEGV, 0, False, True, "was ended by SIGSEGV"),
        (-signal.SIGKILL, 0, False, False, "was ended by SIGKILL"),
        (-signal.SIGKILL, 1, False, True, "ran out of memory"),
        (-signal.SIGSEGV, 1, False, True, "was ended by SIGSEGV"),
        (-signal.SIGKILL, 1, True, True, "gave no sign of life"),
        (CONNECTION_LOST, 0, False, False, "cannot be reached any more"),
        (CONNECTION_LOST, 0, True, True, "gave no sign of life"),
        (-signal.SIGHUP, 0, False, True, "was ended by SIGHUP"),
        (-200, 0, False, True, "was ended by signal 200"),
    ],
)
def test_an_end_is_a_crash_unless_somebody_else_caused_it(
    code: int | None, num_oom_kills: int, is_silent: bool, has_crashed: bool, event: str
) -> None:
    end = end_of(code, None, is_silent=is_silent, num_oom_kills=num_oom_kills)
    assert (end.has_crashed, end.event, end.at_work, end.held_by) == (has_crashed, event, None, None)


def test_the_kernel_counts_kills_for_memory() -> None:
    assert count_oom_kills() >= 0


def test_an_end_of_a_suspended_process_blames_nobody() -> None:
    end = end_of(-signal.SIGKILL, None, is_silent=True, num_oom_kills=1, was_suspended=True)
    assert (end.has_crashed, end.event, end.at_work) == (False, "was suspended, and gave no sign of life", None)


def test_a_process_is_suspended_from_sigstop_to_sigcont() -> None:
    assert not is_suspended(None)
    assert not is_suspended(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_suspended(process.pid))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: not is_suspended(process.pid))
    finally:
        process.kill()
        process.communicate()
    assert not is_suspended(process.pid)
