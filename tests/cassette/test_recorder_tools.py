"""Recordings of agents: tools are called once, and decisions, branches, loops, failures and budgets come out as they did."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import CassetteError, SpentError, ToolError
from rtlang.testing import ScriptedRuntime

ROOT = Path(__file__).parents[2]
LOG: list[str] = []


@pytest.fixture
def path(tmp_path: Path) -> str:
    LOG.clear()
    return str(tmp_path / "run.cassette")


def scripted(answers: dict[str | None, Any], **options: Any) -> ScriptedRuntime:
    """Answers that are functions of the prompt, as those of a model."""
    return ScriptedRuntime(answers, **options)


def note(text: str) -> str:
    """Note a text."""
    LOG.append(text)
    if os.environ.get("NOTES"):
        with open(os.environ["NOTES"], "a") as file:
            file.write(f"{text}\n")
        if text == os.environ.get("DIE_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
    if text == "wrong":
        raise ValueError("it is wrong")
    return f"{text} is noted as {len(LOG)}"


def choose(prompt: str) -> str:
    """The next call, from the number of results in the prompt."""
    number = prompt.count("is noted as")
    return json.dumps({"name": "note", "arguments": {"text": f"note {number}"}})


@rt.program
def agent(s: rt.State, question: str) -> Any:
    s += rt.user(question)

    def step(b: rt.State) -> Any:
        b += rt.assistant(rt.gen("call", 90, tools=[note]))
        result = rt.call(b["call"])
        b += rt.tool(result)
        return result

    last = rt.repeat(step, until=lambda b: b["call"].args["text"] == "note 3", at_most=8)
    extra = [rt.call(note, "same"), rt.call(note, "same")]
    s += rt.text(*extra) + rt.gen("end", 9)
    return [last, *extra]


def run_agent(path: str) -> Any:
    with scripted({"call": choose}) as runtime, rt.record(path, runtime) as recorder:
        result = agent.run("What?")
        return result, recorder.num_recorded, len(runtime.requests)


def facts(result: Any) -> Any:
    return result.value, result.messages, result.text(), [each.args for each in result["call"]], result["end"]


def test_a_recorded_agent_does_not_call_its_tools_again(path: str) -> None:
    first, num_recorded, _ = run_agent(path)
    assert num_recorded > 8
    assert sorted(LOG) == ["note 0", "note 1", "note 2", "note 3", "same", "same"]
    LOG.clear()
    again, num_recorded, num_asked = run_agent(path)
    assert (num_recorded, num_asked, LOG) == (0, 0, [])
    with rt.replay(path):
        replayed = agent.run("What?")
    assert facts(again) == facts(first) == facts(replayed)
    assert LOG == []


def test_equal_runs_call_their_tools_each(path: str) -> None:
    @rt.program
    def notes(s: rt.State) -> Any:
        s += rt.text(rt.call(note, "x")) + rt.gen("end", 9)
        return s.text()

    with scripted({}) as runtime, rt.record(path, runtime):
        first = [notes.run().value for _ in range(3)]
    assert LOG == ["x"] * 3
    assert len(set(first)) == 3
    with rt.replay(path):
        assert [notes.run().value for _ in range(3)] == first
    assert LOG == ["x"] * 3


def test_a_killed_agent_goes_on_and_its_tools_ran_once(path: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    command = [sys.executable, "-c", f"from tests.cassette.test_recorder_tools import run_agent; run_agent({path!r})"]
    environment = {**os.environ, "NOTES": str(notes), "DIE_AT": "note 2", "PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run(command, cwd=ROOT, env=environment, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL
    assert "note 2" in notes.read_text().split("\n")
    environment["DIE_AT"] = "never"
    subprocess.run(command, cwd=ROOT, env=environment, timeout=60, check=True)
    found = re.findall(r"note \d", notes.read_text())
    # The call that was running when the process died has no result, and runs again; no other does.
    assert {text: found.count(text) for text in found} == {"note 0": 1, "note 1": 1, "note 2": 2, "note 3": 1}
    with rt.replay(path):
        assert len(agent.run("What?")["call"]) == 4


def test_a_failed_call_is_repeated_by_a_replay_and_tried_again_by_a_recording(path: str) -> None:
    @rt.program
    def fails(s: rt.State) -> Any:
        s += rt.gen("call", 90, tools=[note])
        s += "x" + rt.gen("other", 9)
        return rt.call(s["call"])

    answers: dict[str | None, Any] = {"call": json.dumps({"name": "note", "arguments": {"text": "wrong"}})}
    for _ in range(2):
        with scripted(answers) as runtime, rt.record(path, runtime):
            first = fails.run(on_error="result")
            assert isinstance(first.error, ToolError)
    assert LOG == ["wrong"] * 2
    with rt.replay(path):
        again = fails.run(on_error="result")
    assert LOG == ["wrong"] * 2
    assert isinstance(again.error, ToolError)
    assert (again.error.tool, again.error.location, str(again.error)) == (
        first.error.tool,
        first.error.location,
        str(first.error),
    )


def test_a_call_that_the_recording_lacks_is_not_made(path: str) -> None:
    @rt.program
    def calls(s: rt.State, text: str) -> Any:
        s += "a" + rt.gen("end", 9)
        return rt.call(note, text)

    with scripted({}) as runtime, rt.record(path, runtime):
        calls.run("a")
    with rt.replay(path), pytest.raises(CassetteError, match=r"no outcome of the call of note\(\)"):
        calls.run("b")
    assert LOG == ["a"]


@rt.program
def decides(s: rt.State) -> Any:
    forks = s.fork(3)
    for number, fork in enumerate(forks):
        fork += f"{number}: " + rt.gen(f"answer {number}", choices=["yes", "no"], max_tokens=4)
    quick = rt.first([fork[f"answer {number}"] for number, fork in enumerate(forks)])
    voted = rt.vote([forks[1]["answer 1"], forks[2]["answer 2"]], need=1)
    s += rt.text("first ", quick, " voted ", voted) + rt.gen("end", 9)

    def body(b: rt.State) -> Any:
        b += rt.gen("color", choices=["red", "blue"], max_tokens=6)
        return rt.switch(b["color"], {"red": lambda c: "1", "blue": lambda c: rt.call(note, "blue")})

    return quick, voted, rt.repeat(body, at_most=2)


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_decisions_branches_and_loops_are_repeated(path: str, slow: int) -> None:
    delays = {f"answer {number}": 0.05 if number == slow else 0.0 for number in range(3)}
    answers: dict[str | None, Any] = {
        "answer 0": "no",
        "answer 1": "yes",
        "answer 2": "no",
        "color": lambda prompt: "blue",
    }
    with scripted(answers, delay_s=delays) as runtime, rt.record(path, runtime):
        first = decides.run(on_error="result")
    assert first.error is None
    calls = list(LOG)
    with rt.replay(path):
        again = decides.run(on_error="result")
    assert again.error is None
    assert (again.value, again.text(), again["color"]) == (first.value, first.text(), first["color"])
    assert calls == LOG


def test_what_a_budget_has_cut_is_cut_again(path: str) -> None:
    @rt.program
    def long(s: rt.State) -> Any:
        s += "a" + rt.gen("one", 30)
        s += "b" + rt.gen("two", 30)
        s += "c" + rt.gen("three", 30)

    answers: dict[str | None, Any] = {"one": "x" * 20, "two": "y" * 20, "three": "z" * 20}
    budget = rt.Budget(tokens=35)
    with scripted(answers) as runtime, rt.record(path, runtime):
        first = long.run(budget=budget, on_error="result")
    assert (first["one"], first["two"]) == ("x" * 20, "y" * 15)
    assert isinstance(first.error, SpentError)
    with rt.replay(path):
        again = long.run(budget=budget, on_error="result")
    assert (again["one"], again["two"], again.cut) == (first["one"], first["two"], first.cut)
    assert isinstance(again.error, SpentError)
    assert str(again.error) == str(first.error)
