"""What can be read of a run: generations by position, forks one by one, the text of a sequence; saved as from the run."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime
from tests.support.long_tests import sized
from tests.support.programs.fake_target import FakeTarget, by_name

TEXTS: dict[str, Any] = {"a": "1", "many": ["x", "y"], "tip": "t", "deep": "d", "inner.tip": "t", "inner.deep": "d"}


@rt.program
def inner(s: Any) -> None:
    s += rt.gen("tip")
    for fork in s.fork(1):
        fork += rt.gen("deep")


@rt.program
def body(s: Any) -> Any:
    s += rt.user("Q: ", rt.gen("a", type=int))
    s += rt.gen() + "; " + rt.gen("many", n=2)
    forks = s.fork(2)
    for number, fork in enumerate(forks):
        fork += rt.text("fork ", number, " ", rt.gen("tip"), "/", rt.gen())
    for deep in forks[1].fork(2):
        deep += rt.user(rt.select("deep", ["d", "e"]))
    inner(s)
    s += rt.assistant("end ", rt.select(None, ["one"]))
    return s.last


@pytest.fixture(params=["run", "pickled", "pickled twice"])
def result(request: Any, target: FakeTarget) -> rt.Result[Any]:
    target.script = by_name(TEXTS)
    found = body.run()
    for _ in range(["run", "pickled", "pickled twice"].index(request.param)):
        found = pickle.loads(pickle.dumps(found))
    return found


def test_generations_are_read_by_position(result: rt.Result[Any]) -> None:
    assert result[0] == result["a"] == 1
    assert result.text(0) == "1"
    assert result[1] == result.text(1) != ""
    assert result[2] == ["x", "y"]
    assert result[-1] == result.value == "one"
    assert result.meta(1).finish_reason == "stop"
    assert [result[index] for index in range(-12, 0)] == [result[index] for index in range(12)]
    for wrong in (12, -13):
        with pytest.raises(IndexError, match="there are 12"):
            result[wrong]
    with pytest.raises(TypeError, match="iterated"):
        list(result)


def test_forks_are_read_one_by_one(result: rt.Result[Any]) -> None:
    first, called = result.forks
    assert [len(first), len(called)] == [2, 1]
    assert [fork["tip"] for fork in first] == ["t", "t"]
    assert [fork[1] for fork in first] == [result[4], result[6]]
    assert first[0][0] == "t"
    assert first[0]["a"] == 1  # inherited
    assert set(first[0].names) == {"a", "many", "tip"}
    assert first[1].text() == f"Q: 1{result[1]}; fork 1 t/{result[6]}"
    ((one, other),) = first[1].forks
    assert (one["deep"], other.text("deep")) == ("d", "d")
    assert one.messages == [{"role": "user", "content": "Q: 1"}, {"role": "user", "content": "d"}]
    assert called[0]["deep"] == "d"
    with pytest.raises(KeyError, match="'none'"):
        first[0]["none"]
    with pytest.raises(IndexError, match="there are 2"):
        first[0][2]


def test_the_text_of_a_sequence_has_all_of_it_but_the_marks_of_messages(result: rt.Result[Any]) -> None:
    assert result.text() == f"Q: 1{result[1]}; tend one"


def test_the_state_reads_the_same(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)
    seen: list[Any] = []

    @rt.program
    def outer(s: Any) -> Any:
        with pytest.raises(rt.TraceError, match="no generation yet"):
            s.last  # noqa: B018
        s += rt.user("Q: ", rt.gen("a", type=int))
        seen.append(s.last + 1)
        s += rt.gen(n=2)
        seen.append([str(each) for each in s.last])
        (fork,) = s.fork(1)
        seen.append(len(fork.last))
        fork += rt.gen("tip")
        s += rt.text(fork.last, "!", fork.text())
        seen.append(str(s.text()))
        inner(s)
        return s.last, s.text("a")

    found = outer.run()
    assert seen[0] == 2
    assert seen[1] == found[1]
    assert seen[2] == 2
    assert seen[3] == "Q: 1t!Q: 1t"
    assert found.value == ("t", "1")


def test_a_text_ends_before_a_missing_one_and_errors_are_raised_by_position(target: FakeTarget) -> None:
    target.script = by_name({"x": "fine", "y": rt.RequestError("broken")})

    @rt.program
    def failing(s: Any) -> None:
        s += "begin " + rt.gen("x") + ", " + rt.gen("y") + " end"

    for found in (failing.run(on_error="result"), pickle.loads(pickle.dumps(failing.run(on_error="result")))):
        assert found.text() == "begin fine, "
        assert found[0] == "fine"
        with pytest.raises(rt.RequestError, match="broken"):
            found[1]


def test_a_chain_of_thousands_of_forks_has_a_result_and_a_snapshot() -> None:
    depth = sized(4000, usual=1500)

    @rt.program
    def chain(s: Any) -> Any:
        for turn in range(depth):
            (s,) = s.fork(1)
            s += f"{turn} " + rt.gen("x", max_tokens=2)
        return s.text()

    with ScriptedRuntime(default="ab") as runtime:
        result = chain.run(runtime=runtime, on_error="result")
    text = "".join(f"{turn} ab" for turn in range(depth))
    assert (result.error, result.value) == (None, text)
    for read in (result, pickle.loads(pickle.dumps(result)), copy.copy(result)):
        at: Any = read
        for _ in range(depth):
            ((at,),) = at.forks
        assert (at["x"], at[0], at.text(), at.forks) == ("ab", "ab", text, ())
        assert len(read["x"]) == depth
        assert text[-5:] in read.to_html()
