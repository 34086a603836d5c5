"""Calls of tools that a model wrote, as nodes of the graph: typed arguments, several calls, errors, agents in one submission."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
from collections.abc import Iterator
from typing import Annotated, Any, cast

import pytest
from pydantic import AfterValidator

import rtlang as rt
from rtlang.contract.errors import ToolError, ValueParseError
from rtlang.testing import ScriptedRuntime
from tests.support.servers.serving import serving


def written(name: str, **arguments: Any) -> str:
    """A call as models without a format of their own write it."""
    return json.dumps({"name": name, "arguments": arguments})


def runtimes(kind: str, answers: dict[str | None, Any]) -> Iterator[Any]:
    with ScriptedRuntime(answers) as script:
        if kind == "local":
            yield script
        else:
            with serving(cast(Any, script)) as server, rt.connect(server.url) as remote:
                yield remote


SEEN: list[Any] = []


def search(query: str, day: datetime.date, limit: int = 3) -> dict[str, Any]:
    """Search."""
    SEEN.append((query, day, limit))
    return {"found": [query] * limit}


async def lookup(word: str) -> str:
    """Look up a word."""
    await asyncio.sleep(0)
    if word == "missing":
        raise KeyError(word)
    return f"{word}: a word"


def finish(answer: str) -> str:
    """Give the answer."""
    return answer


SEARCH = written("search", query="rivers", day="2024-02-29")


@pytest.fixture(params=["local", "remote"])
def run(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Runs a program with scripted answers."""
    SEEN.clear()
    open_ones: list[Iterator[Any]] = []

    def run_with(answers: dict[str | None, Any], program: Any, **options: Any) -> Any:
        made = runtimes(request.param, answers)
        open_ones.append(made)
        return program.run(runtime=next(made), **options)

    yield run_with
    for each in open_ones:
        next(each, None)


def test_the_tool_that_the_model_chose_runs_with_typed_arguments(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("?") + rt.assistant(rt.gen("call", 80, tools=[search, lookup]))
        result = rt.call(s["call"])
        s += rt.tool(result)
        s += rt.gen("end", 5)
        return result

    result = run({"call": SEARCH}, ask)
    assert result.breaks == ()
    assert result.value == {"found": ["rivers"] * 3}
    assert [(query, day, limit) for query, day, limit in SEEN] == [("rivers", datetime.date(2024, 2, 29), 3)]
    assert result.messages[-1] == {"role": "tool", "content": '{"found": ["rivers", "rivers", "rivers"]}'}
    assert result["call"].args["day"] == datetime.date(2024, 2, 29)


def test_the_rest_of_the_graph_does_not_wait_for_a_tool(run: Any) -> None:
    may_end = threading.Event()

    def slow(x: int) -> int:
        """Wait."""
        assert may_end.wait(20)
        return x

    @rt.program
    def ask(s: rt.State) -> Any:
        other = s.copy()
        s += rt.gen("call", 80, tools=[slow])
        result = rt.call(s["call"])
        other += "b: " + rt.gen("other", 9)
        assert str(other["other"]) == "done"  # waits for this generation only
        may_end.set()
        return result

    assert run({"call": written("slow", x=4), "other": "done"}, ask).value == 4


def test_parallel_calls_run_side_by_side_and_give_a_list(run: Any) -> None:
    both = threading.Barrier(2, timeout=20)

    def meet(number: int) -> int:
        """Meet the other one."""
        both.wait()
        return number * 10

    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("calls", 200, tools=[meet], parallel=True)
        results = rt.call(s["calls"])
        s += rt.text("first ", results[0], " of ", rt.length(results)) + rt.gen("end", 5)
        return results

    result = run({"calls": f"{written('meet', number=1)}\n{written('meet', number=2)}"}, ask)
    assert (result.value, result.breaks) == ([10, 20], ())
    assert "first 10 of 2" in result.text()


def test_a_reply_without_calls_has_no_results(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("reply", 200, tools=[finish], tool_choice="auto")
        results = rt.call(s["reply"])
        s += rt.text(s["reply"].content.upper(), rt.length(s["reply"].calls)) + rt.gen("end", 5)
        return results

    result = run({"reply": "Hello."}, ask)
    assert (result.value, result.breaks) == ([], ())
    assert result.text().startswith("Hello.HELLO.0")
    assert run({"reply": f"So:\n{written('finish', answer='x')}"}, ask).value == ["x"]


def test_each_completion_has_its_own_call(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[finish], n=2, temperature=1.0)
        return rt.call(s["call"])

    assert run({"call": [written("finish", answer=each) for each in "ab"]}, ask).value == ["a", "b"]


def test_a_failing_tool_names_itself_and_the_line(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[search, lookup])
        return rt.call(s["call"])

    result = run({"call": written("lookup", word="missing")}, ask, on_error="result")
    error = result.error
    assert isinstance(error, ToolError)
    assert (error.tool, error.reason) == ("lookup", "KeyError: 'missing'")
    assert error.location.startswith(__file__)
    assert f"{__file__}:" in (error.recorded_at or "")
    with pytest.raises(ToolError):
        _ = result.value


def test_a_failure_can_be_told_to_the_model(run: Any) -> None:
    def half(number: int) -> int:
        if number % 2:
            raise ValueError(f"{number} is odd")
        return number // 2

    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[search, lookup])
        found = rt.call(s["call"], on_error="text")
        s += rt.tool(found) + rt.gen("end", 5)
        return [found, rt.call(half, 3, on_error="text"), rt.call(half, 4, on_error="text")]

    result = run({"call": written("lookup", word="missing")}, ask)
    assert result.value == ["Error: KeyError: 'missing'", "Error: ValueError: 3 is odd", 2]
    assert result.messages[-1]["content"] == "Error: KeyError: 'missing'"


def test_arguments_that_do_not_fit_their_types_are_an_error_or_told_to_the_model(run: Any) -> None:
    def check(value: str) -> str:
        if value == "Atlantis":
            raise ValueError("there is no such city")
        return value

    def fly(city: Annotated[str, AfterValidator(check)]) -> str:
        """Fly."""
        return f"in {city}"

    fly.__annotations__["city"] = Annotated[str, AfterValidator(check)]
    fly.__annotations__["return"] = str

    def ask_with(on_error: Any) -> Any:
        @rt.program
        def ask(s: rt.State) -> Any:
            s += rt.gen("call", 80, tools=[fly])
            return rt.call(s["call"], on_error=on_error)

        return ask

    answers: dict[str | None, Any] = {"call": written("fly", city="Atlantis")}
    told = run(answers, ask_with("text"))
    assert "there is no such city" in told.value
    assert told.value.startswith("Error: ")
    failed = run(answers, ask_with("raise"), on_error="result")
    assert isinstance(failed.error, ValueParseError)
    assert "there is no such city" in str(failed.error)
    assert run({"call": written("fly", city="Rome")}, ask_with("raise")).value == "in Rome"


@rt.program
def agent(s: rt.State, question: str) -> Any:
    s += rt.user(question)

    def step(b: rt.State) -> Any:
        b += rt.assistant(rt.gen("call", 90, tools=[search, lookup, finish]))
        b += rt.tool(rt.call(b["call"], on_error="text"))
        return b["call"]

    last = rt.repeat(step, until=lambda b: b["call"].name == "finish", at_most=5)
    s += rt.assistant(rt.gen("summary", 9))
    return last


def test_an_agent_with_typed_tools_is_one_submission(run: Any) -> None:
    calls = [SEARCH, written("lookup", word="missing"), written("lookup", word="w"), written("finish", answer="42")]
    result = run({"call": calls, "summary": "done"}, agent, question="What?")
    assert result.breaks == ()
    assert [each.name for each in result["call"]] == ["search", "lookup", "lookup", "finish"]
    assert [message["content"] for message in result.messages if message["role"] == "tool"] == [
        '{"found": ["rivers", "rivers", "rivers"]}',
        "Error: KeyError: 'missing'",
        "w: a word",
        "42",
    ]
    assert len(SEEN) == 1
    assert result.error is None


def test_names_and_arguments_of_calls_are_computed_in_the_graph(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[search, lookup])
        call = s["call"]
        s += rt.text(call.name, "/", call.arguments["query"], "/", call.args["query"].upper())
        s += rt.gen("end", 5)

        def searching(b: rt.State) -> Any:
            b += rt.text(" limit ", call.args["limit"], call.args["word"])
            b += rt.gen("inner", 5)

        rt.switch(call.name, {"lookup": "no"}, default=searching)

    result = run({"call": SEARCH}, ask, on_error="result")
    assert "search/rivers/RIVERS" in result.text()
    assert result.breaks != ()  # "query" is no argument of all tools
    assert isinstance(result.error, rt.ApplyError)  # there is no word
    assert "'word'" in str(result.error)


SCHEMA = {"name": "remote", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}


def test_tools_without_functions_are_no_answer_to_the_model(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[finish, SCHEMA])
        return rt.call(s["call"], on_error="text")

    assert run({"call": written("finish", answer="a")}, ask).value == "a"
    error = run({"call": written("remote", x=3)}, ask, on_error="result").error
    assert isinstance(error, rt.CallError)
    assert "'remote' was given as a schema" in str(error)

    @rt.program
    def only(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[SCHEMA])
        return rt.call(s["call"])

    with pytest.raises(rt.TraceError, match=r"test_control_tools.py:\d+: rt.call\(\): the tools remote were given as"):
        run({}, only)


def test_waiting_for_a_call_inside_a_loop_names_the_way_without(run: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        def step(b: rt.State) -> Any:
            b += rt.gen("call", 80, tools=[finish])
            return b["call"].run()

        rt.repeat(step, at_most=2)

    with pytest.raises(rt.TraceError, match=r"call functions and tools with rt\.call"):
        run({}, ask)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s: rt.call(s["text"]), "is not a tool call"),
        (lambda s: rt.call(s["call"], 3), "expected no arguments after a tool call"),
        (lambda s: rt.call(len, "x", on_error="ignore"), "on_error"),
        (lambda s: rt.call(s["call"].name), "is not a tool call"),
    ],
)
def test_mistakes_are_refused_where_they_are_written(use: Any, message: str) -> None:
    @rt.program
    def wrong(s: rt.State) -> None:
        s += rt.gen("call", 80, tools=[finish])
        s += rt.gen("text", 5)
        use(s)

    with ScriptedRuntime() as runtime, pytest.raises(rt.RtlangError, match=message):
        wrong.run(runtime=runtime)


def test_a_call_that_the_body_has_read_can_be_a_node_too() -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("call", 80, tools=[finish])
        return rt.call(rt.value(s["call"]))

    with ScriptedRuntime({"call": written("finish", answer="x")}) as runtime:
        result = ask.run(runtime=runtime)
    assert result.value == "x"
    assert len(result.breaks) == 1
