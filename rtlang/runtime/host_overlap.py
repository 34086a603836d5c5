"""Host work beside the forward pass: a second thread acts on the engine while the engine thread computes a step on the CPU.

The compiled kernels of a step release the interpreter lock and access only the tensors of the step. Meanwhile another core can deliver the
outputs of the previous step to their listeners and run commands. At any time exactly one of the two threads may act on the engine: the one
that holds a lock, the *turn*. The engine thread releases it when only the computation of the model is left, and acquires it again when that
is done; it waits for one piece of work at most, and does the rest itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter, thread_time

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model.system_resources import num_cores
from rtlang.runtime.overlap_choice import OverlapChoice

VARIABLE = "RTLANG_OVERLAP"


class HostOverlap:
    """The turn of two threads, and the second thread. A context manager around the computation of each step.

    The methods are for the engine thread, except `notify`. It has the turn from `start` to `close`, except from `begin` to the end of the
    `with` block.

    Args:
        is_forced: always leave work for the next step, whatever the measurements say.

    Attributes:
        error: the exception that a piece of work raised; the engine thread raises it.
        choice: says whether work should be left for the next step.
        idle_s: time of the last step in which the engine thread did not run after `begin`; 0 if it has not begun.
    """

    def __init__(self, *, is_forced: bool = False) -> None:
        self.error: BaseException | None = None
        self.choice = OverlapChoice(is_forced=is_forced)
        self.idle_s = 0.0
        self._act: Callable[[], bool] = lambda: False
        self._has_work: Callable[[], bool] = lambda: False
        self._turn = threading.Lock()
        self._signals: SimpleQueue[bool] = SimpleQueue()  # True: look for work, False: end
        self._is_armed = self._is_open = False
        self._began = (0.0, 0.0)
        self._thread = threading.Thread(target=self._run, name="rtlang-engine-2", daemon=True)

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller runs on the second thread, which acts on the engine only while it has the turn."""
        return threading.current_thread() is self._thread

    def start(self, act: Callable[[], bool], has_work: Callable[[], bool]) -> None:
        """Take the turn and start the thread.

        Args:
            act: does one piece of work; returns False if there is none.
            has_work: whether there is some; cheap.
        """
        self._act, self._has_work = act, has_work
        self._turn.acquire()
        self._thread.start()

    def __enter__(self) -> None:
        """From now on `begin` gives the turn away."""
        self._is_armed, self.idle_s = True, 0.0

    def __exit__(self, *_: object) -> None:
        """Take the turn back, if it was given away. Waits for the piece of work that is being done."""
        self._is_armed = False
        if self._is_open:
            self._is_open = False
            self._turn.acquire()
            began, began_running = self._began
            self.idle_s = max(0.0, perf_counter() - began - (thread_time() - began_running))

    def begin(self) -> None:
        """Give the turn away: within the `with` block, the engine thread only computes from now on."""
        if self._is_armed:  # else a runner computes without the engine, when it is loaded
            self._began = perf_counter(), thread_time()
            self._is_open = True
            self._turn.release()
            if self._has_work():
                self._signals.put(True)

    def notify(self) -> None:
        """Let the second thread look for work, if it may work now. Callable from any thread."""
        if self._is_open:
            self._signals.put(True)

    def close(self) -> None:
        """End the thread and wait for it."""
        self._turn.release()
        self._signals.put(False)
        self._thread.join()

    def _run(self) -> None:
        while self._signals.get():
            while True:
                with self._turn:
                    if not self._is_open or self.error is not None:
                        break
                    try:
                        if not self._act():
                            break
                    except BaseException as error:  # the engine thread raises it
                        self.error = error


def overlap_of(config: RuntimeConfig) -> HostOverlap | None:
    """The overlap of a runtime; None on a device, where steps are pipelined, and unless RTLANG_OVERLAP asks for it.

    Raises:
        ConfigError: RTLANG_OVERLAP is not one of auto, on and off.
    """
    value = os.environ.get(VARIABLE) or "off"
    if value not in ("auto", "on", "off"):
        raise ConfigError(VARIABLE, value, "expected auto, on or off")
    if config.device != "cpu" or value == "off" or (value == "auto" and num_cores() < 2):
        return None
    return HostOverlap(is_forced=value == "on")
