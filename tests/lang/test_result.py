"""What a run gave, and what reading it raises."""

from __future__ import annotations

from typing import Any

import pytest

import rtlang as rt
from rtlang.lang.graph import Generate
from tests.support.fake_target import FakeTarget, answer, by_name


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


def test_an_unknown_name_is_a_key_error_that_names_the_known_ones(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")

    result = run(body)
    for read in (result.__getitem__, result.text, result.meta):
        with pytest.raises(KeyError, match="known are: x"):
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
