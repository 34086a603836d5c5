"""Programs recorded without a run, and prefixes computed ahead."""

from __future__ import annotations

import re

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.testing import ScriptedRuntime


@sgl.function
def few_shot(s: sgl.ProgramState, question: str) -> None:
    s += "Questions and answers.\n"
    s += "Q: What is the capital of France?\nA: Paris\n"
    s += "Q: " + question + "\n"
    s += "A:" + sgl.gen("answer", stop="\n")


def test_a_trace_has_the_graph_of_the_program_with_its_inputs() -> None:
    traced = few_shot.trace()
    assert traced.graph.inputs == ("question",)
    assert traced.variables == ["answer"]
    lines = str(traced).splitlines()
    assert lines[-1].endswith("+ gen('answer')")
    assert any("arg('question')" in line for line in lines)
    given = few_shot.trace(question="Who?")
    assert given.graph.inputs == ()


def test_the_graph_of_a_trace_can_be_run(backend: sgl.Runtime) -> None:
    outcome = few_shot.trace().graph.run(backend.target, {"question": "Where?"})
    assert "\n" not in outcome["answer"]


def test_values_stay_lazy_in_text_and_in_forks() -> None:
    @sgl.function
    def tips(s: sgl.ProgramState) -> None:
        s += "Tips."
        forks = s.fork(2)
        for number in range(2):
            forks[number] += f"Expand tip {number}:" + sgl.gen("tip")
        s += "Tip 1:" + forks[0]["tip"] + "\n"
        s += "Tip 2:" + forks[1]["tip"] + "\n"
        s += sgl.select("best", ["1", "2"]) + sgl.user("In summary" + sgl.gen("summary"))

    lines = str(tips.trace()).splitlines()
    assert any("user_begin()" in line for line in lines)
    assert any("select('best', choices=['1', '2'])" in line for line in lines)


def test_a_traced_program_may_call_another() -> None:
    @sgl.function
    def expand(s: sgl.ProgramState, tip: str) -> None:
        s += "Expand:" + tip + "\n"
        s += sgl.gen("detailed")

    @sgl.function
    def outer(s: sgl.ProgramState, topic: str) -> None:
        s += "A tip for " + topic + ": " + sgl.gen("tip", stop="\n")
        s += "In detail: " + expand(tip=s["tip"])["detailed"] + sgl.gen("summary")

    graph = outer.trace().graph
    assert sum(isinstance(node, type(graph.nodes[-1])) for node in graph.nodes) == 3

    # In a run it runs on the same backend.
    scripted = ScriptedRuntime({"tip": "t", "detailed": "d", "summary": "s"}, checks=False)
    assert outer.run(topic="x", backend=scripted).text() == "A tip for x: tIn detail: ds"


@pytest.mark.parametrize(
    "body",
    [
        lambda s, question: s.__iadd__(f"I ask {question}"),
        lambda s, question: s.__iadd__("a" + sgl.gen("x")).__iadd__(s["x"].upper() if s["x"] == "b" else "c"),
        lambda s, question: (s.__iadd__("a" + sgl.gen("x")), s.text()),
    ],
)
def test_what_needs_a_text_cannot_be_traced(body: object) -> None:
    for kind in (rt.TraceError, TypeError):
        with pytest.raises(kind) as caught:
            sgl.function(body).trace()  # type: ignore[call-overload]
        assert ":" in str(caught.value)


def test_the_last_node_prints_the_graph_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    @sgl.function
    def tips(s: sgl.ProgramState, topic: str) -> None:
        s += "Tips for " + topic + ":"
        forks = s.fork(2)
        forks += " one" + sgl.gen("tip")
        forks.join()
        s += "A: " + forks[0]["tip"] + "B: " + forks[1]["tip"] + sgl.gen("summary")

    trace = tips.trace()
    trace.last_node.print_graph_dfs()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(str(trace).splitlines())
    assert lines[-1] == str(trace.last_node)
    assert "gen('summary')" in lines[-1]
    known: set[str] = set()
    for line in lines:
        name, _, rest = line.partition(" = ")
        assert set(re.findall(r"%[0-9]+", rest)) <= known
        known.add(name)
    empty = sgl.function(lambda s: None).trace().last_node
    empty.print_graph_dfs()
    assert (str(empty), capsys.readouterr().out) == ("", "")


def test_the_common_prefix_is_computed_before_the_first_argument(backend: sgl.Runtime) -> None:
    @sgl.function
    def long(s: sgl.ProgramState, question: str) -> None:
        s += sgl.system("You are a clerk in a shop. " * 20)
        s += sgl.user("Question: " + question)
        s += sgl.assistant(sgl.gen("answer", max_tokens=2))

    sgl.flush_cache()
    long.cache()
    cached = long.run(question="Open?").get_meta_info("answer")
    assert cached["cached_tokens"] > cached["prompt_tokens"] * 0.7


def test_a_short_prefix_is_not_computed() -> None:
    scripted = ScriptedRuntime({})

    @sgl.function
    def short(s: sgl.ProgramState, question: str) -> None:
        s += "Q: " + question + sgl.gen("answer")

    short.cache(scripted)
    assert scripted.requests == []
