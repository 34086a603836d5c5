"""Guards a runtime against use after fork, and holds process-wide settings while it runs.

A forked process has a copy of the runtime's memory but none of its threads: waiting for the runtime there would never end.
"""

from __future__ import annotations

import os
import threading

from rtlang.contract.errors import EngineDeadError
from rtlang.runtime.process import process_settings


class ForkGuard:
    """Records the process in which a runtime runs. Owned by the runtime; safe to use from several threads."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._is_counted = False
        self._lock = threading.Lock()

    @property
    def is_forked(self) -> bool:
        """Whether the runtime was started in another process, of which this one is a fork."""
        return self._pid is not None and self._pid != os.getpid()

    def check(self) -> None:
        """Raise if this process was forked after the runtime started.

        Raises:
            EngineDeadError: see `is_forked`.
        """
        if self.is_forked:
            raise EngineDeadError(
                f"this process was forked from pid {self._pid} after the runtime started; create a new Runtime here"
            )

    def begin(self) -> None:
        """Mark the runtime as running in this process, and apply the process-wide settings."""
        self._pid = os.getpid()
        process_settings.begin()
        self._is_counted = True

    def end(self) -> None:
        """Mark the runtime as stopped and restore the process-wide settings. Idempotent."""
        with self._lock:
            was_counted, self._is_counted = self._is_counted, False
        if was_counted:
            process_settings.end()
