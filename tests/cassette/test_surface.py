"""`rt.record` and `rt.replay`: the default runtime within their blocks, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

import rtlang as rt
from rtlang.lang.execution.run import default_runtime
from rtlang.testing import ScriptedRuntime


@rt.program
def ask(s: rt.State) -> object:
    s += "Question:"
    s += rt.gen("x", max_tokens=9)
    return s["x"]


def scripted(text: str) -> ScriptedRuntime:
    return ScriptedRuntime({"x": text})


def test_within_the_block_it_is_the_default_runtime(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with scripted("one") as runtime:
        with rt.record(path, runtime) as recorder:
            assert default_runtime() is recorder
            assert ask.run().value == "one"
        assert default_runtime() is None
        assert runtime.is_alive
    with scripted("two") as runtime, rt.record(path, runtime):
        assert ask.run().value == "one"
        assert runtime.count("x") == 0
    with rt.replay(path) as replay:
        assert default_runtime() is replay
        assert ask.run().value == "one"


def test_mistakes_are_typed(tmp_path: Path) -> None:
    with pytest.raises(rt.TraceError, match="no runtime"):
        rt.record(tmp_path / "a")
    with pytest.raises(rt.CassetteError, match=r"no such file; rt\.record"):
        rt.replay(tmp_path / "missing")
    with (
        scripted("x") as runtime,
        rt.record(tmp_path / "b", runtime),
        pytest.raises(rt.CassetteError, match="records to it"),
    ):
        rt.record(tmp_path / "b", runtime)
