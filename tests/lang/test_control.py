"""Calls, decisions, branches and loops: one submission, the values of plain Python, locally and over a socket."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

import rtlang as rt
from rtlang.contract.errors import CallError, ParameterError, RequestError, SwitchError, TraceError
from rtlang.contract.request_graph import RequestGraph
from rtlang.testing import ScriptedRuntime
from tests.support.servers.cut_proxy import cut_proxy
from tests.support.servers.serving import serving

ANSWERS: dict[str | None, Any] = {
    "tool": ["search", "search", "done"],
    "query": ["rivers", "lakes"],
    "color": "red",
    "answer": ["a", "b", "b"],
    "number": "7",
}


@pytest.fixture(params=["local", "remote"])
def scripted(request: pytest.FixtureRequest) -> Iterator[tuple[Any, ScriptedRuntime]]:
    """A runtime that answers from a script, and the same behind a socket."""
    with ScriptedRuntime(ANSWERS) as script:
        if request.param == "local":
            yield script, script
        else:
            with serving(cast(Any, script)) as server, rt.connect(server.url) as remote:
                yield remote, script


def find(query: str) -> dict[str, Any]:
    return {"query": query, "hits": 3}


@rt.program
def agent(s: rt.State, question: str) -> Any:
    s += rt.user(question)

    def step(b: rt.State) -> Any:
        b += rt.assistant(rt.gen("tool", choices=["search", "done"]))

        def search(c: rt.State) -> Any:
            c += rt.assistant(rt.gen("query", max_tokens=10))
            c += rt.tool(rt.call(find, c["query"]))
            return c["query"]

        return rt.switch(b["tool"], {"search": search}, default="")

    last = rt.repeat(step, until=lambda b: b["tool"] == "done", at_most=5)
    s += rt.assistant(rt.gen("color", max_tokens=5))
    return last


def test_an_agent_with_tools_is_one_submission(scripted: tuple[Any, ScriptedRuntime]) -> None:
    runtime, script = scripted
    result = agent.run("Where is water?", runtime=runtime)
    assert result.breaks == ()
    assert result.value is None
    assert result["tool"] == ["search", "search", "done"]
    assert result["query"] == ["rivers", "lakes"]
    assert result["color"] == "red"
    assert [message["content"] for message in result.messages] == [
        "Where is water?",
        *("search", "rivers", '{"query": "rivers", "hits": 3}'),
        *("search", "lakes", '{"query": "lakes", "hits": 3}'),
        *("done", "red"),
    ]
    assert script.requests[-1].prompt.count('"hits": 3') == 2
    again = pickle.loads(pickle.dumps(result))
    assert (again["tool"], again.messages) == (result["tool"], result.messages)


def test_a_recorded_graph_runs_and_comes_back_from_a_file(scripted: tuple[Any, ScriptedRuntime], tmp_path: Any) -> None:
    runtime, _ = scripted
    graph = agent.graph(rt.arg("question"))
    for name in ("agent.json", "agent.graph"):
        graph.save(tmp_path / name)
        assert RequestGraph.load(tmp_path / name) == graph
    values = graph.run(runtime, {"question": "Where?"}, functions={"find": find})
    assert values["tool"] == ["search", "search", "done"]
    assert values["color"] == "red"


def test_a_graph_whose_calls_have_no_function_says_so() -> None:
    graph = agent.graph("Where?")
    with ScriptedRuntime(ANSWERS) as runtime, pytest.raises(CallError, match=r"find.*no function"):
        graph.run(runtime)


@pytest.mark.parametrize("data", [b"", b"{", b'{"nodes": [{"id": 0, "kind": "text", "parts": 3}]}', b"\x93\x01"])
def test_a_file_that_holds_no_graph_is_refused(tmp_path: Any, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(rt.GraphError):
        RequestGraph.load(tmp_path / "x")


def test_answers_of_calls_survive_broken_connections() -> None:
    with (
        ScriptedRuntime(ANSWERS) as script,
        serving(cast(Any, script)) as server,
        cut_proxy(server.url) as proxy,
        rt.connect(proxy.url, resume_s=30.0) as runtime,
    ):
        seen: list[int] = []

        def cutting(number: int) -> int:
            seen.append(number)
            if number % 2:
                proxy.cut()  # the answer is sent into the broken connection
            return number * number

        @rt.program
        def squares(s: rt.State) -> Any:
            found = [rt.call(cutting, number) for number in range(8)]
            s += rt.text("squares: ", rt.call(list, found))
            s += rt.gen("end", max_tokens=9)
            return found

        result = squares.run(runtime=runtime)
    assert result.value == [number * number for number in range(8)]
    assert sorted(seen) == list(range(8))
    assert "[0, 1, 4, 9, 16, 25, 36, 49]" in script.requests[-1].prompt


def test_a_cancelled_or_late_program_does_not_wait_for_its_calls() -> None:
    may_end = threading.Event()

    @rt.program
    def waits(s: rt.State) -> Any:
        s += rt.gen("color", max_tokens=5)
        return rt.call(lambda color: may_end.wait(60) and color, s["color"])

    with ScriptedRuntime(ANSWERS) as runtime:
        error = waits.run(runtime=runtime, deadline_s=0.2, on_error="result").error
        assert isinstance(error, rt.DeadlineError)
        with waits.stream(runtime=runtime, on_error="result") as stream:
            next(iter(stream))
        assert isinstance(stream.result().error, rt.AbortedError)
    may_end.set()


def test_a_switch_runs_one_branch(scripted: tuple[Any, ScriptedRuntime]) -> None:
    runtime, script = scripted

    @rt.program
    def choose(s: rt.State) -> Any:
        s += rt.user("color?")
        s += rt.assistant(rt.gen("color", max_tokens=5))

        def red(b: rt.State) -> Any:
            b += rt.user("Why?")
            b += rt.assistant(rt.gen("why", max_tokens=9))
            return b["why"].upper()

        value = rt.switch(s["color"].strip(), {"red": red, "green": "green!"})
        s += rt.user("So: ", value)
        s += rt.assistant(rt.gen("end", max_tokens=9))
        return value, s["color"] + "dish"

    result = choose.run(runtime=runtime)
    assert result.value == ("<WHY>", "reddish")
    assert "So: <WHY>" in script.requests[-1].prompt
    assert result["why"] == "<why>"
    assert result.text() == "color?redWhy?<why>So: <WHY><end>"


def test_a_branch_that_did_not_run_has_no_variables() -> None:
    @rt.program
    def choose(s: rt.State) -> Any:
        s += rt.gen("color", max_tokens=5)
        return rt.switch(s["color"], {"green": rt.gen("never", max_tokens=5)}, default=lambda b: 5)

    with ScriptedRuntime(ANSWERS) as runtime:
        result = choose.run(runtime=runtime)
    assert result["never"] is None
    assert result.value == 5


def test_no_branch_for_a_value_is_an_error_of_the_reader() -> None:
    @rt.program
    def choose(s: rt.State) -> Any:
        s += rt.gen("color", max_tokens=5)
        return rt.switch(s["color"], {"blue": "x"})

    with ScriptedRuntime(ANSWERS) as runtime:
        error = choose.run(runtime=runtime, on_error="result").error
    assert isinstance(error, SwitchError)
    assert "'red'" in str(error)
    assert "test_control.py" in str(error)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_functions_of_calls_run_beside_the_graph(scripted: tuple[Any, ScriptedRuntime], is_async: bool) -> None:
    runtime, _ = scripted
    is_waiting, may_end = threading.Event(), threading.Event()

    def slow(color: str, number: int) -> list[Any]:
        is_waiting.set()
        assert may_end.wait(20)
        return [color, number, type(number).__name__]

    async def slow_async(color: str, number: int) -> list[Any]:
        await asyncio.sleep(0)
        return slow(color, number)

    @rt.program
    def calls(s: rt.State) -> Any:
        s += rt.gen("color", max_tokens=5)
        s += rt.gen("number", type=int, max_tokens=5)
        found = rt.call(slow_async if is_async else slow, s["color"], s["number"])
        other = s.fork(1)[0]
        other += rt.gen("free", max_tokens=9)
        assert str(other["free"]) == "<free>"  # does not wait for the call
        assert is_waiting.wait(20)
        may_end.set()
        s += rt.text("got ", found)
        s += rt.gen("end", max_tokens=9)
        return found

    result = calls.run(runtime=runtime)
    assert result.value == ["red", 7, "int"]
    assert result.text().startswith("red7got ['red', 7, 'int']")


def fail(value: str) -> Any:
    raise ValueError(f"no {value}")


def test_a_call_that_fails_names_its_function_and_line(scripted: tuple[Any, ScriptedRuntime]) -> None:
    runtime, _ = scripted

    @rt.program
    def calls(s: rt.State) -> Any:
        s += rt.gen("color", max_tokens=5)
        return rt.call(fail, s["color"])

    error = calls.run(runtime=runtime, on_error="result").error
    assert isinstance(error, CallError)
    line = fail.__code__.co_firstlineno + 1
    assert "fail()" in str(error)
    assert f"ValueError: no red (at {__file__}:{line})" in str(error)


def test_a_call_must_return_plain_data() -> None:
    @rt.program
    def calls(s: rt.State) -> Any:
        return rt.call(lambda: object())

    with ScriptedRuntime({}) as runtime:
        error = calls.run(runtime=runtime, on_error="result").error
    assert isinstance(error, CallError)
    assert "plain data" in str(error)


def race(names: list[str]) -> Any:
    @rt.program
    def race(s: rt.State, how: str) -> Any:
        s += rt.user("go")
        forks = s.fork(len(names))
        for name, fork in zip(names, forks, strict=True):
            fork += rt.user(name)
            fork += rt.assistant(rt.gen(name, max_tokens=20))
        values = [fork[name] for name, fork in zip(names, forks, strict=True)]
        if how == "first":
            return rt.first(values)
        if how == "vote":
            return rt.vote(values)
        return rt.best(values, by=[rt.call(len, each) for each in values])

    return race


def test_the_first_value_ends_the_others() -> None:
    answers: dict[str | None, Any] = {"fast": "quick", "slow": "late"}
    with ScriptedRuntime(answers, delay_s={"slow": 3600.0}) as other:
        started = time.monotonic()
        result = race(["slow", "fast"]).run("first", runtime=other)
    assert time.monotonic() - started < 60
    assert result.value == "quick"
    assert result.error is None
    assert result.meta("slow").finish_reason == "cancelled"
    assert result["slow"] is None


def test_a_vote_is_over_when_it_is_decided() -> None:
    answers: dict[str | None, Any] = {"a": "x", "b": "y", "c": "x", "d": "x", "e": "z"}
    with ScriptedRuntime(answers, delay_s={"e": 3600.0}) as runtime:
        result = race(["a", "b", "c", "d", "e"]).run("vote", runtime=runtime)
    assert result.value == "x"
    assert result["e"] is None
    assert result.error is None


def test_the_best_is_the_one_with_the_largest_number(scripted: tuple[Any, ScriptedRuntime]) -> None:
    runtime, _ = scripted
    result = race(["color", "a_longer_name", "b"]).run("best", runtime=runtime)
    assert result.value == "<a_longer_name>"


def test_votes_over_the_completions_of_one_generation() -> None:
    @rt.program
    def many(s: rt.State) -> Any:
        s += rt.gen("answer", n=3, max_tokens=5)
        return rt.vote(s["answer"])

    with ScriptedRuntime(ANSWERS) as runtime:
        assert many.run(runtime=runtime).value == "b"


def test_failed_candidates_do_not_count() -> None:
    answers: dict[str | None, Any] = {"a": RequestError("broken"), "b": "fine"}
    with ScriptedRuntime(answers) as runtime:
        result = race(["a", "b"]).run("first", runtime=runtime, on_error="result")
    assert result.value == "fine"


def test_nested_loops_and_forks_within_branches() -> None:
    @rt.program
    def nested(s: rt.State) -> Any:
        s += "start"

        def outer(b: rt.State) -> Any:
            b += rt.gen("outer", max_tokens=9)

            def inner(c: rt.State) -> Any:
                forks = c.fork(2)
                for fork in forks:
                    fork += rt.gen("leaf", max_tokens=9)
                c += rt.text("[", rt.join("+", [fork["leaf"] for fork in forks]), "]")
                return len(forks)

            return rt.repeat(inner, at_most=2)

        rt.repeat(outer, at_most=2)
        s += rt.gen("end", max_tokens=9)

    with ScriptedRuntime({"leaf": [str(number) for number in range(8)]}) as runtime:
        result = nested.run(runtime=runtime)
    assert result.error is None
    assert result["outer"] == ["<outer>"] * 2
    assert sorted(result["leaf"]) == [str(number) for number in range(8)]
    assert result.text().count("<outer>[") == 2
    assert result.text().endswith("]<end>")


def test_a_switch_in_a_fork() -> None:
    @rt.program
    def forked(s: rt.State) -> Any:
        forks = s.fork(2)
        values = []
        for number, fork in enumerate(forks):
            fork += f"{number}"
            fork += rt.gen("color", max_tokens=5)
            values.append(rt.switch(fork["color"], {"red": lambda b: "is red"}, state=fork))
        return values

    with ScriptedRuntime(ANSWERS) as runtime:
        assert forked.run(runtime=runtime).value == ["is red", "is red"]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s, value: str(s["inside"]), "return it from the branch"),
        (lambda s, value: s.__iadd__(rt.text("x", s["inside"])), "return it from the branch"),
        (lambda s, value: rt.switch(value, {"a": lambda b: str(value)}), "cannot wait for a value"),
        (lambda s, value: rt.switch(value, {"a": lambda b: b.user().__enter__() and None}), "leaves user message open"),
        (lambda s, value: rt.switch(value, {"a": 3}), "a branch is a function of a state"),
        (lambda s, value: rt.switch(value, {}), "expected a dict"),
        (lambda s, value: rt.call(3), "is neither a function nor a value"),
        (lambda s, value: rt.first([]), "expected 1 to"),
        (lambda s, value: rt.vote([value], need=2), "need"),
        (lambda s, value: rt.best([value], by=[]), "by"),
        (lambda s, value: rt.repeat("x", at_most=0), "at_most"),
        (lambda s, value: rt.call(len, object()), "argument 1 of rt.call()"),
    ],
)
def test_mistakes_are_refused_where_they_are_written(use: Any, message: str) -> None:
    @rt.program
    def wrong(s: rt.State) -> None:
        s += rt.gen("color", max_tokens=5)
        value = s["color"]
        rt.switch("a", {"a": rt.gen("inside", max_tokens=5)})
        use(s, value)

    with ScriptedRuntime(ANSWERS) as runtime, pytest.raises(rt.RtlangError) as caught:
        wrong.run(runtime=runtime)
    assert message in str(caught.value)


def test_outside_of_a_program_there_is_no_state() -> None:
    for use in (
        lambda: rt.call(len, "a"),
        lambda: rt.first(["a"]),
        lambda: rt.switch("a", {"a": "b"}),
        lambda: rt.repeat("a", at_most=1),
    ):
        with pytest.raises(rt.TraceError, match="inside a program"):
            use()


def test_a_program_as_a_branch_on_the_embedded_model() -> None:
    @rt.program
    def explain(s: rt.State, topic: str) -> Any:
        s += rt.user("Explain ", topic)
        s += rt.assistant(rt.gen("text", max_tokens=4))
        return s["text"]

    @rt.program
    def main(s: rt.State) -> Any:
        s += rt.user("Pick.")
        s += rt.assistant(rt.gen("pick", choices=["sun", "moon"], max_tokens=8))
        return rt.switch(s["pick"], {"sun": lambda b: explain(b, "sun"), "moon": lambda b: explain(b, "moon")})

    @rt.program
    def eager(s: rt.State) -> Any:
        s += rt.user("Pick.")
        s += rt.assistant(rt.gen("pick", choices=["sun", "moon"], max_tokens=8))
        return explain(s, str(s["pick"]))

    with rt.Runtime("rtlang:tiny") as runtime:
        lazy, plain = main.run(runtime=runtime), eager.run(runtime=runtime)
    assert lazy.value == plain.value
    assert lazy.messages == plain.messages
    assert lazy.breaks == ()
    assert len(plain.breaks) == 1


def test_branches_may_use_the_same_names_within_a_scope() -> None:
    @rt.program
    def main(s: rt.State) -> Any:
        s += rt.gen("color")
        with s.scope("part"):
            rt.switch(s["color"], {"red": rt.gen("x"), "blue": rt.gen("x")}, state=s)
        return s["color"]

    with ScriptedRuntime({"color": "red", "x": "yes"}) as script:
        assert main.run(runtime=script)["part.x"] == "yes"


def test_an_end_of_a_loop_that_never_changes_is_refused() -> None:
    @rt.program
    def main(s: rt.State) -> None:
        rt.repeat(rt.gen("x"), until=lambda state: state == "done", at_most=3)  # compares the state, not a value

    with pytest.raises(rt.TraceError, match=r"until= is always False; expected a function of the state after the body"):
        main.graph()


def test_forks_and_unnamed_generations_within_a_branch_are_run() -> None:
    @rt.program
    def main(s: rt.State) -> Any:
        s += rt.text("a", rt.gen())

        def branch(b: rt.State) -> None:
            for fork in b.fork(2):
                fork += rt.gen("x")
            rt.switch("a", {"a": rt.gen("y")}, state=b)

        rt.switch("red", {"red": branch}, state=s)
        return s.text()

    with ScriptedRuntime({"x": ["1", "2"], "y": "3", None: "!"}) as script:
        result = main.run(runtime=script)
    assert result.value == "a!3"


@pytest.mark.parametrize(
    ("decide", "field"),
    [
        (lambda: rt.vote("abc"), "values"),
        (lambda: rt.first({"a": 1}), "values"),
        (lambda: rt.best(["a", "b"], by="12"), "by"),
        (lambda: rt.repeat(lambda s: None, at_most=2, state="zz"), "state"),  # type: ignore[arg-type]
        (lambda: rt.switch(1, {1: "a"}, state=0), "state"),  # type: ignore[arg-type]
    ],
)
def test_one_value_in_the_place_of_a_list_or_a_state_is_named(decide: Any, field: str) -> None:
    @rt.program
    def wrong(s: rt.State) -> Any:
        return decide()

    with ScriptedRuntime({}) as runtime, pytest.raises(ParameterError) as caught:
        wrong.run(runtime=runtime).value  # noqa: B018
    assert caught.value.field == field


def test_a_branch_that_contains_itself_is_refused() -> None:
    def branch(s: rt.State) -> None:
        rt.switch(s["x"], {"a": branch}, state=s)

    @rt.program
    def endless(s: rt.State) -> None:
        s += rt.gen("x")
        branch(s)

    with ScriptedRuntime({"x": "a"}) as runtime, pytest.raises(TraceError, match="a branch cannot contain itself"):
        endless.run(runtime=runtime).value  # noqa: B018
