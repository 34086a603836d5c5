"""A child process as an engine: its handle."""

from __future__ import annotations

import pytest

from rtlang.fleet.engines.launcher import ProcessLauncher


def test_a_child_process_can_be_waited_for_and_killed() -> None:
    launcher = ProcessLauncher("one")
    assert launcher.name == "one"
    handle = launcher.launch()
    with handle.connection:
        with pytest.raises(TimeoutError):
            handle.wait(0.0)
        assert handle.pid is not None
        handle.kill()
        assert handle.wait(60.0) == -9
        assert handle.connection.recv(1) == b"", "the other end of the socket is the child's alone"
        handle.kill()
