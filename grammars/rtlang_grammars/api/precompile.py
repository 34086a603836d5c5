"""Compiles the native code of grammars ahead of time and caches it on disk, for this and later processes.

Compiling holds the interpreter lock, so a program with other work (loading a model, say) starts a separate process:
`start_background_compile`, then `is_ready` before the code is needed.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from threading import Lock, Thread

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.native import native_code
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.vocabulary import Vocabulary

MAX_INTERPRETED_TOKENS = 8192
"""Largest vocabulary for interpreted code: traversing it takes half a second, and most masks of a schema take milliseconds."""
MAX_INTERPRETED_CHARS = 4000
"""Longest constraint for interpreted code, where reading 20,000 listed values or a step in a list of 200 objects takes over 1 s."""
AMBIGUOUS = frozenset((ConstraintKind.LARK, ConstraintKind.GBNF, ConstraintKind.EBNF))
"""Kinds that may need hundreds of parallel heads, however short they are."""

_LONGEST_S = 300.0
_lock = Lock()
_when_done: list[Callable[[], None]] | None = None
"""Called when the compiling process ends; None if no such process is running."""


def precompile() -> float:
    """Compile or load all native code; returns the seconds taken: up to a minute without cached code, else a fraction of a second."""
    started = time.perf_counter()
    letters = tuple(bytes([byte]) for byte in range(256))
    RtlangBackend.create(Vocabulary(letters, frozenset((256,)), frozenset((256,)), 257))
    return time.perf_counter() - started


def start_background_compile(others: Sequence[str] = ()) -> bool:
    """Start a process that compiles missing code, unless none is missing or one is already running; returns whether one was started.

    The process is detached: any process finds its results on disk. If it fails, every process compiles for itself.

    Args:
        others: modules whose `compile_ahead` is called first.
    """
    global _when_done
    with _lock:
        if _when_done is not None or not sys.executable or not native_code.is_any_missing_on_disk():
            return False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        code = f"from rtlang_grammars.api import precompile; precompile.compile_all({tuple(others)!r})"
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                env=environment,
                start_new_session=True,  # an interrupt from the terminal must not reach it
            )
        except OSError:
            return False
        with suppress(RuntimeError):  # if no thread can be started, nothing waits for the process
            Thread(target=_watch, args=(process,), name="rtlang-grammar-code", daemon=True).start()
            _when_done = []
        return True


def compile_all(others: Sequence[str]) -> None:
    """Entry point of the background process."""
    gc.disable()  # saves a sixth of the time: the compiler's objects stay alive until it is done
    for name in others:
        with suppress(Exception):  # the process that needs it will report the error
            import_module(name).compile_ahead()
    precompile()


def is_ready(vocab_size: int, constraint: Constraint, when_done: Callable[[], None]) -> bool:
    """Whether native code may run for this constraint and a vocabulary of `vocab_size` tokens.

    While the background process runs, small constraints make this whole process interpret the code. For larger ones this returns False and
    calls `when_done` once the code is compiled, on a thread that must not be blocked.
    """
    with _lock:
        if _when_done is None:
            return True
        if (
            vocab_size <= MAX_INTERPRETED_TOKENS
            and len(constraint.source) <= MAX_INTERPRETED_CHARS
            and constraint.kind not in AMBIGUOUS
        ):
            native_code.interpret()
            return True
        _when_done.append(when_done)
        return False


def _watch(process: subprocess.Popen[bytes]) -> None:
    global _when_done
    try:
        process.wait(_LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    try:
        if native_code.is_interpreted():
            # Load the code in this thread, or compile it if the process failed, so that no step has to wait for it.
            with native_code.use_compiled_here():
                precompile()
    finally:
        with _lock:
            native_code.use_compiled()
            calls, _when_done = _when_done, None
        for call in calls or ():
            call()


def _begin_anew() -> None:
    """Reset the state in a forked child, where the watching thread is missing and the lock may be held."""
    global _lock, _when_done
    _lock, _when_done = Lock(), None
    native_code.use_compiled()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
