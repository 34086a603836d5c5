"""Recordings over a server: what the file has is not sent, and a program goes on at the server where the file ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import rtlang as rt
from rtlang.contract.errors import AbortedError, CallError, DeadlineError
from rtlang.testing import ScriptedRuntime
from tests.cassette.test_recorder_tools import LOG, agent, choose, facts, note
from tests.support.servers.serving import serving


@pytest.fixture
def path(tmp_path: Path) -> str:
    LOG.clear()
    return str(tmp_path / "run.cassette")


@pytest.fixture
def remote(path: str) -> Iterator[tuple[Any, ScriptedRuntime]]:
    """A server, and the runtime behind it."""
    with (
        ScriptedRuntime({"call": choose}) as script,
        serving(cast(Any, script)) as server,
        rt.connect(server.url) as connected,
    ):
        connected.models = ({"id": "scripted"},)  # a server without a tokenizer describes no model
        yield connected, script


def test_a_known_program_is_not_sent_to_a_server_again(remote: tuple[Any, ScriptedRuntime], path: str) -> None:
    runtime, script = remote
    with rt.record(path, runtime):
        first = agent.run("What?")
    num_asked, calls = len(script.requests), list(LOG)
    with rt.record(path, runtime) as recorder:
        again = agent.run("What?")
        assert recorder.num_recorded == 0
        assert recorder.num_replayed > 8
    assert facts(again) == facts(first)
    assert (len(script.requests), LOG) == (num_asked, calls)
    with rt.replay(path):
        assert facts(agent.run("What?")) == facts(first)


def test_a_program_goes_on_at_a_server_where_the_recording_ends(remote: tuple[Any, ScriptedRuntime], path: str) -> None:
    runtime, _ = remote
    may_fail = threading.Event()
    may_fail.set()

    def check(text: str) -> str:
        if may_fail.is_set():
            raise ValueError("not now")
        return text

    @rt.program
    def steps(s: rt.State) -> Any:
        s += "a" + rt.gen("one", 9)
        noted = rt.call(note, s["one"])
        s += rt.text(noted) + rt.gen("two", 9)
        if str(s["two"]):  # a break
            checked = rt.call(check, s["two"])
            s += rt.text(checked) + rt.gen("three", 9)
        return s.text()

    with rt.record(path, runtime):
        first = steps.run(on_error="result")
    assert isinstance(first.error, CallError)
    may_fail.clear()
    seen: list[Any] = []
    with rt.record(path, runtime) as recorder:
        with steps.stream() as events:
            seen = list(events)
        assert recorder.num_recorded > 0
    assert isinstance(seen[-1], rt.EndEvent)
    result = seen[-1].result
    assert result.error is None
    assert LOG == ["<one>"]
    assert [event.name for event in seen if isinstance(event, rt.ValueEvent)] == ["one", "two", "three"]
    with rt.replay(path):
        assert steps.run().value == result.value


def test_cancelling_and_deadlines_reach_the_server_after_the_move(
    remote: tuple[Any, ScriptedRuntime], path: str
) -> None:
    runtime, script = remote

    @rt.program
    def two(s: rt.State, number: int) -> None:
        s += "a" + rt.gen("one", 9)
        s += f"{number}" + rt.gen("two", 9)

    with rt.record(path, runtime):
        two.run(1)
    script._delay_s = {"two": 60.0}
    with rt.record(path, runtime):
        result = two.run(2, deadline_s=0.3, on_error="result")
        assert isinstance(result.error, DeadlineError)
        assert result["one"] == "<one>"
        with two.stream(3) as events:
            assert next(iter(events)).name == "one"  # type: ignore[union-attr]
        with pytest.raises(AbortedError):
            events.result()
