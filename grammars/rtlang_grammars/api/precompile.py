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
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from threading import Lock, Thread, Timer
from typing import IO

from rtlang_grammars.api.rtlang_backend import has_lexer
from rtlang_grammars.machine.native import native_code
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

MAX_INTERPRETED_TOKENS = 8192
"""Largest vocabulary that interpreted code may have to traverse, which takes it half a second."""
MAX_INTERPRETED_CHARS = 4000
"""Longest constraint for interpreted code, where reading 20,000 listed values or a step in a list of 200 objects takes over 1 s."""
AMBIGUOUS = frozenset((ConstraintKind.LARK, ConstraintKind.GBNF, ConstraintKind.EBNF))
"""Kinds that may need hundreds of parallel heads, however short they are."""
QUICK = frozenset((ConstraintKind.JSON_SCHEMA, ConstraintKind.CHOICE))
"""Kinds that never traverse a vocabulary unless they have `SLOW` words: the index knows the tokens inside strings, and other walks are
short. Interpreted, most masks for 151,936 tokens take 2 to 8 ms, and the slowest about 100 ms."""
SLOW = ("pattern", "idn-", "iri")
"""Words in schemas whose strings need walks: interpreted, the first mask of a string of the format idn-email takes 2 s."""

_LONGEST_S = 300
"""CPU time of the compiling process."""
_LONGEST_WAIT_S = 3600.0
"""Wall time until the compiling process is given up: it may wait for others."""
_TURN_INTERVAL_S = 0.1
_MACHINE = b"machine\n"
"""What the compiling process writes when everything but the code of lexers is on disk."""
_Calls = list[Callable[[], None]]


@dataclass(slots=True)
class _Waiting:
    """Who waits for the compiling process.

    Attributes:
        for_machine: called when everything but the code of lexers is compiled; None: it is.
        for_all: called when the process has ended.
    """

    for_machine: _Calls | None = field(default_factory=list)
    for_all: _Calls = field(default_factory=list)


_lock = Lock()
_waiting: _Waiting | None = None
"""None if no process is compiling."""


def precompile() -> float:
    """Compile or load all native code; returns the seconds taken: about 15 without code on disk, else a fraction of one."""
    started = time.perf_counter()
    for group in native_code.AHEAD:
        native_code.load(group)
    return time.perf_counter() - started


def start_background_compile(others: Sequence[str] = ()) -> bool:
    """Start a process that compiles missing code, unless none is missing or one is already running; returns whether one was started.

    The process is detached: any process finds its results on disk. If it fails, every process compiles for itself.

    Args:
        others: modules whose `compile_ahead` is called first.
    """
    global _waiting
    with _lock:
        if _waiting is not None or not sys.executable or not native_code.is_any_missing_on_disk():
            return False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        code = f"from rtlang_grammars.api import precompile; precompile.main({tuple(others)!r})"
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=quiet,
                stdout=subprocess.PIPE,
                stderr=quiet,
                env=environment,
                start_new_session=True,  # an interrupt from the terminal must not reach it
            )
        except OSError:
            return False
        with suppress(RuntimeError):  # if no thread can be started, nothing waits for the process
            Thread(target=_watch, args=(process,), name="rtlang-grammar-code", daemon=True).start()
            _waiting = _Waiting()
        return True


def main(others: Sequence[str]) -> None:
    """Entry point of the background process: limits its CPU time, and compiles.

    Several engines that start at once, or again and again, compile one after the other: all but the first find the code on disk.
    """
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (_LONGEST_S if hard < 0 else min(_LONGEST_S, hard), hard))
    gc.disable()  # saves a sixth of the time: the compiler's objects stay alive until it is done
    compile_all(others)


def compile_all(others: Sequence[str]) -> None:
    """Compile the functions that are missing on disk, once no other process does so.

    Args:
        others: modules whose `compile_ahead` is called first.
    """
    if not _wait_for_turn(lock := _open_lock()):
        return
    for name in others:
        with suppress(Exception):  # the process that needs it will report the error
            import_module(name).compile_ahead()
    native_code.load(native_code.TABLES)
    with suppress(OSError):  # nobody listens if the process that started this one has ended
        sys.stdout.buffer.write(_MACHINE)
        sys.stdout.buffer.flush()
    native_code.load(native_code.LEXER)
    lock.close()


def _open_lock() -> IO[bytes]:
    """A file for all processes of this user that use the same code and the same cache."""
    place = (
        f"{os.environ.get('NUMBA_CACHE_DIR', '')}:{__file__}:{sys.version}:{os.environ.get('USER', '')}:{_user_id()}"
    )
    return open(Path(gettempdir()) / f"rtlang-compile-{sha256(place.encode()).hexdigest()[:16]}.lock", "ab")


def _user_id() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _wait_for_turn(lock: IO[bytes]) -> bool:
    """Wait until no other process compiles; returns False if the process that started this one has ended meanwhile."""
    parent = os.getppid()
    while fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            time.sleep(_TURN_INTERVAL_S)
        if os.getppid() != parent:
            return False
    return True


def is_ready(vocab_size: int, constraint: Constraint, when_done: Callable[[], None]) -> bool:
    """Whether native code may run for this constraint and a vocabulary of `vocab_size` tokens.

    Until the background process has compiled the code, small constraints make this whole process interpret it. For others this returns
    False and calls `when_done` once the code is compiled, on a thread that must not be blocked. Only grammars wait for the
    code of lexers, which is compiled last and takes as long as everything else.
    """
    needs_all = has_lexer(constraint)
    with _lock:
        if _waiting is None or (_waiting.for_machine is None and not needs_all):
            return True
        if _is_quick_interpreted(vocab_size, constraint):
            native_code.interpret()
            return True
        calls = _waiting.for_all if needs_all else _waiting.for_machine
        assert calls is not None
        calls.append(when_done)
        return False


def load_code(constraint: Constraint) -> None:
    """Load the native code for a constraint, unless it is interpreted; compile it here if it is not on disk, which takes seconds.

    Callers that limit the time of a compile call this before: no constraint is to blame for these seconds.
    """
    native_code.prepare(native_code.TABLES)
    if has_lexer(constraint):
        native_code.prepare(native_code.LEXER)


def _is_quick_interpreted(vocab_size: int, constraint: Constraint) -> bool:
    if len(constraint.source) > MAX_INTERPRETED_CHARS or constraint.kind in AMBIGUOUS:
        return False
    if vocab_size <= MAX_INTERPRETED_TOKENS:
        return True
    return constraint.kind in QUICK and not any(word in constraint.source for word in SLOW)


def _watch(process: subprocess.Popen[bytes]) -> None:
    global _waiting
    killer = Timer(_LONGEST_WAIT_S, process.kill)
    killer.daemon = True
    killer.start()
    try:
        assert process.stdout is not None
        with process.stdout as pipe:  # closed here: no one else would, and an open file warns when it is collected
            pipe.readline()
        if native_code.is_interpreted():
            # Load the code in this thread, or compile it if the process failed, so that no step has to wait for it.
            with native_code.use_compiled_here():
                native_code.load(native_code.TABLES)
    finally:
        with _lock:
            native_code.use_compiled()
            assert _waiting is not None
            calls, _waiting.for_machine = _waiting.for_machine, None
        _call_all(calls)
    process.wait()
    killer.cancel()
    with _lock:
        calls, _waiting = _waiting.for_all, None
    _call_all(calls)


def _call_all(calls: _Calls | None) -> None:
    for call in calls or ():
        call()


def _begin_anew() -> None:
    """Reset the state in a forked child, where the watching thread is missing and the lock may be held."""
    global _lock, _waiting
    _lock, _waiting = Lock(), None
    native_code.use_compiled()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
