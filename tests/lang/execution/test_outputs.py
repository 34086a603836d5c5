"""Outputs: what is read after a body, found in what it returns and keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import TraceError
from rtlang.lang.execution.outputs import needed_nodes
from rtlang.lang.program_state.state import State
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording
from rtlang.testing import ScriptedRuntime


@dataclass
class Pair:
    left: Any
    right: Any = None


class Holder:
    def __init__(self, item: Any) -> None:
        self.item, self.itself = item, self


def state_of(*names: str) -> tuple[State, StateRecord]:
    record = StateRecord(Recording(AheadOfTime(False)))
    state = State(record)
    for name in names:
        side = state.copy()
        side += "a" + rt.gen(name)
        state.set(f"{name} value", side[name])
    return state, record


def test_values_are_found_wherever_they_are() -> None:
    for wrap in (lambda v: v, lambda v: [1, (v,)], lambda v: {"a": {v.__class__: v}}, Pair, lambda v: Holder([v])):
        state, record = state_of("x", "y")
        wanted = next(n for n, node in record.recording.nodes.outer.items() if getattr(node, "name", None) == "x")
        assert needed_nodes(record, wrap(state["x value"]), ()) == {wanted}


def test_a_program_with_names_only_needs_everything() -> None:
    assert needed_nodes(state_of("x")[1], None, None) is None


def test_variables_are_outputs_by_name() -> None:
    _, state = state_of("x", "y")
    assert needed_nodes(state, None, ["y value"]) == needed_nodes(state, None, ["y"])


def test_variables_of_branches_and_loops_of_forks_are_outputs() -> None:
    with ScriptedRuntime({"kind": "b"}) as scripted:

        @rt.program
        def body(s: Any) -> None:
            fork = s.fork(1)[0]
            fork += rt.gen("kind")
            rt.switch(fork["kind"], {"a": rt.gen("first"), "b": rt.gen("second")}, state=fork)
            rt.repeat(rt.gen("step"), at_most=2, state=fork)
            s += rt.gen("unread")

        result = body.run(outputs=["second", "step"], runtime=scripted)
        assert result["second"] == "<second>"
        assert result["step"] == ["<step>", "<step>"]
        assert scripted.count("unread") == 0
        with pytest.raises(rt.TraceError, match="existing variables: unread, kind, first, second, step"):
            body.run(outputs=["third"], runtime=scripted)


def test_paths_and_places_are_outputs() -> None:
    def prompts(s: Any) -> None:
        s += "go"
        for index, fork in enumerate(s.fork(3)):
            fork += str(index) + rt.gen("tip") + "y" + rt.gen("more", n=2)

    with ScriptedRuntime(default="text") as scripted:

        def asked(*outputs: str) -> list[str | None]:
            scripted.requests.clear()
            rt.program(prompts).run(runtime=scripted, outputs=outputs)
            return [request.name for request in scripted.requests]

        assert asked("fork[1]/tip") == ["tip"]
        assert asked("fork[1]") == asked("fork[0]/more[1]") == ["tip", "more"]
        assert asked("tip") == ["tip"] * 3
        with pytest.raises(
            TraceError, match=r"there is no variable and no path 'fork\[3\]'; existing variables: tip, more"
        ):
            asked("fork[3]")


def test_turns_of_loops_are_outputs_of_their_loop() -> None:
    def loop(s: Any) -> None:
        def turn(state: Any) -> None:
            state += "x" + rt.gen("step")

        rt.repeat(turn, at_most=2, state=s)
        s += rt.gen("after")

    with ScriptedRuntime(default="text") as scripted:
        rt.program(loop).run(runtime=scripted, outputs=["repeat[1]/step"])
        assert [request.name for request in scripted.requests] == ["step", "step"]
