"""Engines on threads of this process, which share one runtime: launched at once, and killed by cutting their connections."""

from __future__ import annotations

import contextlib
import socket
import threading

from rtlang.fleet.engines.work_record import WorkRecord
from rtlang.fleet.host.engine_host import EngineHost


class ThreadEngine:
    """The handle of a connection to the host; see `rtlang.fleet.engines.launcher.EngineHandle`."""

    def __init__(self, host: EngineHost) -> None:
        self.connection, self._theirs = socket.socketpair()
        self.pid: int | None = None
        self.record: WorkRecord | None = None
        self._thread = threading.Thread(target=self._run, args=(host,), daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> int:
        """See `EngineHandle.wait`."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError
        return 0

    def ask_for_stack(self) -> None:
        """Does nothing: the engine has no record."""

    def kill(self) -> None:
        """Cut the connection: what is in it is lost."""
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)

    def _run(self, host: EngineHost) -> None:
        with self._theirs:
            host.serve(self._theirs)


class ThreadLauncher:
    """Launches engines on threads.

    Attributes:
        engines: those that were launched, the last one at the end.
    """

    def __init__(self, host: EngineHost, name: str = "engine") -> None:
        self._host, self.name = host, name
        self.engines: list[ThreadEngine] = []

    def launch(self) -> ThreadEngine:
        """See `Launcher.launch`."""
        self.engines.append(ThreadEngine(self._host))
        return self.engines[-1]
