"""Everything that numba compiles for grammars, ahead of time: the code is kept on disk, for this and later processes.

Compiling holds the interpreter, so a program that has other things to do in the meantime (a model to load, say) lets a process of its
own do it: `begin`, and `make_ready` before the code is needed.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from threading import Lock, Thread

from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.machine import compiled
from rtlang_grammars.vocabulary import Vocabulary

MAX_INTERPRETED_TOKENS = 8192
"""Python goes through a vocabulary of as many tokens in half a second, and makes most masks of a schema in milliseconds."""

_LONGEST_S = 300.0
_lock = Lock()
_process: subprocess.Popen[bytes] | None = None
_is_watched = False


def warm_up() -> float:
    """Have all code ready; the seconds that took. Up to a minute where nothing is on disk, a fraction of a second where it is."""
    started = time.perf_counter()
    letters = tuple(bytes([byte]) for byte in range(256))
    EngineBackend.create(Vocabulary(letters, frozenset((256,)), frozenset((256,)), 257))
    return time.perf_counter() - started


def begin(others: Sequence[str] = ()) -> bool:
    """Start a process that compiles what is not on disk, unless nothing is missing or one runs already; whether one was started.

    It needs no looking after: what it compiles is found on disk by whoever comes next; where it fails, everyone compiles for
    themselves.

    Args:
        others: modules whose `compile_ahead` it calls first.
    """
    global _process
    with _lock:
        if _process is not None or not compiled.is_any_missing_on_disk():
            return False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-c", f"from rtlang_grammars import warm_up; warm_up.compile_all({tuple(others)!r})"]
        _process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment)
        return True


def compile_all(others: Sequence[str]) -> None:
    """What the process of `begin` does."""
    gc.disable()  # a sixth of the time: what a compiler makes stays alive until it is done
    for name in others:
        with suppress(Exception):  # whoever needs it will say
            import_module(name).compile_ahead()
    warm_up()


def make_ready(vocab_size: int) -> None:
    """Have code that runs, for a vocabulary of so many tokens: where the process that `begin` started is still at work, that of a small
    vocabulary is interpreted until it has ended, and others wait for it."""
    global _is_watched
    with _lock:
        process = _process
        if process is None or process.poll() is not None:
            return
        if vocab_size <= MAX_INTERPRETED_TOKENS:
            if not _is_watched:
                compiled.interpret()
                Thread(target=_use_code_of, args=(process,), name="rtlang-grammar-code", daemon=True).start()
                _is_watched = True
            return
    _use_code_of(process)


def _use_code_of(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
    compiled.use_compiled()
