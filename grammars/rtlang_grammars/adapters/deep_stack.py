"""Calls on a stack that is deep enough for what recurses over a caller's input.

The grammar library follows rules and references by recursion in native code. On an ordinary thread a chain of some thousand of them
runs over the end of the stack, which ends the process; so such work is done on a thread whose stack holds the longest source allowed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

STACK_BYTES = 256 << 20
"""Address space only: memory is used as deep as a call goes, and given back at its end."""

_T = TypeVar("_T")
_lock = threading.Lock()  # the size of new stacks is a setting of the whole process


def on_deep_stack(work: Callable[[], _T]) -> _T:
    """Call `work` on a stack of STACK_BYTES, and return what it returns.

    Raises:
        Whatever `work` raises. RuntimeError: there is no room for another thread.
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
