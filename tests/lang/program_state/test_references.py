"""Programs in pickles: by reference, in other processes, and what has no name."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime


@rt.program
def ask(s: Any, x: str, suffix: str = "") -> Any:
    s += x + suffix + rt.gen("y")
    return s["y"]


@rt.program
async def ask_async(s: Any, x: str) -> Any:
    s += x + rt.gen("y")
    return await s["y"]


def plain(s: Any, x: str) -> Any:
    s += x + rt.gen("y")
    return s["y"]


made = rt.program(plain)


class Agent:
    def __init__(self, name: str) -> None:
        self.name = name

    @rt.program
    def answer(self, s: Any, x: str) -> Any:
        s += self.name + x + rt.gen("y")
        return s["y"]

    @rt.program
    @classmethod
    def of_class(cls, s: Any, x: str) -> Any:
        s += cls.__name__ + x + rt.gen("y")
        return s["y"]

    @rt.program
    @staticmethod
    def static(s: Any, x: str) -> Any:
        s += x + rt.gen("y")
        return s["y"]


PROGRAMS = {
    "plain": ask,
    "async": ask_async,
    "made": made,
    "bound": ask.bind("a", suffix="b"),
    "called": ask("a"),
    "options": ask.with_options(outputs=["y"], on_error="result"),
    "method": Agent("Ada").answer,
    "class": Agent.of_class,
    "static": Agent.static,
    "partial": rt.program(functools.partial(plain, x="q")),
}


def loaded_value(program: Any) -> str:
    """What the program returns, in this process or in another one."""
    is_bound = program._body.args or isinstance(program._body.function, functools.partial)
    with ScriptedRuntime({"y": lambda prompt: prompt.upper()}) as runtime:
        return str(program.run(*([] if is_bound else ["q"]), runtime=runtime).value)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_a_module_is_pickled_by_reference(name: str, protocol: int) -> None:
    program = PROGRAMS[name]
    loaded = pickle.loads(pickle.dumps(program, protocol))
    assert type(loaded) is type(program)
    assert (loaded.name, loaded.is_async) == (program.name, program.is_async)
    assert (loaded._body.args, dict(loaded._body.kwargs)) == (program._body.args, dict(program._body.kwargs))
    assert loaded._options == program._options
    assert loaded_value(loaded) == loaded_value(program)
    if name not in ("partial", "called"):
        assert loaded._body.function is program._body.function
    assert copy.copy(program)._body.function is program._body.function
    assert loaded_value(copy.deepcopy(program)) == loaded_value(program)


def test_programs_reach_processes_that_were_spawned() -> None:
    programs = [PROGRAMS[name] for name in ("plain", "async", "bound", "method", "class")]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(loaded_value, programs) == [loaded_value(each) for each in programs]


def test_a_program_of_a_script_reaches_processes_that_it_spawns(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import multiprocessing
import rtlang as rt
from rtlang.testing import ScriptedRuntime

@rt.program
def ask(s, x):
    s += x + rt.gen("y")
    return s["y"]

def work(program):
    with ScriptedRuntime({"y": lambda prompt: prompt.upper()}) as runtime:
        return program.run(runtime=runtime).value

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [ask.bind("a"), ask.bind("b")]))
"""
    )
    found = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.strip() == "['A', 'B']", found.stderr


@pytest.mark.parametrize("kind", ["local", "lambda"])
def test_a_program_without_a_name_is_refused(kind: str) -> None:
    @rt.program
    def local(s: Any) -> None: ...

    program = local if kind == "local" else rt.program(lambda s: None)
    with pytest.raises(TypeError, match=r"<locals>.*top level of a module"):
        pickle.dumps(program)
    assert copy.copy(program)._body is program._body
    assert copy.deepcopy([program])[0]._body.function is program._body.function


def test_a_program_whose_name_means_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ask", ask_async)
    with pytest.raises(TypeError, match="not found by this name"):
        pickle.dumps(PROGRAMS["plain"])


def test_a_runtime_stays_in_its_process() -> None:
    with ScriptedRuntime() as runtime, pytest.raises(TypeError, match="option runtime"):
        pickle.dumps(ask.with_options(runtime=runtime))


def test_cloudpickle_still_takes_what_has_no_name() -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="comes with Ray")

    @rt.program
    def local(s: Any, x: str) -> Any:
        s += x + rt.gen("y")
        return s["y"]

    assert loaded_value(pickle.loads(cloudpickle.dumps(local))) == "Q"
    assert loaded_value(pickle.loads(cloudpickle.dumps({"a": [ask]}))["a"][0]) == "Q"
