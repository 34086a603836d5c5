"""A runtime's stay in a process is counted once, and ends once."""

from __future__ import annotations

import os

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.runtime.process import fork_guard
from rtlang.runtime.process.fork_guard import ForkGuard


class Process:
    num_users = 0

    def begin(self) -> None:
        self.num_users += 1

    def end(self) -> None:
        self.num_users -= 1


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    fake = Process()
    monkeypatch.setattr(fork_guard, "process_settings", fake)
    return fake


def test_it_is_counted_from_its_beginning_to_its_first_end(process: Process) -> None:
    stay = ForkGuard()
    stay.end()
    assert process.num_users == 0
    stay.check()
    stay.begin()
    stay.check()
    assert process.num_users == 1
    stay.end()
    stay.end()
    assert process.num_users == 0


def test_elsewhere_it_is_refused_by_the_process_it_began_in(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    stay, here = ForkGuard(), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    assert not stay.is_forked  # it began nowhere
    stay.check()
    stay.begin()
    assert not stay.is_forked
    monkeypatch.setattr(os, "getpid", lambda: here)
    assert stay.is_forked
    with pytest.raises(EngineDeadError, match=f"pid {here + 1}"):
        stay.check()


def test_what_did_not_begin_is_not_counted(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "begin", fail)
    stay = ForkGuard()
    with pytest.raises(KeyboardInterrupt):
        stay.begin()
    stay.end()
    assert process.num_users == 0
