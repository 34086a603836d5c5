"""Programs run against scripts: answers, defaults, failures and what the script saw."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import time
from typing import Any, Literal

import jsonschema
import pytest

import rtlang as rt
from rtlang.testing import Cut, ScriptedRuntime, tool_call


@rt.program
def agent(s: Any, question: str) -> Any:
    s += rt.user(question)
    s += rt.assistant(rt.gen("plan", max_tokens=60))
    s += rt.select("tool", ["search", "none"])
    if s["tool"] == "search":
        for number in range(2):
            with s.scope(f"round{number}"):
                s += rt.gen("step", type=Literal["go", "stop"], max_tokens=4)
    forks = s.fork(2)
    for number, fork in enumerate(forks):
        fork += f" {number}:"
        fork += rt.gen("tip", max_tokens=20)
    forks.join()
    return s["tip"]


def test_answers_by_name_reach_the_program_and_the_prompts_are_seen() -> None:
    script = {"plan": lambda prompt: prompt.upper(), "tool": "search", "step": ["go", "stop"], "tip": ["a", "b"]}
    with ScriptedRuntime(script) as runtime:
        result = agent.run("Why?", runtime=runtime)
        assert result["plan"] == "USER: WHY?\nASSISTANT: "
        assert (result["round0.step"], result["round1.step"]) == ("go", "stop")
        assert sorted(result.value) == ["a", "b"]
        assert "searchgostop" in runtime.prompts("tip")[0]
        assert runtime.prompts("plan") == ["User: Why?\nAssistant: "]
        assert runtime.count("step") == 2
        assert runtime.prompts("tip")[0].endswith((" 0:", " 1:"))
        assert [request.name for request in runtime.requests][:2] == ["plan", "tool"]
        assert not result.meta("plan").is_replayed
        assert result.meta("tool").probabilities["search"] > 0.5  # type: ignore[index]
        runtime.assert_all_used()


def test_another_branch_leaves_answers_unused_and_says_which() -> None:
    with ScriptedRuntime({"tool": 1, "step": "go", "tip": ["a", "b", "c"], "plam": "x"}) as runtime:
        agent.run("Why?", runtime=runtime)
        with pytest.raises(
            AssertionError, match=r"'step', 'tip' \(1 of 3 answers\), 'plam'; the program asked for 'plan'"
        ):
            runtime.assert_all_used()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 7}}, "required": ["a"]},
        {"type": "array", "items": {"enum": ["x", "yy"]}, "minItems": 2},
        {"type": "string", "pattern": "^[a-c]{3}$"},
        {"type": "string", "format": "date"},
        {"anyOf": [{"type": "null"}, {"const": "long"}]},
    ],
)
def test_default_answers_satisfy_the_schema(schema: dict[str, Any]) -> None:
    @rt.program
    def one(s: Any) -> None:
        s += "Value:"
        s += rt.gen("x", schema=schema, max_tokens=50)

    with ScriptedRuntime() as runtime:
        text = one.run(runtime=runtime).text("x")
    jsonschema.validate(json.loads(text), schema, format_checker=jsonschema.FormatChecker())


def test_default_answers_match_regexes_and_choices() -> None:
    @rt.program
    def two(s: Any) -> None:
        s += rt.gen("x", regex="[0-9]{3}(-[a-z]+)?", max_tokens=50)
        s += rt.gen("y", choices=["red", "blue"], max_tokens=50)

    with ScriptedRuntime() as runtime:
        result = two.run(runtime=runtime)
    assert re.fullmatch("[0-9]{3}(-[a-z]+)?", result["x"])
    assert result["y"] in ("red", "blue")


def test_an_answer_that_the_constraint_forbids_fails_and_says_where() -> None:
    with ScriptedRuntime({"step": "gone"}) as runtime:
        error = agent.run("Why?", runtime=runtime, on_error="result").error
        assert isinstance(error, rt.InvalidValueError)
        assert "after 'go' follows 'ne'" in error.message
    with ScriptedRuntime({"step": "gone"}, checks=False) as runtime:
        assert agent.run("Why?", runtime=runtime, on_error="result").text("round0.step") == "gone"


@pytest.mark.parametrize("raised", [rt.OverloadError("full", 0.1), rt.NumericsError("nan"), ValueError("odd")])
def test_exceptions_fail_their_node_and_its_dependants_only(raised: Exception) -> None:
    @rt.program
    def two(s: Any) -> None:
        one, other = s.fork(2)
        one += "a"
        one += rt.gen("bad", max_tokens=5)
        one += rt.gen("behind", max_tokens=5)
        other += "b"
        other += rt.gen("good", max_tokens=5)

    with ScriptedRuntime({"bad": raised, "good": "fine"}) as runtime:
        result = two.run(runtime=runtime, on_error="result")
    assert result.error is not None
    assert runtime.count("behind") == 0
    assert runtime.count("good") == 1
    expected = type(raised) if isinstance(raised, rt.RtlangError) else rt.RequestError
    assert isinstance(result.error, expected)


@pytest.mark.parametrize(
    ("answer", "options", "expected", "match"),
    [
        ("12, 34", {"regex": r"\d+(, \d+)*", "stop": ", "}, "12", ", "),
        ('"a, b"', {"schema": {"type": "string"}, "stop": ", "}, '"a, b"', None),
        ("12, 34", {"stop_regex": r"[a-z]|, (?=3)"}, "12", r"[a-z]|, (?=3)"),
        ("ab,cd", {"stop": ["cd", ",c"]}, "ab", ",c"),
        ("ab,cd", {"stop": ",", "include_stop_str_in_output": True}, "ab,", ","),
        ("a,b,c", {"stop": ",", "min_tokens": 3}, "a,b", ","),
        ("ab", {"max_tokens": 0}, "", None),
    ],
)
def test_answers_end_where_the_engine_would_end_them(
    answer: str, options: dict[str, Any], expected: str, match: str | None
) -> None:
    @rt.program
    def ask(s: rt.State) -> None:
        s += rt.gen("x", **options)

    with ScriptedRuntime({"x": answer}) as scripted:
        found = ask.run(runtime=scripted)
    assert (found.text("x"), found.meta("x").stop_match) == (expected, match)
    with rt.Runtime("rtlang:tiny") as runtime:
        forced = [*map(ord, answer)]
        tokens = [runtime.tokenizer.encode(chr(each), is_start=False)[-1] for each in forced]

        def force(token_ids: list[int], logits: Any) -> Any:
            logits[:] = -1e9
            logits[(tokens[len(token_ids) :] or [0])[0]] = 0.0
            return logits

        @rt.program
        def forced_text(s: rt.State) -> None:
            budget = {"max_tokens": len(tokens)} | options
            s += "x" + rt.gen("x", logits_processors=[force], ignore_eos=True, **budget)

        real = forced_text.run(runtime=runtime)
    assert (real.text("x"), real.meta("x").stop_match) == (expected, match)


def test_stops_and_marks_cut_answers_and_max_tokens_does_not() -> None:
    @rt.program
    def cut(s: Any) -> None:
        s += rt.gen("line", max_tokens=50, stop="\n")
        s += rt.gen("short", max_tokens=3)
        s += rt.gen("many", n=3, max_tokens=9)

        s += rt.gen("default", max_tokens=3)
        s += rt.gen("marked", max_tokens=3)

    answers = {"line": Cut("one\ntwo"), "short": "abcdef", "many": ["x", "y", "z"], "marked": Cut("two wor")}
    with ScriptedRuntime(answers) as runtime:
        result = cut.run(runtime=runtime)
        spent = cut.run(runtime=runtime, budget=rt.Budget(tokens=60), outputs=["short"])
    assert (result["line"], result["short"], result["many"]) == ("one", "abcdef", ["x", "y", "z"])
    assert (result["default"], result["marked"]) == ("<default>", "two wor")
    reasons = {name: result.meta(name).finish_reason for name in ("line", "short", "default", "marked")}
    assert reasons == dict.fromkeys(reasons, rt.FinishReason.STOP) | {"marked": rt.FinishReason.LENGTH}
    assert spent["short"] == "abc"
    assert spent.meta("short").finish_reason is rt.FinishReason.LENGTH


def test_too_few_answers_are_an_error() -> None:
    with ScriptedRuntime({"tip": ["only one"]}) as runtime:
        error = agent.run("Why?", runtime=runtime, on_error="result").error
    assert isinstance(error, rt.RequestError)
    assert "1 answers for 'tip', and this is request 2" in error.message


def test_delays_and_deadlines() -> None:
    with ScriptedRuntime(delay_s={"plan": 30.0}) as runtime:
        started = time.monotonic()
        error = agent.run("Why?", runtime=runtime, deadline_s=0.2, on_error="result").error
        assert isinstance(error, rt.DeadlineError)
        assert time.monotonic() - started < 10
    with ScriptedRuntime(delay_s=0.05) as runtime:
        started = time.monotonic()
        agent.run("Why?", runtime=runtime)
        assert time.monotonic() - started >= 0.2  # plan, tool, two steps; the tips at the same time


def test_closing_ends_what_runs() -> None:
    runtime = ScriptedRuntime(delay_s=30.0)
    stream = agent.stream("Why?", runtime=runtime)
    runtime.close()
    with pytest.raises((rt.AbortedError, rt.EngineDeadError), match="closed"):  # the graph may not be submitted yet
        list(stream)


def test_a_batch_and_an_async_program() -> None:
    @rt.program
    async def ask(s: Any, x: str) -> Any:
        s += x
        s += rt.gen("y", max_tokens=9)
        return await s["y"]

    with ScriptedRuntime({"y": lambda prompt, request: f"{prompt}{request.node.params.max_tokens}"}) as runtime:
        assert [each.value for each in ask.run_batch([{"x": "a"}, {"x": "b"}], runtime=runtime)] == ["a9", "b9"]


def test_it_needs_no_torch() -> None:
    code = "import sys, rtlang.testing; rtlang.testing.ScriptedRuntime().close(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr


def test_a_budget_of_the_run_cuts_answers_and_ends_slow_ones() -> None:
    @rt.program
    def drafts(s: rt.State) -> None:
        forks = s.fork(2)
        forks += lambda number: f"{number}:" + rt.gen("draft", 90)
        forks.join()
        s += "so" + rt.gen("last", 90)

    answers: dict[str | None, Any] = {"draft": "x" * 40, "last": "y" * 40}
    with ScriptedRuntime(answers) as runtime:
        result = drafts.run(runtime=runtime, budget=rt.Budget(tokens=90), on_error="result")
        assert sum(map(len, [*result["draft"], result["last"]])) == result.usage.completion_tokens == 90
        assert result.cut
        again = drafts.run(runtime=runtime, budget=rt.Budget(tokens=2), on_error="result")
        assert isinstance(again.error, rt.SpentError)
    with ScriptedRuntime(answers, delay_s={"last": 30.0}) as runtime:
        result = drafts.run(runtime=runtime, budget=rt.Budget(seconds=0.2), on_error="result")
    assert isinstance(result.error, rt.SpentError)
    assert result["draft"] == ["x" * 40] * 2


def test_a_list_of_answers_is_used_in_the_order_of_forks() -> None:
    @rt.program
    def tips(s: rt.State) -> Any:
        s += "Tips:"
        forks = s.fork(4)
        forks += rt.gen("tip", 5)
        forks.join()
        return s["tip"]

    for passes in (False, "-merge"):
        with ScriptedRuntime({"tip": list("abcd")}) as runtime:
            assert tips.run(runtime=runtime, passes=passes).value == list("abcd")


def test_values_and_tool_calls_are_answers() -> None:
    @dataclasses.dataclass
    class Point:
        x: int
        y: int

    def move(to: list[int], fast: bool = False) -> str:
        """Move."""
        return f"moved to {to}"

    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("point", schema=Point, max_tokens=40) + rt.gen("number", type=float, max_tokens=9)
        s += rt.gen("call", tools=[move], max_tokens=60)
        s += rt.gen("calls", tools=[move], parallel=True, max_tokens=90)
        return s["point"], s["number"], rt.call(s["call"]), rt.length(s["calls"])

    answers = {
        "point": lambda prompt: Point(1, 2),
        "number": 2.5,
        "call": tool_call("move", to=[3, 4]),
        "calls": tool_call("move", to=[3]) + "\n" + tool_call("move", to=[4], fast=True),
    }
    with ScriptedRuntime(answers) as runtime:
        assert body.run(runtime=runtime).value == (Point(1, 2), 2.5, "moved to [3, 4]", 2)
    for wrong in (None, object(), {"a": {1, 2}}):
        with ScriptedRuntime({"x": wrong}) as runtime, pytest.raises(rt.ParameterError, match="answers"):
            rt.program(lambda s: s.__iadd__(rt.gen("x")) and None).run(runtime=runtime)
