"""A server in a process of its own, as `rtlang serve` starts it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rtlang.contract.errors import EngineDeadError

START_TIMEOUT_S = 180.0


class ServerProcess:
    """`rtlang serve` on a free loopback port. Use as a context manager.

    Args:
        options: further arguments of the command.
        port: 0 chooses a free one.
        environment: variables besides the present ones.
        is_json: whether its log lines are JSON.
        command: the module, and its first arguments.
    Raises:
        EngineDeadError: the server did not start; holds its output.
    """

    def __init__(
        self,
        *options: str,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        is_json: bool = False,
        command: Sequence[str] = ("rtlang", "serve"),
    ) -> None:
        form = ["--log-format", "json"] if is_json else []
        module, *rest = command
        self._command = [sys.executable, "-m", module, *form, *rest, "--port", str(port), *options]
        self._environment = dict(environment or {})
        self._lines: list[str] = []
        self._is_listening = threading.Event()
        self.url = ""

    def __enter__(self) -> Self:
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        environment = os.environ | paths | self._environment
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self._reader = threading.Thread(target=self._read, name="rtlang-bench-server", daemon=True)
        self._reader.start()
        if not self._is_listening.wait(START_TIMEOUT_S) or not self.url:
            self.__exit__(None, None, None)
            raise EngineDeadError("the server did not start: " + "\n".join(self._lines[-20:]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        self._process.send_signal(signal.SIGINT)  # cancels what still runs
        try:
            self._process.wait(20.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    @property
    def lines(self) -> Sequence[str]:
        """Everything that it has printed, by lines."""
        return tuple(self._lines)

    @property
    def pid(self) -> int:
        """The id of the process that serves clients; its engines have others."""
        return self._process.pid

    @property
    def http_url(self) -> str:
        """The address for HTTP."""
        return self.url.replace("ws", "http", 1)

    @property
    def num_log_bytes(self) -> int:
        """Size of everything that it has printed."""
        return sum(len(line) for line in self._lines)

    def processes(self) -> list[int]:
        """Process ids of the server and its descendants (Linux)."""
        found = [self._process.pid]
        for pid in found:
            for path in Path(f"/proc/{pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    found.extend(int(child) for child in path.read_text().split())
        return found

    def num_resident_bytes(self) -> int:
        """Resident memory of the server and its descendants (Linux); 0 where it is not known."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError, IndexError):
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return total

    def metrics(self) -> dict[str, float]:
        """The samples of `/metrics` by name and labels, without the prefix."""
        with urllib.request.urlopen(self.url.replace("ws://", "http://") + "/metrics", timeout=30.0) as answer:
            lines = answer.read().decode().splitlines()
        return dict(_samples(lines))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            found = re.search(r"^serving .* at (ws://\S+)", line)
            if found is not None:
                self.url = found[1]
                self._is_listening.set()
        self._is_listening.set()


def cpu_s(pid: int) -> float:
    """Processor time of all threads of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _samples(lines: list[str]) -> Iterator[tuple[str, float]]:
    for line in lines:
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            yield name.removeprefix("rtlang_"), float(value)
