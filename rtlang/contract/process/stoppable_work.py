"""Pure functions that another thread may end at any instruction.

Nothing else is ever interrupted: code that changes the state of the engine, of a cache or of a matcher is not made to end in its middle.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


class WorkStopped(Exception):
    """A stoppable piece of work was stopped, or sliced work was asked to stop: its graph fails.

    Attributes:
        seconds: for which it had held the thread.
        thread: names the thread.
    """

    def __init__(self, seconds: float, thread: str = "the engine thread") -> None:
        super().__init__(f"stopped after {seconds:g} s")
        self.seconds, self.thread = seconds, thread


class _Interrupt(BaseException):
    """Raised by a monitor's thread within a stoppable piece of work; never leaves `StoppableWork.run`."""


class StoppableWork:
    """The stoppable work of one thread at a time. `interrupt` is called on another one.

    Args:
        thread: names the thread in `WorkStopped`.
    """

    def __init__(self, thread: str = "the engine thread") -> None:
        self._thread = thread
        self._piece: object | None = None  # that runs
        self._is_interrupting = self._was_interrupted = False
        self._held_s = 0.0

    def run(self, act: Callable[[], _T]) -> _T:
        """Call a function that `interrupt` may end at any instruction. It must be pure: its effect is only its result.

        Raises:
            WorkStopped: it was stopped.
        """
        self._was_interrupted, self._piece = False, act
        try:
            try:
                return act()
            finally:
                self._end_piece()
        except _Interrupt:  # one at most for each piece, so none can come in the next lines
            self._end_piece()
            raise WorkStopped(self._held_s, self._thread) from None

    def _end_piece(self) -> None:
        """From here on no interrupt arrives. It may be interrupted itself, and is then called again."""
        self._piece = None
        while self._is_interrupting:  # the monitor found the piece running
            time.sleep(0)
        if self._was_interrupted:
            _raise_in(threading.get_ident(), None)  # unless it has arrived

    def interrupt(self, thread: int, seconds: float, is_current: Callable[[], bool]) -> bool:
        """End the piece that runs.

        Args:
            thread: `threading.get_ident` of its thread.
            seconds: for which it has held the thread.
            is_current: whether the thread still does what shall be ended.
        Returns:
            Whether it is interrupted.
        """
        self._is_interrupting = True  # before the piece is read: see `_end_piece`
        try:
            if self._piece is None or self._was_interrupted or not is_current():
                return False
            self._held_s, self._was_interrupted = seconds, True
            _raise_in(thread, _Interrupt)
            return True
        finally:
            self._is_interrupting = False


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread when it executes the next instruction of Python; None takes it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
