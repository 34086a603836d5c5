"""Everything that numba compiles for grammars, ahead of time: the code is kept on disk, for this and later processes.

Compiling holds the interpreter, so a program that has other things to do in the meantime (a model to load, say) lets a process of its
own do it: `begin`, and `wait` before the code is needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Lock

from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.machine.walks import walk
from rtlang_grammars.vocabulary import Vocabulary

_LONGEST_S = 300.0
_lock = Lock()
_process: subprocess.Popen[bytes] | None = None


def warm_up() -> float:
    """Have all code ready; the seconds that took. Up to a minute where nothing is on disk, a fraction of a second where it is."""
    started = time.perf_counter()
    letters = tuple(bytes([byte]) for byte in range(256))
    EngineBackend.create(Vocabulary(letters, frozenset((256,)), frozenset((256,)), 257))
    return time.perf_counter() - started


def is_on_disk() -> bool:
    """Whether the code of the present sources was compiled before, for this Python."""
    folder = Path(walk._cache.cache_path)  # numba keeps an index for every function
    return any(folder.glob(f"*.{walk.py_func.__qualname__}-*.py{sys.version_info[0]}{sys.version_info[1]}*.nbi"))


def begin() -> bool:
    """Start a process that compiles what is not on disk, unless nothing is missing or one runs already; whether one was started.

    It needs no looking after: what it compiles is found on disk by whoever comes next; where it fails, everyone compiles for
    themselves.
    """
    global _process
    with _lock:
        if _process is not None or is_on_disk():
            return False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-c", "from rtlang_grammars.warm_up import warm_up; warm_up()"]
        _process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment)
        return True


def wait() -> None:
    """Wait for the process that `begin` started, if there is one."""
    with _lock:
        process = _process
    if process is not None:
        try:
            process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
