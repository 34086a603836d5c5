"""A first run on a machine: nothing is compiled yet, and the text is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtlang.config import RuntimeConfig
from rtlang.engine import ahead

ROOT = Path(__file__).parents[2]
FIRST_RUN = """
import json, os, signal, sys
sys.path[:0] = {paths}
import rtlang as rt
from rtlang_grammars import warm_up
from rtlang_grammars.machine.walks import walk

SCHEMA = {{"type": "object", "properties": {{"name": {{"type": "string", "maxLength": 12}}, "age": {{"type": "integer"}}}},
          "required": ["name", "age"], "additionalProperties": False}}

@rt.program
def sheet(s):
    s += rt.user("Describe Mira, a pilot, as JSON with name, age.")
    s += rt.assistant(rt.gen("sheet", schema=SCHEMA, max_tokens=60), rt.select("mood", ["calm", "glad"]))

with rt.Runtime() as runtime:
    process = warm_up._process
    first = sheet.run(runtime=runtime)
    was_interpreted = walk._run is not walk._dispatcher
    if {is_killed} and process is not None:
        os.kill(process.pid, signal.SIGKILL)
    if process is not None:
        process.wait(120)
        while walk._run is not walk._dispatcher:
            pass
    second = sheet.run(runtime=runtime)
print(json.dumps([was_interpreted, *([run.text("sheet"), run["mood"]] for run in (first, second))]))
"""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [ahead.CPU_CODE]),
        ({"device": "cuda"}, [()]),
        ({"grammar_backend": "llguidance"}, []),
    ],
)
def test_what_is_compiled_ahead_is_what_is_used(
    settings: dict[str, Any], expected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(ahead.warm_up, "begin", begun.append)
    ahead.begin(RuntimeConfig(**settings))
    assert begun == expected


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_first_run_says_what_later_ones_say(is_killed: bool, tmp_path: Path) -> None:
    paths = [str(ROOT / part) for part in ("", "kernels", "grammars")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "RTLANG_CACHE_DIR": str(tmp_path / "rtlang")}
    command = [sys.executable, "-c", FIRST_RUN.format(paths=paths, is_killed=is_killed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    was_interpreted, first, second = json.loads(done.stdout)
    assert was_interpreted
    assert first == second
    assert set(json.loads(first[0])) == {"name", "age"}
