"""Code ahead of time: after a warm-up a process compiles nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtlang_grammars import warm_up

ROOT = Path(__file__).parents[2]
CODE = """
import sys
sys.path[:0] = [{paths}]
from rtlang_grammars.warm_up import warm_up
assert warm_up() > 0
from numba.core import event
from rtlang_grammars.bench import byte_level_vocabulary
from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.spec import Constraint, ConstraintKind
from rtlang_grammars.vocabulary import Vocabulary
import numpy as np
vocabulary = Vocabulary((b"a", b"b", b'"', b"{{", b"}}", b":", b"ab", b""), frozenset((7,)), frozenset((7,)), 8)
with event.install_recorder("numba:compile") as recorder:
    backend = EngineBackend.create(vocabulary)
    row = np.zeros(1, dtype=np.int32)
    for kind, source in [("regex", "a+b"), ("lark", 'start: "a" start "b" | "b"'), ("json_schema", '{{"type": "string", "minLength": 1}}')]:
        matcher = backend.compile(Constraint(ConstraintKind(kind), source)).matcher()
        for token in matcher.shortest_completion(50):
            matcher.fill_bitmask(row)
            matcher.forced_tokens()
            assert matcher.accept_token(token)
        assert matcher.is_accepting
assert not recorder.buffer, [str(each) for _, each in recorder.buffer][:5]
"""


def test_nothing_is_compiled_after_a_warm_up(tmp_path: Path) -> None:
    # From nothing: what an earlier run left on disk would hide what the warm-up leaves out.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "code"), "RTLANG_CACHE_DIR": str(tmp_path / "tries")}
    paths = ", ".join(repr(str(ROOT / part)) for part in ("", "kernels", "grammars"))
    found = subprocess.run(
        [sys.executable, "-c", CODE.format(paths=paths)], capture_output=True, text=True, check=False, env=environment
    )
    assert found.returncode == 0, found.stderr[-2000:]


def test_what_is_on_disk_is_seen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    warm_up.warm_up()
    assert warm_up.is_on_disk()
    monkeypatch.setattr(warm_up, "_process", None)
    assert not warm_up.begin()


def test_what_is_missing_is_compiled_once_by_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class Process:
        waited = 0

        def __init__(self, command: list[str], **_: object) -> None:
            started.append(command)

        def wait(self, timeout: float) -> None:
            assert timeout > 0
            Process.waited += 1

    monkeypatch.setattr(warm_up, "_process", None)
    monkeypatch.setattr(warm_up, "is_on_disk", lambda: False)
    monkeypatch.setattr(warm_up.subprocess, "Popen", Process)
    warm_up.wait()
    assert warm_up.begin()
    assert not warm_up.begin()
    warm_up.wait()
    assert len(started) == 1
    assert started[0][0] == sys.executable
    assert Process.waited == 1
