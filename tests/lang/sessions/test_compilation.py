"""The compilation of a run: merged nodes get events, dropped nodes say why, parts that are repeated stay the same."""

from __future__ import annotations

from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import NumericsError, OverloadError
from rtlang.contract.events import NodeFailed, NodeFinished, TextDelta, Timing
from rtlang.contract.params import Usage
from rtlang.contract.request_graph import Generate
from rtlang.lang.sessions.compilation import EventCopies, copied
from tests.compiler.test_pipeline import of_prompt
from tests.support.programs.fake_target import Call, FakeTarget


@rt.program
def twins(s: Any) -> Any:
    left, right = s.fork(2)
    left += "a" + rt.gen("left")
    right += "a" + rt.gen("right")
    return left["left"], right["right"]


def num_generated(target: FakeTarget) -> int:
    return sum(isinstance(event, NodeFinished) for run in target.runs for event in run.events)


def test_equal_generations_run_once_and_both_names_are_read() -> None:
    with FakeTarget(of_prompt) as target:
        result = twins.run(runtime=target)
        assert num_generated(target) == 1
        assert result.value[0] == result.value[1] == result["left"] == result["right"]
        assert result.meta("right").token_ids == result.meta("left").token_ids
        assert result.meta("right").usage == Usage()
        assert result.usage == result.meta("left").usage
        twins.run(runtime=target, passes="-merge")
        assert num_generated(target) == 3


def test_a_generation_that_equals_a_finished_one_has_its_events_at_once() -> None:
    @rt.program
    def late(s: Any) -> None:
        first = s.copy()
        first += "a" + rt.gen("first")
        str(first["first"])
        second = s.copy()
        second += "a" + rt.gen("second")
        str(second["second"])

    with FakeTarget(of_prompt) as target, late.stream(runtime=target) as stream:
        events = list(stream)
        texts = {
            name: "".join(e.text for e in events if isinstance(e, rt.TextEvent) and e.name == name)
            for name in ("first", "second")
        }
        values = [event.name for event in events if isinstance(event, rt.ValueEvent)]
        assert texts["first"] == texts["second"] != ""
        assert values == ["first", "second"]
        assert num_generated(target) == 1


def test_a_failure_reaches_both_names_with_their_own_lines() -> None:
    def fail(call: Call) -> NumericsError:
        return NumericsError("not finite")

    with FakeTarget(fail) as target:
        result = twins.run(runtime=target, on_error="result")
        line = twins._body.function.__code__.co_firstlineno
        for name, offset in (("left", 3), ("right", 4)):
            with pytest.raises(NumericsError, match=rf"'{name}', fork.*{name}, at .*:{line + offset}\)"):
                result[name]


def test_a_full_queue_is_tried_again_with_the_same_nodes() -> None:
    with FakeTarget(of_prompt) as target:
        target.refuse(OverloadError("full", retry_after_s=0.0))
        (result,) = twins.run_batch([{}], runtime=target)
        assert result.error is None
        assert result["left"] == result["right"]
        assert num_generated(target) == 1


@rt.program
def wasteful(s: Any) -> Any:
    s += "a" + rt.gen("plan")
    aside = s.copy()
    aside += "b" + rt.gen(max_tokens=9)
    s += "c" + rt.gen("unread", max_tokens=11)
    s += "d" + rt.gen("best")


def test_what_no_result_can_show_is_not_generated() -> None:
    with FakeTarget(of_prompt) as target:
        result = wasteful.run(runtime=target)
        assert result.error is None
        assert num_generated(target) == 3
        wasteful.run(runtime=target, passes="-prune")
        assert num_generated(target) == 7


def test_outputs_limit_what_is_generated() -> None:
    with FakeTarget(of_prompt) as target:
        result = wasteful.run(runtime=target, outputs=["plan"])
        assert num_generated(target) == 1
        assert result.error is None
        assert result["plan"]
        with pytest.raises(rt.TraceError, match="no output of the run depends on it") as caught:
            result["best"]
        assert "'best' at" in str(caught.value)


def test_returned_values_and_what_the_body_reads_are_outputs_too() -> None:
    @rt.program
    def reads(s: Any) -> Any:
        left, right, third = s.fork(3)
        left += "a" + rt.gen("left")
        right += "b" + rt.gen("right")
        third += "c" + rt.gen("third")
        if left["left"] == "nothing":
            return None
        return {"value": [right["right"]]}

    with FakeTarget(of_prompt) as target:
        result = reads.run(runtime=target, outputs=[])
        assert result.value == {"value": [result["right"]]}
        assert num_generated(target) == 2


@pytest.mark.parametrize("outputs", ["plan", [""], [3], 3])
def test_wrong_outputs_are_refused(outputs: Any) -> None:
    with FakeTarget(of_prompt) as target, pytest.raises(rt.ParameterError, match="outputs"):
        wasteful.run(runtime=target, outputs=outputs)


def test_an_unknown_output_is_refused_with_the_known_ones() -> None:
    with (
        FakeTarget(of_prompt) as target,
        pytest.raises(rt.TraceError, match=r"no variable and no path 'worst'.*plan, unread, best"),
    ):
        wasteful.run(runtime=target, outputs=["worst"])


def test_what_nobody_waits_for_is_not_urgent() -> None:
    @rt.program
    def breaks(s: Any) -> None:
        left, right = s.fork(2)
        left += "a" + rt.gen("awaited")
        right += "b" + rt.gen("behind")
        str(left["awaited"])

    with FakeTarget(of_prompt) as target:
        breaks.run(runtime=target)
        marks = {node.name: node.marks for node in target.runs[0].nodes.values() if isinstance(node, Generate)}
        assert (marks["awaited"].is_urgent, marks["behind"].is_urgent) == (True, False)


def test_copies_are_told_what_they_missed() -> None:
    copies = EventCopies(keeps_text=True)
    delta, end = TextDelta(1, 5, 0, "x", (7,)), NodeFinished(1, 5, "a", (), Usage(3, 1, 2), Timing())
    copies.note(delta)
    assert copies.of(delta) == ()
    assert copies.add(5, 8, "b", end) == [TextDelta(1, 8, 0, "x", (7,)), NodeFinished(1, 8, "b", (), Usage(), Timing())]
    assert copies.of(delta) == [TextDelta(1, 8, 0, "x", (7,))]
    assert copies.has(8)
    assert not copies.has(5)
    error = NumericsError("not finite")
    assert copied(NodeFailed(1, 5, "a", error), 8, "b") == NodeFailed(1, 8, "b", error)
