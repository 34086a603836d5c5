"""A runtime's stay in its process: the settings that it holds there, and the process that it cannot leave.

A process that is forked takes a runtime's memory along, and none of its threads: whoever waited for it there would wait for ever.
"""

from __future__ import annotations

import os
import threading

from rtlang.contract.errors import EngineDeadError
from rtlang_grammars import process


class ForkGuard:
    """Whether a runtime runs, and where. Owned by it; safe to use from several threads."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._is_counted = False
        self._lock = threading.Lock()

    @property
    def is_elsewhere(self) -> bool:
        """It began in another process than the caller's."""
        return self._pid is not None and self._pid != os.getpid()

    def check(self) -> None:
        """Refuse to go on in another process.

        Raises:
            EngineDeadError: see `is_elsewhere`.
        """
        if self.is_elsewhere:
            raise EngineDeadError(
                f"the runtime runs in the process {self._pid}, of which this one is a fork without its threads; start one here"
            )

    def begin(self) -> None:
        """It runs in this process from now on; see `process.begin`."""
        self._pid = os.getpid()
        process.begin()
        self._is_counted = True

    def end(self) -> None:
        """It does not any more. Idempotent."""
        with self._lock:
            was_counted, self._is_counted = self._is_counted, False
        if was_counted:
            process.end()
