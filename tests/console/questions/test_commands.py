"""`rtlang questions`, `rtlang answer`, and `rtlang run` that ends with an open question and goes on after the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from tests.cassette.test_questions import INTENTS, journal

PROGRAM = """
import rtlang as rt

@rt.program
def approve(s):
    s += "Offer:"
    s += rt.gen("offer", max_tokens=4)
    answer = rt.ask("Buy?", bool)
    s.emit({"asked": True})
    s += rt.text(" ", answer)
    return "bought" if answer else "left"
"""


def run(*args: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(each) for each in args])
    return result.exit_code, result.output


def test_questions_are_listed_and_answered(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    with journal(path, INTENTS):
        pass
    code, text = run("questions", tmp_path)
    assert code == 0
    for part in ("fork[1]/ask", "Who?", "Pay?", "yes or no", "pay(7, ", "done, retry, fail"):
        assert part in text
    code, text = run("questions", path, "--json")
    assert [each["path"] for each in json.loads(text)] == ["fork[1]/ask", "ask", "pay()", "ship()"]
    for args, part in (
        (("true",), "expected the path of the question; open questions: 'fork[1]/ask', 'ask'"),
        (("none", "true"), "no open question has the path 'none'"),
        (("ask", "perhaps"), "does not fit"),
        (("ask", "a", "b"), "put quotes around the answer"),
    ):
        code, text = run("answer", path, *args)
        assert code == 1
        assert part in " ".join(text.split())
    assert run("answer", path, "ask", "true") == (0, "answered ask\n")
    assert run("answer", path, "pay()", "retry")[0] == 0
    assert run("answer", path, "fork[1]/ask", "Ada Lovelace")[0] == 0
    assert run("answer", path, "done")[0] == 0, "only one is left"
    assert "answered, waits for the run" in run("questions", path)[1]
    assert run("questions", tmp_path / "none")[0] == 1


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    assert "--json cannot be combined" in run("questions", tmp_path, "--json", "--port", "0")[1]
    (tmp_path / "a.py").write_text(PROGRAM)
    assert "need --journal" in run("run", f"{tmp_path}/a.py:approve", "--wait-s", "1")[1]


@pytest.mark.slow
def test_a_run_ends_with_75_and_goes_on_after_the_answer(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "rtlang",
        "run",
        "a.py:approve",
        "--model",
        "rtlang:tiny",
        "--journal",
        "run.journal",
        "--json",
    ]

    def started() -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        return subprocess.run(
            command,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            env=environment,
        )

    for _ in range(2):
        first = started()
        assert first.returncode == 75, first.stderr
        assert "'Buy?' at 'ask': nobody has answered yet; write `rtlang answer run.journal ask VALUE`" in first.stderr
    assert run("answer", tmp_path / "run.journal", "true")[0] == 0
    last = started()
    assert last.returncode == 0, last.stderr
    assert "no question is open" in run("answer", tmp_path / "run.journal", "true")[1]
