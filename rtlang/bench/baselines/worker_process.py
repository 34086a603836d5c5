"""A process that runs workloads: settings as its argument, a workload per line of its input, a line of results for each."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rtlang.contract.errors import RtlangError

_END_CHARS = 2000


class WorkerProcess:
    """Starts a process and talks to it.

    Args:
        name: of what runs there, for errors.
        command: the program and its arguments.
        environment: its variables; default: those of this process.
        field: the option that named the program.
    Attributes:
        first: the first line that it wrote.
    Raises:
        RtlangError: it does not start, or ends before it has written a line; the message has the end of what it printed.
    """

    def __init__(
        self, name: str, command: list[str], environment: Mapping[str, str] | None = None, *, field: str = "program"
    ) -> None:
        self._name = name
        self._open = ExitStack()
        self._printed = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="rtlang-bench-")), "printed")
        printed = self._open.enter_context(self._printed.open("w"))
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed, text=True, env=environment
            )
        except OSError as error:
            self._open.close()
            raise RtlangError(f"{field} = {command[0]}: {error}") from error
        self.first = self._read()

    @property
    def proc(self) -> Path:
        """Its folder of the system's process files."""
        return Path(f"/proc/{self._process.pid}")

    def close(self) -> None:
        """End the process. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._open.close()

    def ask(self, value: object) -> Any:
        """Send a line and wait for the answer.

        Raises:
            RtlangError: the process has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()
        except OSError:  # `_read` tells why
            pass
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            end = self._printed.read_text(encoding="utf-8", errors="replace")[-_END_CHARS:].strip()
            self.close()
            raise RtlangError(f"{self._name} ended with code {self._process.returncode}: {end}")
        return json.loads(line)
