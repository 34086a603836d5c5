"""Everything that numba compiles for grammars, ahead of time: the code is kept on disk, for this and later processes.

Compiling holds the interpreter, so a program that has other things to do in the meantime (a model to load, say) lets a process of its
own do it: `begin`, and `is_ready` before the code is needed.
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
"""Python goes through a vocabulary of as many tokens in half a second, and makes most masks of a schema in milliseconds."""
MAX_INTERPRETED_CHARS = 4000
"""Of a constraint. It takes Python a second and more to read a list of 20,000 values, and for a step within one of 200 objects."""
AMBIGUOUS = frozenset((ConstraintKind.LARK, ConstraintKind.GBNF, ConstraintKind.EBNF))
"""Kinds that may go a hundred ways at once, however short they are."""

_LONGEST_S = 300.0
_lock = Lock()
_when_done: list[Callable[[], None]] | None = None
"""What is called at the end of the process that compiles; None where none is at work."""


def precompile() -> float:
    """Have all code ready; the seconds that took. Up to a minute where nothing is on disk, a fraction of a second where it is."""
    started = time.perf_counter()
    letters = tuple(bytes([byte]) for byte in range(256))
    RtlangBackend.create(Vocabulary(letters, frozenset((256,)), frozenset((256,)), 257))
    return time.perf_counter() - started


def start_background_compile(others: Sequence[str] = ()) -> bool:
    """Start a process that compiles, unless no code of grammars is missing on disk, or one is at work; whether one was started.

    It needs no looking after: what it compiles is found on disk by whoever comes next; where it cannot be started or fails, everyone
    compiles for themselves.

    Args:
        others: modules whose `compile_ahead` it calls first.
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
                start_new_session=True,  # an interrupt from the terminal is not for it
            )
        except OSError:
            return False
        with suppress(RuntimeError):  # no thread can be started: then nobody waits for the process
            Thread(target=_watch, args=(process,), name="rtlang-grammar-code", daemon=True).start()
            _when_done = []
        return True


def compile_all(others: Sequence[str]) -> None:
    """What the process of `begin` does."""
    gc.disable()  # a sixth of the time: what a compiler makes stays alive until it is done
    for name in others:
        with suppress(Exception):  # whoever needs it will say
            import_module(name).compile_ahead()
    precompile()


def is_ready(vocab_size: int, constraint: Constraint, when_done: Callable[[], None]) -> bool:
    """Whether code may run for this constraint and a vocabulary of so many tokens.

    While the process that `begin` started is at work, code is interpreted, in all of this process, for what is not too large.
    For the rest this is False, and `when_done` is called once the code is there, by a thread that is not to be held up.
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
            # Load it, or compile it where the process has failed, beside what runs; no step has to wait for that.
            with native_code.use_compiled_here():
                precompile()
    finally:
        with _lock:
            native_code.use_compiled()
            calls, _when_done = _when_done, None
        for call in calls or ():
            call()


def _begin_anew() -> None:
    """In the child of a fork: the watching thread did not come along, nor did whoever holds the lock."""
    global _lock, _when_done
    _lock, _when_done = Lock(), None
    native_code.use_compiled()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
