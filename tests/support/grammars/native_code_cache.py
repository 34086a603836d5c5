"""A disk cache of all native code, compiled from nothing once for all test processes of a run."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATHS = [str(ROOT / part) for part in ("", "kernels", "kernels/benchmarks", "grammars", "grammars/benchmarks")]
COMPILE = "from rtlang_grammars.api import precompile; precompile.main(('rtlang_kernels.precompile',))"


def environment_of(folder: Path) -> dict[str, str]:
    """The environment of a process whose native code is cached in `folder`."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(PATHS),
        "NUMBA_CACHE_DIR": str(folder / "code"),
        "RTLANG_CACHE_DIR": str(folder / "rtlang"),
    }


def compiled_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `environment_of`, filled as a warm-up fills it. Callers do not write to it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # that of the run: each worker has a folder of its own inside
    folder, done = base / "native-code", base / "native-code.done"
    with (base / "native-code.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)  # left by a test that failed
            subprocess.run([sys.executable, "-P", "-c", COMPILE], env=environment_of(folder), check=True, timeout=550)
            done.touch()
    return folder
