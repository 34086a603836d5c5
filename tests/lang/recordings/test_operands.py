"""Values of a program as operands of nodes, and back."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import Apply, Const, Ref
from rtlang.lang.program_state.state import record_of
from rtlang.lang.recordings.operands import actual, operand_for, reader_for
from rtlang.testing import ScriptedRuntime


@dataclass
class Point:
    x: int


def within(check: Any) -> Any:
    @rt.program
    def body(s: rt.State) -> Any:
        s += "A"
        s += rt.gen("x", type=int)
        return check(s, record_of(s).recording)

    with ScriptedRuntime({"x": "5"}) as runtime:
        return body.run(runtime=runtime).value


def test_generated_values_and_data_become_operands() -> None:
    def check(s: rt.State, recording: Any) -> None:
        value = s["x"]
        assert operand_for(3, recording, "it") == Const(3)
        assert operand_for([Point(1)], recording, "it") == Const([{"x": 1}])
        found = operand_for([value, 2], recording, "it")
        assert isinstance(found, Ref)
        assert isinstance(recording.nodes.node(found.node_id), Apply)
        with pytest.raises(rt.TraceError, match=r"it: .*is not plain data"):
            operand_for(threading.Lock(), recording, "it")
        assert reader_for("text", recording)("5") == "5"
        assert reader_for(value, recording)(5) == 5

    within(check)


@pytest.mark.parametrize("make", [lambda s: rt.text("Send ", s["x"], "?"), lambda s: [1, rt.gen("y")]])
def test_an_expression_is_no_operand_and_the_error_says_what_is(make: Any) -> None:
    """Such as `rt.ask(rt.text(...))`: what is appended is not a value."""

    def check(s: rt.State, recording: Any) -> None:
        made = make(s)
        with pytest.raises(rt.TraceError, match=r"it is an expression that s \+= appends.*rt\.format"):
            operand_for(made, recording, "it")
        s += made[1] if isinstance(made, list) else made

    within(check)


def test_values_of_other_runs_are_refused() -> None:
    other = within(lambda s, recording: [s["x"], recording])

    def check(s: rt.State, recording: Any) -> None:
        with pytest.raises(rt.TraceError, match="it belongs to another run"):
            operand_for(kept[0], recording, "it")

    kept: list[Any] = []
    within(lambda s, recording: kept.append(s["x"]))
    within(check)
    assert other[0] == 5


def test_operands_are_python_values_again_once_they_have_ended() -> None:
    def check(s: rt.State, recording: Any) -> None:
        value = s["x"]
        assert actual(value, "plain") == "plain", "it runs"
        assert int(value) == 5
        assert actual(value, "plain") == 5
        assert actual([value, Point(1)], ["a", "b"]) == [5, Point(1)]

    within(check)
