"""Starting an engine somewhere: the interface, and the launcher of a child process on this machine."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Protocol

from rtlang.contract.process.logs import LogFormat, writes_json
from rtlang.fleet.engines.work_record import WorkRecord


class EngineHandle(Protocol):
    """One engine that was started.

    Attributes:
        connection: carries the frames of frames.py. The engine ends in an orderly way when its connection ends.
        pid: the id of its process if that is on this machine.
        record: what its process works on, if that shares memory with this one.
    """

    connection: socket.socket
    pid: int | None
    record: WorkRecord | None

    def wait(self, timeout_s: float) -> int:
        """Wait for the engine's end; returns its exit code.

        Raises:
            TimeoutError: it has not ended.
        """

    def kill(self) -> None:
        """End the engine at once. Does nothing if it has ended."""

    def ask_for_stack(self) -> None:
        """Let the engine write its stacks into its record, if it has one."""


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
        module: the program of the child.
    """

    def __init__(
        self,
        name: str = "engine",
        *,
        environment: Mapping[str, str] | None = None,
        module: str = "rtlang.fleet.host.worker",
    ) -> None:
        self._name, self.environment, self.module = name, dict(environment or {}), module

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
        record = WorkRecord()
        with theirs:
            fds = theirs.fileno(), record.work_fd, record.stack_fd
            process = subprocess.Popen(
                [sys.executable, "-m", self.module, ",".join(map(str, fds)), level, form],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                env=os.environ | paths | self.environment,
            )
        return _ChildProcess(process, ours, record)


class _ChildProcess:
    """The handle of a child process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket, record: WorkRecord) -> None:
        self._process = process
        self.connection = connection
        self.record: WorkRecord | None = record
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

    def ask_for_stack(self) -> None:
        """See `EngineHandle.ask_for_stack`."""
        self._process.send_signal(signal.SIGUSR1)
