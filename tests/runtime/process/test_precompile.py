"""A first run on a machine: nothing is compiled yet, and the text is the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConstraintError
from rtlang.contract.params import Constraint
from rtlang.runtime.process import precompile
from rtlang.runtime.process.precompile import preload_grammars
from rtlang_grammars.api.rtlang_backend import has_lexer
from rtlang_grammars.machine.native import native_code
from tests.support.grammars.native_code_cache import compiled_cache, environment_of

FIRST_RUN = """
import json, os, signal, subprocess, sys, time
import rtlang as rt
from rtlang_grammars.machine.native import native_code as compiled

helper = None

class Popen(subprocess.Popen):
    # The first one waits for the gate, a named pipe, so that it is surely still at work when the first text is written.
    def __init__(self, command, **options):
        global helper
        if helper is None and "-P" in command:
            command = [*command[:-1], "open({gate!r}).read(); " + command[-1]]
        super().__init__(command, **options)
        helper = helper or (self if "-P" in command else None)

subprocess.Popen = Popen

def schema(*names):
    return {{"type": "object", "properties": {{name: {{"type": "string", "maxLength": 12}} for name in names}},
            "required": list(names), "additionalProperties": False}}

@rt.program
def sheet(s, names):
    s += rt.user("Describe Mira, a pilot from Oslo, as JSON with name, " + ", ".join(names))
    s += rt.assistant(rt.gen("sheet", schema=schema("name", *names), max_tokens=60), rt.select("mood", ["calm", "glad"]))

def said(*names):
    run = sheet.run(names=names, runtime=runtime)
    return [run.text("sheet"), run["mood"]]

with rt.Runtime() as runtime:
    first = [said("job")]
    was_interpreted = compiled.is_interpreted()
    if {is_killed}:
        os.kill(helper.pid, signal.SIGKILL)
    else:
        open({gate!r}, "w").close()
    for _ in range(3000):
        if not compiled.is_interpreted():
            break
        time.sleep(0.1)
        if {is_killed}:
            said("job", "home")  # nothing stands still meanwhile
    assert not compiled.is_interpreted()
    first.append(said("home", "job"))
    compiled.interpret()
with rt.Runtime() as runtime:
    second = [said("job"), said("home", "job")]
print(json.dumps([was_interpreted, first, second]))
"""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [precompile.CPU_CODE]),
        ({"device": "cuda"}, [()]),
    ],
)
def test_what_is_compiled_ahead_is_what_is_used(
    settings: dict[str, Any], expected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(precompile.precompile, "start_background_compile", begun.append)
    precompile.start_background_compile(RuntimeConfig(**settings))
    assert begun == expected


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_first_run_says_what_later_ones_say(
    is_killed: bool, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shutil.copytree(compiled_cache(tmp_path_factory), tmp_path, dirs_exist_ok=True)
    [missing] = tmp_path.glob("code/tables-*.code")
    missing.unlink()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = [sys.executable, "-c", FIRST_RUN.format(gate=str(gate), is_killed=is_killed)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment_of(tmp_path), timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    was_interpreted, first, second = json.loads(done.stdout)
    assert was_interpreted
    assert first == second
    assert [set(json.loads(text)) for text, _ in first] == [{"name", "job"}, {"name", "home", "job"}]


@pytest.mark.parametrize("is_missing", [False, True])
def test_grammars_are_preloaded_if_their_code_is_on_disk(is_missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_code, "is_any_missing_on_disk", lambda: is_missing)
    asked: list[Constraint] = []

    def report(constraint: Constraint) -> None:
        asked.append(constraint)
        raise ConstraintError("this vocabulary cannot spell it")

    preload_grammars(report)
    assert [has_lexer(each) for each in asked] == ([] if is_missing else [True])
