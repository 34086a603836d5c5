"""Makes a new runner in the place of one that fails at every step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from rtlang.contract.errors import EngineDeadError
from rtlang.model.runner import Runner

MAX_PAUSE_S = 8.0


class RunnerRebuild:
    """Makes new runners on a thread of its own, after growing pauses, so that nothing waits for them.

    Args:
        make: frees the present runner and makes a new one, which it loads.
    """

    def __init__(self, make: Callable[[], Runner]) -> None:
        self._make = make
        self._is_closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, num_failed: int) -> Future[Runner]:
        """Make a new runner, after the last `num_failed` ones failed. The future fails with what `make` raises, or after `close`."""
        rebuilt: Future[Runner] = Future()

        def work() -> None:
            try:
                if num_failed:
                    self._is_closed.wait(min(2.0**num_failed, MAX_PAUSE_S))
                if self._is_closed.is_set():
                    raise EngineDeadError("the runtime was closed")
                runner = self._make()
            except BaseException as error:
                rebuilt.set_exception(error)
            else:
                rebuilt.set_result(runner)

        self._thread = threading.Thread(target=work, name="runner-rebuild", daemon=True)
        self._thread.start()
        return rebuilt

    def close(self) -> None:
        """End a pause, and wait for a runner that is being made. Idempotent."""
        self._is_closed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
