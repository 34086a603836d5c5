"""Code ahead of time: after a warm-up a process compiles nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import ClassVar, cast

import pytest

from rtlang_grammars import warm_up
from rtlang_grammars.machine.walks import walk

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


class Process:
    """What `begin` starts, at work until `is_done` is set."""

    started: ClassVar[list[list[str]]] = []

    def __init__(self, command: list[str], **_: object) -> None:
        self.is_done = threading.Event()
        Process.started.append(command)

    def poll(self) -> int | None:
        return 0 if self.is_done.is_set() else None

    def wait(self, timeout: float) -> None:
        assert timeout > 0
        assert self.is_done.wait(60)


@pytest.fixture
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Process, "started", [])
    monkeypatch.setattr(warm_up, "_process", None)
    monkeypatch.setattr(warm_up, "_is_watched", False)
    monkeypatch.setattr(warm_up.compiled, "is_any_missing_on_disk", lambda: True)
    monkeypatch.setattr(warm_up.subprocess, "Popen", Process)
    yield
    warm_up.compiled.use_compiled()


def test_what_is_on_disk_is_seen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    warm_up.warm_up()
    assert not warm_up.compiled.is_any_missing_on_disk()
    monkeypatch.setattr(warm_up, "_process", None)
    assert not warm_up.begin()
    warm_up.make_ready(100)
    assert not is_interpreted()


@pytest.mark.usefixtures("nothing_on_disk")
def test_what_is_missing_is_compiled_once_by_a_process_of_its_own() -> None:
    warm_up.make_ready(100_000)
    assert warm_up.begin()
    assert not warm_up.begin()
    assert len(Process.started) == 1
    assert Process.started[0][0] == sys.executable


@pytest.mark.usefixtures("nothing_on_disk")
def test_a_small_vocabulary_is_interpreted_until_the_code_is_there() -> None:
    warm_up.begin()
    process = cast("Process", warm_up._process)
    for _ in range(2):
        warm_up.make_ready(warm_up.MAX_INTERPRETED_TOKENS)
        assert is_interpreted()
    process.is_done.set()
    watchers = [thread for thread in threading.enumerate() if thread.name == "rtlang-grammar-code"]
    assert len(watchers) <= 1
    for thread in watchers:
        thread.join(60)
    assert not is_interpreted()
    warm_up.make_ready(100)
    assert not is_interpreted()


@pytest.mark.usefixtures("nothing_on_disk")
def test_a_large_vocabulary_waits_for_the_code() -> None:
    warm_up.begin()
    process = cast("Process", warm_up._process)
    warm_up.make_ready(100)
    waiting = threading.Thread(target=warm_up.make_ready, args=(warm_up.MAX_INTERPRETED_TOKENS + 1,))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    process.is_done.set()
    waiting.join(60)
    assert not waiting.is_alive()
    assert not is_interpreted()


def is_interpreted() -> bool:
    return isinstance(walk._run, FunctionType)
