"""Nodes of finished runs by path, and runs in which one outcome is another one."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConstraintError, ParameterError, TraceError
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as started:
        yield started


class Plan(BaseModel):
    goal: str
    steps: int


def answers(prompt: str) -> str:
    """A text that depends on the whole prompt."""
    return f"<{sum(map(ord, prompt)) % 997}>"


@pytest.fixture
def scripted() -> Iterator[ScriptedRuntime]:
    with ScriptedRuntime(default=answers) as found:
        yield found


calls: list[str] = []


def search(query: str) -> str:
    calls.append(query)
    return f"found {query}"


@rt.program
def agent(s: Any, question: str) -> Any:
    s += rt.user("Q: ", question)
    s += rt.assistant(rt.gen("plan", temperature=1.0))
    seen, fixed = rt.call(search, s["plan"]), rt.call(search, "fixed")
    s += rt.user("Results: ", seen, " and ", fixed)
    for index, fork in enumerate(s.fork(2)):
        fork += rt.user("tip ", index)
        fork += rt.assistant(rt.gen("tip", temperature=1.0), rt.gen("sure", type=bool))
    s += rt.assistant(rt.gen("end", n=2, temperature=1.0), rt.select("best", ["a", "b"]))
    return s["plan"]


PATHS = ("plan", "search()", "search()#2", "fork[0]/tip", "fork[0]/sure", "fork[1]/tip", "fork[1]/sure", "end", "best")


def test_a_node_shows_its_text_prompt_and_neighbours(scripted: ScriptedRuntime) -> None:
    result = agent.run("why", runtime=scripted)
    assert result.paths == PATHS
    node = result.at("fork[1]/tip")
    assert (node.path, node.name, node.kind, node.error) == ("fork[1]/tip", "tip", "generation", None)
    assert node.text == node.value == result.text("tip")[1] == result.forks[0][1].text("tip")
    assert node.meta.path == "fork[1]/tip"
    plan = result.text("plan")
    assert node.prompt == f"Q: why{plan}Results: found {plan} and found fixedtip 1"
    assert node.messages[-2:] == [{"role": "user", "content": "tip 1"}, {"role": "assistant", "content": ""}]
    assert node.parents == ("plan", "search()", "search()#2")
    assert node.dependants == ("fork[1]/sure",)
    assert result.at("plan").dependants == (
        "search()",
        *(path for path in PATHS[3:] if path.endswith("tip")),
        "end",
        "best",
    )
    assert (result.at("search()").kind, result.at("search()").value) == ("call", f"found {plan}")
    assert result.at("best").kind == "choice"
    assert result.at("end").text == [result.at("end[0]").text, result.at("end[1]").text]
    assert [each.path for each in result.meta("end")] == ["end[0]", "end[1]"]


def test_unknown_paths_list_those_like_them(scripted: ScriptedRuntime) -> None:
    result = agent.run("why", runtime=scripted)
    with pytest.raises(KeyError, match=r"no node has the path 'tip'; paths: fork\[0\]/tip, fork\[1\]/tip"):
        result.at("tip")
    for path in ("end[2]", "plan[0]x", "", "fork[2]/tip"):
        with pytest.raises(KeyError, match="no node has the path"):
            result.at(path)


def test_a_failed_node_shows_its_error() -> None:
    with ScriptedRuntime({"plan": ConstraintError("too hard")}, default="x") as runtime:
        result = agent.run("why", runtime=runtime, on_error="result")
    assert "too hard" in str(result.at("plan").error)
    with pytest.raises(ConstraintError):
        assert result.at("plan").value


def test_an_edit_computes_what_depends_on_it(scripted: ScriptedRuntime) -> None:
    calls.clear()
    result = agent.run("why", runtime=scripted)
    assert sorted(calls) == sorted([result["plan"], "fixed"])
    before = len(scripted.requests)
    edited = result.at("fork[1]/tip").edit(text="new")
    assert [request.name for request in scripted.requests[before:]] == ["sure"]
    assert len(calls) == 2
    changed = [path for path in PATHS if edited.at(path).text != result.at(path).text]
    assert changed[0] == "fork[1]/tip"
    assert set(changed) <= {"fork[1]/tip", "fork[1]/sure"}
    assert edited.at("fork[1]/tip").meta.is_replayed
    assert edited.usage.completion_tokens == len(edited.text("sure")[1])


def test_calls_run_again_only_behind_an_edit(scripted: ScriptedRuntime) -> None:
    calls.clear()
    result = agent.run("why", runtime=scripted)
    edited = result.at("plan").edit(text="other")
    assert calls[2:] == ["other"]
    assert (edited.value, edited.at("search()").value) == ("other", "found other")
    before = len(scripted.requests)
    of_call = result.at("search()#2").edit(value={"items": [1, None]})
    assert calls[3:] == []
    assert "{'items': [1, None]}" in of_call.at("fork[0]/tip").prompt
    assert {request.name for request in scripted.requests[before:]} == {"tip", "sure", "end", "best"}


@pytest.mark.parametrize("is_edited", [False, True])
def test_an_edit_that_changes_nothing_calls_nothing(is_edited: bool, scripted: ScriptedRuntime) -> None:
    result = agent.run("why", runtime=scripted)
    if is_edited:
        result = result.at("plan").edit(text="other")
    calls.clear()
    same = result.at("plan").edit(text=result["plan"])
    same = same.at("search()").edit(value=same.at("search()").value)
    same = same.at("end[1]").edit(text=same["end"][1])
    assert (calls, same.usage.completion_tokens) == ([], 0)
    assert [same.at(path).text for path in PATHS] == [result.at(path).text for path in PATHS]
    assert not rt.diff(result, same).of("changed")


def test_an_edit_of_an_edited_result_keeps_the_first(scripted: ScriptedRuntime) -> None:
    first = agent.run("why", runtime=scripted).at("fork[0]/tip").edit(text="one")
    second = first.at("fork[1]/tip").edit(text="two")
    assert second.text("tip") == ["one", "two"]
    assert agent.run("why", runtime=scripted, base=second).text("tip") == ["one", "two"]


def test_one_completion_of_several_is_edited(scripted: ScriptedRuntime) -> None:
    result = agent.run("why", runtime=scripted)
    edited = result.at("end[1]").edit(text="mine")
    assert edited.text("end") == [result.text("end")[0], "mine"]
    with pytest.raises(TraceError, match=r"end has 2 completions: edit one of end\[0\] to end\[1\]"):
        result.at("end").edit(text="x")


def typed(s: Any) -> None:
    s += "go " + rt.gen("plan", schema=Plan) + rt.gen("count", type=int) + rt.gen("day", type=date)
    s += rt.gen("kind", type=Literal["a", "b"]) + rt.select("pick", ["x", "y"]) + rt.gen("free")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("plan", Plan(goal='a "b"', steps=3)),
        ("count", -7),
        ("day", date(2024, 2, 29)),
        ("kind", "b"),
        ("pick", "y"),
        ("free", "t"),
    ],
)
def test_values_of_every_type_are_written_as_a_model_writes_them(runtime: rt.Runtime, path: str, value: object) -> None:
    result = rt.program(typed).run(runtime=runtime)
    edited = result.at(path).edit(value=value)
    assert edited.at(path).value == edited[path] == value
    assert edited.names == result.names


@pytest.mark.parametrize(
    ("path", "given", "match"),
    [
        ("plan", {"text": "{}"}, "it is no value of plan"),
        ("count", {"value": "many"}, "it is no value of count"),
        ("pick", {"text": "z"}, "expected one of the choices 'x', 'y'"),
        ("free", {}, "pass either text= or value="),
        ("free", {"text": "a", "value": "b"}, "pass either text= or value="),
        ("free", {"text": 3}, "expected text"),
    ],
)
def test_edits_that_do_not_fit_are_refused(runtime: rt.Runtime, path: str, given: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        rt.program(typed).run(runtime=runtime).at(path).edit(**given)


def test_the_tokens_of_an_edited_text_are_those_of_the_tokenizer(runtime: rt.Runtime) -> None:
    """The oracle is a program that has the text instead of the generation."""

    def generated(s: Any) -> None:
        s += rt.user("Say it.")
        s += rt.assistant(rt.gen("word", max_tokens=4))
        s += rt.user("Again.")
        s += rt.assistant(rt.gen("more", max_tokens=12))

    def written(s: Any) -> None:
        s += rt.user("Say it.")
        s += rt.assistant("Some other words")
        s += rt.user("Again.")
        s += rt.assistant(rt.gen("more", max_tokens=12))

    edited = rt.program(generated).run(runtime=runtime).at("word").edit(text="Some other words")
    expected = rt.program(written).run(runtime=runtime)
    assert edited.meta("word").token_ids == tuple(runtime.tokenizer.encode("Some other words", is_start=False))
    assert edited.text("more") == expected.text("more")
    assert edited.usage.prompt_tokens == expected.usage.prompt_tokens


def test_an_edit_in_a_loop_keeps_the_turns_before_it(scripted: ScriptedRuntime) -> None:
    calls.clear()

    def loop(s: Any) -> None:
        def turn(state: Any) -> Any:
            state += "next " + rt.gen("step")
            found = rt.call(search, state["step"])
            state += found
            return found

        rt.repeat(turn, at_most=3, state=s)
        s += rt.gen("end")

    result = rt.program(loop).run(runtime=scripted)
    assert len(calls) == 3
    assert "repeat[2]/step" in result.paths
    before = len(scripted.requests)
    edited = result.at("repeat[1]/step").edit(text="S")
    assert calls[3:5] == ["S", edited.at("repeat[2]/step").text]
    assert len(calls) == 5
    assert [request.name for request in scripted.requests[before:]] == ["step", "end"]
    assert edited.at("repeat[0]/step").text == result.at("repeat[0]/step").text
    assert edited.at("repeat[2]/step").prompt.endswith("next Sfound Snext ")
    with pytest.raises(TraceError, match="repeat is a loop"):
        result.at("repeat").edit(text="x")


def test_with_a_seed_what_is_computed_again_has_the_noise_of_its_path(runtime: rt.Runtime) -> None:
    @rt.program
    def two(s: Any) -> None:
        s += "go " + rt.gen("a", 4, temperature=1.0) + "x" + rt.gen("b", 8, temperature=1.0)

    first = two.run(runtime=runtime, seed=5)
    edited = first.at("a").edit(text="other").at("a").edit(text=first.text("a"))
    assert edited.text("b") == first.text("b")
    assert edited.usage.completion_tokens > 0


def test_a_coroutine_program_is_edited_in_both_ways(scripted: ScriptedRuntime) -> None:
    @rt.program
    async def program(s: Any) -> Any:
        s += rt.gen("a")
        if await s["a"] == "go":
            s += rt.gen("b")
        return s["a"]

    result = program.run(runtime=scripted)
    assert result.at("a").edit(text="go").names == ("a", "b")
    assert asyncio.run(result.at("a").aedit(text="go")).names == ("a", "b")


def test_a_pickled_result_is_read_and_taken_over_but_not_edited(scripted: ScriptedRuntime) -> None:
    result = agent.run("why", runtime=scripted)
    read = pickle.loads(pickle.dumps(result))
    assert read.paths == result.paths
    for path in PATHS:
        assert (read.at(path).text, read.at(path).value) == (result.at(path).text, result.at(path).value)
        assert read.at(path).prompt == result.at(path).prompt
        assert read.at(path).dependants == result.at(path).dependants
    with pytest.raises(TraceError, match=r"program\.run\(\.\.\., base=result\)"):
        read.at("plan").edit(text="x")
    before = len(scripted.requests)
    again = agent.run("why", runtime=scripted, base=read)
    assert len(scripted.requests) == before
    assert again.at("plan").edit(text="x").value == "x"


def test_an_edit_on_a_server_computes_the_same(runtime: rt.Runtime) -> None:
    with running_server(runtime, ServeConfig(port=0)) as url, rt.connect(url) as remote:
        here, there = (agent.run("why", seed=3, runtime=each) for each in (runtime, remote))
        edits = [each.at("plan").edit(text="a plan") for each in (here, there)]
        assert edits[0].text() == edits[1].text()
        assert edits[0].usage.completion_tokens == edits[1].usage.completion_tokens


def test_a_list_of_runtimes_that_take_nothing_over_is_refused(scripted: ScriptedRuntime, tmp_path: Any) -> None:
    result = agent.run("why", runtime=scripted)
    with (
        rt.record(tmp_path / "x", scripted) as recorder,
        pytest.raises(ParameterError, match=r"rt\.record reads its own"),
    ):
        agent.run("why", runtime=recorder, base=result)
    with pytest.raises(ParameterError, match="expected a result of a run"):
        agent.run("why", runtime=scripted, base="x")
    with pytest.raises(ParameterError, match="a list of results is for run_batch"):
        agent.run("why", runtime=scripted, base=[result])


def test_a_result_of_another_model_is_refused(runtime: rt.Runtime, scripted: ScriptedRuntime) -> None:
    result = agent.run("why", runtime=scripted)
    with pytest.raises(ParameterError, match="computed by model scripted, the runtime serves"):
        agent.run("why", runtime=runtime, base=result)


def test_an_edit_of_a_checked_generation_is_checked() -> None:
    def good(value: str) -> None:
        if "good" not in value:
            raise ValueError("say good")

    def checked(s: Any) -> Any:
        s += "go " + rt.gen("a", check=good, repair=1)
        s += rt.gen("b")
        return s["a"]

    with ScriptedRuntime({"a": ["bad", "good one", "good two"]}, default="text") as scripted:
        result = rt.program(checked).run(runtime=scripted)
        assert (result.at("a").text, result.at("a:value").value, result.value) == ("bad", "good one", "good one")
        before = len(scripted.requests)
        edited = result.at("a").edit(text="also good")
        assert edited.value == "also good"
        assert [request.name for request in scripted.requests[before:]] == ["b"]
        assert result.at("a").edit(text="still bad").value == "good two"
        assert not rt.diff(result, rt.program(checked).run(runtime=scripted, base=result)).computed
