"""What a run gave, and what reading it raises."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import Generate
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.sessions.session import Session
from tests.support.programs.fake_target import FakeTarget, answer, by_name


def run(body: Any, **options: Any) -> rt.Result:
    return rt.program(body).run(**options)


def test_variables_texts_and_meta(target: FakeTarget) -> None:
    target.script = by_name({"n": "5"})

    def body(s: Any) -> None:
        s += rt.gen("n", type=int) + rt.gen("many", n=2)
        s.set("both", (s["n"], s["many"]))

    result = run(body)
    assert (result["n"], result.text("n"), result.meta("n").token_ids) == (5, "5", (ord("5"),))
    assert result["both"] == (5, result["many"])
    assert result.names == ("n", "many", "both")
    assert "n" in result
    assert "other" not in result
    assert repr(result) == "<Result ['n', 'many', 'both'], ok>"


def test_what_a_failed_body_did_not_reach_raises_or_names_its_error(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += rt.gen("early", max_tokens=3)
        if str(s["early"]) != "no such text":
            raise ValueError("no such city")
        s += rt.gen("late", max_tokens=3)
        return s["late"]

    result = run(body, on_error="result")
    assert str(result.error) == "no such city"
    with pytest.raises(ValueError, match="no such city"):
        _ = result.value
    with pytest.raises(KeyError, match=r"'late' does not exist.*early; the run failed: no such city"):
        _ = result["late"]
    with pytest.raises(IndexError, match=r"does not exist.*the run failed: no such city"):
        _ = result.text(5)
    assert isinstance(result["early"], str)  # what it reached stays readable


def test_an_unknown_name_is_a_key_error_that_names_the_known_ones(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")

    result = run(body)
    for read in (result.__getitem__, result.text, result.meta):
        with pytest.raises(KeyError, match="existing variables: x"):
            read("y")


def test_forks_that_were_not_joined_can_be_read(target: FakeTarget) -> None:
    target.script = by_name({"typed": "3"})

    def body(s: Any) -> None:
        forks = s.fork(2)
        forks += lambda index: rt.text(index) + rt.gen("x") + rt.gen("n", n=2)
        forks[0] += rt.gen("typed", type=int)
        forks[1] += rt.select("chosen", ["only"])

    result = run(body)
    xs = [answer("0", "x"), answer("1", "x")]
    assert result["x"] == result.text("x") == xs
    assert [len(texts) for texts in result["n"]] == [2, 2]
    assert (result["typed"], result["chosen"]) == (3, "only")
    assert set(result.names) == {"x", "n", "typed", "chosen"}


def test_the_value_is_what_the_body_returned(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += rt.gen("x")
        return {"a": [s["x"], 1], "b": (s["x"] + "!",)}

    x = answer("", "x")
    assert run(body).value == {"a": [x, 1], "b": (f"{x}!",)}


def test_a_returned_value_that_failed_raises_when_read(target: FakeTarget) -> None:
    target.script = by_name({"x": rt.ConstraintError("bad")})

    def body(s: Any) -> Any:
        s += rt.gen("x")
        return s["x"]

    result = run(body, on_error="result")
    assert isinstance(result.error, rt.ConstraintError)
    with pytest.raises(rt.ConstraintError):
        result.value  # noqa: B018


def test_a_value_that_does_not_parse_is_the_error_of_the_run(target: FakeTarget) -> None:
    target.script = by_name({"n": "five"})

    def body(s: Any) -> None:
        s += rt.gen("n", type=int)

    with pytest.raises(rt.ValueParseError) as caught:
        run(body)
    assert (caught.value.name, caught.value.text) == ("n", "five")
    result = run(body, on_error="result")
    assert result.text("n") == "five"
    with pytest.raises(rt.ValueParseError):
        result["n"]


def test_messages_end_at_the_first_missing_text(target: FakeTarget) -> None:
    target.script = by_name({"bad": rt.ConstraintError("bad")})

    def body(s: Any) -> None:
        s += (
            rt.user("hello")
            + rt.assistant(rt.gen("good"))
            + rt.user("and?")
            + rt.assistant("Well ", rt.gen("bad"), "!")
        )

    good, well = run(body, on_error="result").messages[1], run(body, on_error="result").messages[-1]
    assert good["content"].startswith("<")
    assert well == {"role": "assistant", "content": "Well "}


def test_the_graph_is_what_was_submitted(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")
        str(s["x"])
        s += "more" + rt.gen("y")

    result = run(body)
    assert result.graph.nodes == tuple(target.runs[0].nodes.values())
    assert [node.name for node in result.graph.nodes if isinstance(node, Generate)] == ["x", "y"]
    result.graph.validate()


def through_pickle(result: rt.Result) -> rt.Result:
    loaded: rt.Result = pickle.loads(pickle.dumps(result))
    return loaded


@pytest.mark.parametrize("again", [through_pickle, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
def test_a_copy_reads_as_the_result_did(target: FakeTarget, again: Callable[[rt.Result], rt.Result]) -> None:
    target.script = by_name({"n": "5", "bad": rt.ConstraintError("bad", "/a"), "wrong": "five"})

    def body(s: Any) -> Any:
        s += rt.user("hello") + rt.assistant(rt.gen("n", type=int))
        s += rt.user("and?") + rt.assistant(rt.gen("many", n=2))
        s.set("both", (s["n"], s["many"]))
        forks = s.fork(2)
        forks += rt.gen("x")
        forks[0] += rt.gen("bad") + rt.gen("after")
        forks[1] += rt.gen("wrong", type=int)
        str(s["n"])
        return {"n": s["n"]}

    result = run(body, on_error="result")
    for found in (again(result), again(again(result))):
        assert found.names == result.names
        assert repr(found) == repr(result)
        for name in ("n", "many", "both", "x"):
            assert (found[name], found.text(name)) == (result[name], result.text(name))
        assert (found.meta("n"), found.meta("x")) == (result.meta("n"), result.meta("x"))
        assert (found.value, found.usage, found.messages) == (result.value, result.usage, result.messages)
        assert (found.graph, found.breaks) == (result.graph, result.breaks)
        for name in ("bad", "after"):
            with pytest.raises(rt.ConstraintError, match="bad") as caught:
                found[name]
            assert caught.value.location == "/a"
        with pytest.raises(rt.ValueParseError):
            found["wrong"]
        assert found.text("wrong") == "five"
        with pytest.raises(rt.TraceError, match="not generated"):
            found.meta("both")
        with pytest.raises(KeyError, match="existing variables: n, many"):
            found.text("y")


def test_a_result_of_a_program_that_still_runs_cannot_be_copied(target: FakeTarget) -> None:
    session = Session(target)
    state = StateRecord(session.recording)
    unfinished = rt.Result(session, state, None, None)
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(rt.TraceError, match="still running"):
            act(unfinished)


def test_usage_is_the_sum_of_what_finished(target: FakeTarget) -> None:
    target.script = by_name({"b": rt.ConstraintError("bad")})

    def body(s: Any) -> None:
        s += "abc" + rt.gen("a")
        s += rt.gen("b")

    def wrong(s: Any) -> None:
        body(s)
        str(s["a"])
        raise ZeroDivisionError

    finished = run(body, on_error="result")
    assert finished.usage == finished.meta("a").usage
    cancelled = run(wrong, on_error="result")
    assert cancelled.usage == cancelled.meta("a").usage
