"""Host work beside the forward pass: a second thread acts on the engine while the engine thread computes a step on the CPU.

The compiled kernels of a step release the interpreter lock and touch the tensors of the step only. Meanwhile another core can give the
outputs of the previous step to their listeners and run commands. At any time exactly one of the two threads may act on the engine: the one
that has the *turn*. The engine thread gives it away when only the computation of the model is left, and takes it back when that is done; it
waits for one piece of work at most, and does the rest itself.

Giving the turn away costs a wake-up of the second thread, so it pays only if there is enough to do. Both times are measured.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model.system_resources import num_cores

logger = logging.getLogger(__name__)

VARIABLE = "RTLANG_OVERLAP"
_WEIGHT = 1 / 16
"""Weight of the last step in the averages of times."""
_GAIN = 2.0
"""The work of a step must take this many times as long as handing it over."""
_NUM_TRIALS = 32
"""Hand-overs that are timed at the start; a fifth of a millisecond."""


class HostOverlap:
    """The turn of two threads, and the second thread. A context manager around the computation of each step.

    The methods are for the engine thread, `call` excepted. It has the turn from `start` to `close`, except from `begin` to the end of the
    `with` block.

    Args:
        is_forced: hand over whatever the measurements say.

    Attributes:
        error: the exception that a piece of work raised; the engine thread raises it.
    """

    def __init__(self, *, is_forced: bool = False, clock: Callable[[], float] = perf_counter) -> None:
        self.error: BaseException | None = None
        self._is_forced, self._clock = is_forced, clock
        self._act: Callable[[], bool] = _no_work
        self._has_work: Callable[[], bool] = lambda: True
        self._turn = threading.Lock()
        self._bell: SimpleQueue[bool] = SimpleQueue()  # True: look for work, False: end
        self._is_armed = self._is_open = False
        self._thread = threading.Thread(target=self._run, name="rtlang-engine-2", daemon=True)
        self._work_s = self._cost_s = 0.0

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller runs on the second thread, which acts on the engine only while it has the turn."""
        return threading.current_thread() is self._thread

    @property
    def pays(self) -> bool:
        """Whether the outputs of a step should wait for the next step."""
        return self._is_forced or self._work_s > _GAIN * self._cost_s

    def start(self, act: Callable[[], bool], has_work: Callable[[], bool]) -> None:
        """Take the turn, start the thread and measure what handing over costs.

        Args:
            act: does one piece of work; returns False if there is none.
            has_work: whether there is some; cheap.
        """
        self._turn.acquire()
        self._thread.start()
        for _ in range(_NUM_TRIALS):
            started = self._clock()
            with self:
                self.begin()
            seconds = self._clock() - started
            self._cost_s = seconds if not self._cost_s else min(self._cost_s, seconds)
        self._act, self._has_work = act, has_work

    def note(self, seconds: float) -> None:
        """Take in how long the work of a step took that can be handed over."""
        self._work_s += _WEIGHT * (seconds - self._work_s)

    def __enter__(self) -> None:
        """From now on `begin` gives the turn away."""
        self._is_armed = True

    def __exit__(self, *_: object) -> None:
        """Take the turn back, if it was given away. Waits for the piece of work that is being done."""
        self._is_armed = False
        if self._is_open:
            self._is_open = False
            self._turn.acquire()

    def begin(self) -> None:
        """Give the turn away: within the `with` block, the engine thread only computes from now on."""
        if self._is_armed:  # else a runner computes without the engine, when it is loaded
            self._is_open = True
            self._turn.release()
            if self._has_work():
                self._bell.put(True)

    def call(self) -> None:
        """Let the second thread look for work, if it may work now. Callable from any thread."""
        if self._is_open:
            self._bell.put(True)

    def close(self) -> None:
        """End the thread and wait for it."""
        self._turn.release()
        self._bell.put(False)
        self._thread.join()

    def _run(self) -> None:
        while self._bell.get():
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
    """The overlap of a runtime; None on a device, where steps are pipelined, and if there is one core.

    Raises:
        ConfigError: RTLANG_OVERLAP is not one of auto, on and off.
    """
    value = os.environ.get(VARIABLE) or "auto"
    if value not in ("auto", "on", "off"):
        raise ConfigError(VARIABLE, value, "expected auto, on or off")
    if config.device != "cpu" or value == "off" or (value == "auto" and num_cores() < 2):
        return None
    return HostOverlap(is_forced=value == "on")


def _no_work() -> bool:
    return False
