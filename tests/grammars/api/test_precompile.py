"""Code ahead of time: after a warm-up a process compiles nothing more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from rtlang_grammars.api import precompile
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from tests.support.grammars.native_code_cache import PATHS

CODE = """
import sys
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.vocabulary import Vocabulary
import numpy as np
vocabulary = Vocabulary((b"a", b"b", b'"', b"{", b"}", b":", b"ab", b""), frozenset((7,)), frozenset((7,)), 8)
backend = RtlangBackend.create(vocabulary)
row = np.zeros(1, dtype=np.int32)
for kind, source in [("regex", "a+b"), ("lark", 'start: "a" start "b" | "b"'), ("json_schema", '{"type": "string", "minLength": 1}')]:
    matcher = backend.compile(Constraint(ConstraintKind(kind), source)).matcher()
    for token in matcher.shortest_completion(50):
        matcher.fill_bitmask(row)
        matcher.forced_tokens()
        assert matcher.accept_token(token)
    assert matcher.is_accepting
assert "numba" not in sys.modules
"""


def test_a_process_that_finds_code_on_disk_does_without_numba() -> None:
    precompile.precompile()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 0, found.stderr[-2000:]


SMALL = Constraint(ConstraintKind.REGEX, "a+b")
LARGE = Constraint(ConstraintKind.CHOICE, json.dumps(["x" * 50] * 100))
SCHEMA = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "object", "properties": {"a": {"type": "string"}}}')
PATTERN = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "string", "pattern": "a+b"}')
UNICODE_FORMAT = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "string", "format": "idn-email"}')
AMBIGUOUS = Constraint(ConstraintKind.LARK, 'start: start start | "a"')


class Process:
    """What `begin` starts, at work until `is_done` is set."""

    started: ClassVar[list[Process]] = []

    def __init__(self, command: list[str], *, env: dict[str, str], start_new_session: bool, **_: object) -> None:
        assert start_new_session
        self.command = command
        self.has_machine, self.is_done = threading.Event(), threading.Event()
        self.stdout, self.is_closed = self, False
        Process.started.append(self)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def readline(self) -> None:
        assert self.has_machine.wait(60)

    def wait(self) -> None:
        assert self.is_done.wait(60)

    def finish(self) -> None:
        """End, and wait until that was noticed."""
        self.has_machine.set()
        self.is_done.set()
        while_watched()

    def kill(self) -> None:
        raise AssertionError("it did not take long")


@pytest.fixture
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Process, "started", [])
    monkeypatch.setattr(precompile, "_waiting", None)
    monkeypatch.setattr(precompile.native_code, "is_any_missing_on_disk", lambda: True)
    monkeypatch.setattr(precompile.subprocess, "Popen", Process)
    yield
    for process in Process.started:
        process.finish()
    assert not precompile.native_code.is_interpreted()


def never() -> None:
    raise AssertionError("it was ready")


def while_watched() -> None:
    """Wait until what was started is over."""
    for thread in threading.enumerate():
        if thread.name == "rtlang-grammar-code":
            thread.join(60)
            assert not thread.is_alive()


def test_what_is_on_disk_is_seen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    precompile.precompile()
    assert not precompile.native_code.is_any_missing_on_disk()
    monkeypatch.setattr(precompile, "_waiting", None)
    assert not precompile.start_background_compile()
    assert precompile.is_ready(100, SMALL, never)
    assert not precompile.native_code.is_interpreted()


@pytest.mark.usefixtures("nothing_on_disk")
def test_what_is_missing_is_compiled_by_one_process_at_a_time() -> None:
    assert precompile.is_ready(100_000, SMALL, never)
    for number in (1, 2):
        assert precompile.start_background_compile(("a.module",))
        assert not precompile.start_background_compile()
        assert len(Process.started) == number
        assert Process.started[-1].command[0] == sys.executable
        assert "precompile.main(('a.module',))" in Process.started[-1].command[-1]
        Process.started[-1].finish()  # the next is started where this one has failed
        assert Process.started[-1].is_closed


@pytest.mark.usefixtures("nothing_on_disk")
def test_a_small_constraint_is_interpreted_until_the_code_is_there() -> None:
    precompile.start_background_compile()
    for _ in range(2):
        assert precompile.is_ready(precompile.MAX_INTERPRETED_TOKENS, SMALL, never)
        assert precompile.native_code.is_interpreted()
    Process.started[0].finish()
    assert not precompile.native_code.is_interpreted()
    assert precompile.is_ready(100, SMALL, never)
    assert not precompile.native_code.is_interpreted()


@pytest.mark.usefixtures("nothing_on_disk")
def test_a_schema_is_interpreted_with_every_vocabulary() -> None:
    precompile.start_background_compile()
    assert precompile.is_ready(151_936, SCHEMA, never)
    assert precompile.native_code.is_interpreted()


@pytest.mark.usefixtures("nothing_on_disk")
@pytest.mark.parametrize(
    ("vocab_size", "constraint"),
    [
        (precompile.MAX_INTERPRETED_TOKENS + 1, SMALL),
        (precompile.MAX_INTERPRETED_TOKENS + 1, PATTERN),
        (precompile.MAX_INTERPRETED_TOKENS + 1, UNICODE_FORMAT),
        (100, LARGE),
        (100, AMBIGUOUS),
    ],
)
def test_what_takes_python_long_waits_for_the_code(vocab_size: int, constraint: Constraint) -> None:
    precompile.start_background_compile()
    assert precompile.is_ready(100, SMALL, never)
    was_interpreted: list[bool] = []
    for _ in range(2):
        assert not precompile.is_ready(
            vocab_size, constraint, lambda: was_interpreted.append(precompile.native_code.is_interpreted())
        )
    assert precompile.native_code.is_interpreted()
    assert was_interpreted == []
    Process.started[0].finish()
    assert was_interpreted == [False, False]
    assert precompile.is_ready(vocab_size, constraint, never)


@pytest.mark.usefixtures("nothing_on_disk")
def test_a_process_that_nobody_can_watch_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        assert precompile.start_background_compile()
    assert precompile.is_ready(100_000, LARGE, never)


@pytest.mark.usefixtures("nothing_on_disk")
def test_where_no_process_can_be_started_everyone_compiles_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError("sys.executable")

    monkeypatch.setattr(precompile.subprocess, "Popen", fail)
    assert not precompile.start_background_compile()
    assert precompile.is_ready(100, SMALL, never)
    assert not precompile.native_code.is_interpreted()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("nothing_on_disk")
def test_a_fork_runs_compiled_code() -> None:
    precompile.start_background_compile()
    assert precompile.is_ready(100, SMALL, never)
    child = os.fork()
    if not child:
        os._exit(int(precompile.native_code.is_interpreted() or precompile._waiting is not None))
    assert os.waitpid(child, 0)[1] == 0
    assert precompile.native_code.is_interpreted()


@pytest.mark.usefixtures("nothing_on_disk")
def test_only_grammars_wait_for_the_code_of_lexers() -> None:
    precompile.start_background_compile()
    called: list[str] = []
    has_machine = threading.Event()

    def ready(name: str, constraint: Constraint) -> bool:
        return precompile.is_ready(100, constraint, lambda: (called.append(name), has_machine.set())[0])

    anywhere = Constraint(ConstraintKind.LARK, 'start: start start | "a"', lexer=Lexer.ANYWHERE)
    assert not ready("large", LARGE)
    assert not ready("anywhere", anywhere)
    assert not ready("lexed", AMBIGUOUS)
    Process.started[0].has_machine.set()
    assert has_machine.wait(60)
    while len(called) < 1:
        threading.Event().wait(0.001)
    assert ready("large again", LARGE)
    assert not ready("anywhere again", anywhere)
    assert called == ["large"]
    Process.started[0].finish()
    assert called == ["large", "anywhere", "lexed", "anywhere again"]
    assert ready("lexed at last", AMBIGUOUS)


def test_the_code_of_lexers_is_loaded_for_grammars_only(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(precompile.native_code, "load", loaded.append)
    precompile.load_code(SCHEMA)
    assert loaded == ["tables"]
    precompile.load_code(AMBIGUOUS)
    assert loaded == ["tables", "tables", "lexer"]
    precompile.native_code.interpret()
    try:
        precompile.load_code(AMBIGUOUS)
    finally:
        precompile.native_code.use_compiled()
    assert loaded == ["tables", "tables", "lexer"]


def test_other_modules_are_compiled_first_and_may_fail(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    done: list[str] = []
    monkeypatch.setattr(precompile.native_code, "load", done.append)
    monkeypatch.setitem(sys.modules, "ahead_of_time", SimpleNamespace(compile_ahead=lambda: done.append("kernels")))
    precompile.compile_all(("no.such.module", "ahead_of_time"))
    assert done == ["kernels", "tables", "lexer"]
    assert capfdbinary.readouterr().out == precompile._MACHINE


def test_processes_compile_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(precompile, "gettempdir", lambda: str(tmp_path))
    first, second = precompile._open_lock(), precompile._open_lock()
    assert precompile._wait_for_turn(first)
    entered = threading.Event()
    thread = threading.Thread(target=lambda: precompile._wait_for_turn(second) and entered.set())
    thread.start()
    assert not entered.wait(0.3)
    first.close()
    assert entered.wait(20)
    thread.join()
    second.close()


def test_a_process_whose_starter_has_ended_does_not_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(precompile, "gettempdir", lambda: str(tmp_path))
    first, second = precompile._open_lock(), precompile._open_lock()
    assert precompile._wait_for_turn(first)
    parents = iter((7, 7, 1))
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    assert not precompile._wait_for_turn(second)
    first.close()
    second.close()
