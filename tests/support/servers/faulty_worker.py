"""The process of an engine with faults that a graph asks for: its work hangs, or ends the process by a signal.

- A pure function: `upper` of HANGS loops in Python, and of HOLDS in native code that holds the interpreter's lock; of a text that begins so
  and is long, on a thread beside the engine's.
- A matcher: the token of a constrained generation for which MATCHER_LEFT tokens are left hangs in such code, and ends the process with the
  signal if CRASH_LEFT are left.
- The runner: `x_fault="exit"` raises the signal FAULT_SIGNAL, a variable of the environment, in place of an exit.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rtlang.contract.graph import pure_functions
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.fleet.host import worker
from rtlang.model import faulty_runner
from rtlang_grammars.spec.work_limit import WorkLimit

HANGS, HOLDS = "hangs", "holds"
MATCHER_LEFT, CRASH_LEFT = 313, 317
SIGNAL = "FAULT_SIGNAL"


def hold() -> None:
    """Search for as long as the universe exists."""
    re.match(r"(a+)+$", "a" * 100 + "b")


def install() -> None:
    """Install the faults in this process."""
    accept: Any = ConstraintSession.try_accept

    def leave(code: int) -> None:
        signal.pthread_kill(threading.get_ident(), int(os.environ[SIGNAL]))  # as a fault of this thread

    def upper(text: str) -> str:
        while text.startswith(HANGS):
            pass
        if text.startswith(HOLDS):
            hold()
        return text.upper()

    def try_accept(session: ConstraintSession, token_id: int, remaining: int, work: WorkLimit) -> bool:
        if remaining == MATCHER_LEFT:
            hold()
        if remaining == CRASH_LEFT:
            leave(0)
        found: bool = accept(session, token_id, remaining, work)
        return found

    functions = pure_functions.FUNCTIONS
    functions["upper"] = replace(functions["upper"], compute=upper)
    ConstraintSession.try_accept = try_accept  # type: ignore[method-assign]
    faulty_runner.os = SimpleNamespace(_exit=leave)  # type: ignore[attr-defined]


if __name__ == "__main__":
    install()
    worker.main()
