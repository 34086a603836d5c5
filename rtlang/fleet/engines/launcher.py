"""Starting an engine somewhere: the interface, and the launcher of a child process on this machine."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Protocol

from rtlang.contract.process.logs import LogFormat, writes_json


class EngineHandle(Protocol):
    """One engine that was started.

    Attributes:
        connection: carries the frames of frames.py. The engine ends in an orderly way when its connection ends.
        pid: the id of its process if that is on this machine.
    """

    connection: socket.socket
    pid: int | None

    def wait(self, timeout_s: float) -> int:
        """Wait for the engine's end; returns its exit code.

        Raises:
            TimeoutError: it has not ended.
        """

    def kill(self) -> None:
        """End the engine at once. Does nothing if it has ended."""


class Launcher(Protocol):
    """Starts engines in one place, one after the other."""

    @property
    def name(self) -> str:
        """Names the place in logs and metrics; unique in a fleet."""

    def launch(self) -> EngineHandle:
        """Start an engine and connect to it. Its model may still be loading.

        Raises:
            RtlangError, OSError: it cannot be started now.
        """


class ProcessLauncher:
    """Starts each engine as a child process of this one.

    Attributes:
        environment: variables that are set in the child, in addition to the environment of this process.
    """

    def __init__(self, name: str = "engine", *, environment: Mapping[str, str] | None = None) -> None:
        self._name, self.environment = name, dict(environment or {})

    @property
    def name(self) -> str:
        """See `Launcher.name`."""
        return self._name

    def launch(self) -> EngineHandle:
        """See `Launcher.launch`."""
        ours, theirs = socket.socketpair()
        level = logging.getLevelName(logging.getLogger().getEffectiveLevel())
        form = LogFormat.JSON if writes_json() else LogFormat.TEXT
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "rtlang.fleet.host.worker", str(theirs.fileno()), level, form],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | paths | self.environment,
            )
        return _ChildProcess(process, ours)


class _ChildProcess:
    """The handle of a child process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process = process
        self.connection = connection
        self.pid: int | None = process.pid

    def wait(self, timeout_s: float) -> int:
        """See `EngineHandle.wait`."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the process {self.pid} has not ended") from None

    def kill(self) -> None:
        """See `EngineHandle.kill`."""
        self._process.kill()
