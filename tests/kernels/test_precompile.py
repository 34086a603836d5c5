"""Precompiled code is not compiled again by the first step of a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtlang_kernels.precompile import start_background_compile

ROOT = Path(__file__).parents[2]
RECORD = """
import sys
sys.path[:0] = {paths}
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    exec({code!r})
print(*{{each.data["dispatcher"].py_func.__name__ for _, each in recorder.buffer}})
"""
PRECOMPILE = "from rtlang_kernels.precompile import compile_ahead; compile_ahead()"
FIRST_STEPS = """
import rtlang as rt
from rtlang.runtime.process import precompile
precompile.start_background_compile = lambda config: None

@rt.program
def drawn(s):
    s += "Once there was a "
    s += rt.gen("text", max_tokens=3, temperature=1.0)

for dtype in ("float32", "bfloat16"):
    with rt.Runtime(dtype=dtype) as runtime:
        drawn.run(runtime=runtime)
"""


def compiled_by(code: str, folder: Path) -> set[str]:
    """Names of the functions that a fresh process compiles in `code`, with `folder` as the disk cache."""
    paths = [str(ROOT / part) for part in ("", "kernels", "kernels/benchmarks", "grammars")]
    command = [sys.executable, "-c", RECORD.format(paths=paths, code=code)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stdout.split())


@pytest.mark.long
def test_a_first_step_finds_the_precompiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert start_background_compile().wait(300) == 0
    assert compiled_by(PRECOMPILE, tmp_path) == set()
    first = compiled_by(FIRST_STEPS, tmp_path)
    assert "finish" in first  # of a head geometry
    assert not first & {"_tree_rectangles", "assign_segments", "_sample_rows", "attend", "multiply", "fused"}
