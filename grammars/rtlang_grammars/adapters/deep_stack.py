"""Runs a recursive function on a thread with a large stack.

llguidance follows rules and references by recursion in native code. On an ordinary thread a chain of some thousand references overflows the
stack and ends the process, so this work runs on a thread whose stack fits the longest source allowed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

STACK_BYTES = 256 << 20
"""Address space only: memory is used as deep as a call goes, and released at its end."""

_T = TypeVar("_T")
_lock = threading.Lock()  # the stack size of new threads is a setting of the whole process


def on_deep_stack(work: Callable[[], _T]) -> _T:
    """Call `work` on a stack of STACK_BYTES; returns its result.

    Raises:
        Whatever `work` raises. RuntimeError: no thread can be started.
    """
    returned: list[_T] = []
    raised: list[BaseException] = []

    def call() -> None:
        try:
            returned.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, name="rtlang-deep-stack", daemon=True)
    with _lock:
        before = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if raised:
        raise raised[0]
    return returned[0]
