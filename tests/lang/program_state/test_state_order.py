"""Texts with a free order: what is shared comes first, and the program sees the order that was used."""

from __future__ import annotations

from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import Ref
from tests.compiler.test_pipeline import of_prompt
from tests.support.programs.fake_target import FakeTarget

DOCUMENT = "A document that all runs share. " * 3


@rt.program
def ask(s: Any, question: str, document: str) -> Any:
    s += rt.system("Answer.")
    s += rt.user("Question: ", question, rt.text("\nDocument: ", document, "\n"), order="free")
    s += rt.assistant(rt.gen("answer"))
    return s.messages()


INPUTS = [{"question": f"number {i}?", "document": DOCUMENT} for i in range(3)]


def prompts(target: FakeTarget) -> list[str]:
    return [
        "".join(part for node in run.nodes.values() for part in getattr(node, "parts", ()) if isinstance(part, str))
        for run in target.runs
    ]


def test_a_batch_puts_what_its_runs_share_first_and_tells_so() -> None:
    with FakeTarget(of_prompt) as target:
        results = ask.run_batch(INPUTS, runtime=target)
    for result, question in zip(results, INPUTS, strict=True):
        content = f"Question: \nDocument: {DOCUMENT}\n{question['question']}"
        assert result.messages[1]["content"] == content
        assert result.value[1]["content"] == content
        assert content in result.graph.nodes[0].parts


def test_without_the_pass_the_written_order_stays() -> None:
    with FakeTarget(of_prompt) as target:
        results = ask.run_batch(INPUTS, runtime=target, passes="-reorder")
    assert results[1].messages[1]["content"] == f"Question: number 1?\nDocument: {DOCUMENT}\n"


def test_a_run_alone_keeps_the_written_order() -> None:
    with FakeTarget(of_prompt) as target:
        result = ask.run(**INPUTS[0], runtime=target)
    assert result.messages[1]["content"].startswith("Question: number 0?")


def test_forks_share_what_they_have_in_common() -> None:
    @rt.program
    def judge(s: Any) -> None:
        s += rt.system("Judge.")
        forks = s.fork(3)
        forks += lambda i: rt.text(f"Rule {i}. ", "The same text. ", order="free") + rt.gen("verdict")

    with FakeTarget(of_prompt) as target:
        result = judge.run(runtime=target)
        explanation = rt.explain(judge, runtime=target)
    assert result.forks[0][1].text().startswith("Judge.The same text. Rule 1. ")
    assert explanation.savings.reordered_texts == 3


def test_an_order_that_the_program_has_seen_stays() -> None:
    @rt.program
    def looks(s: Any, question: str, document: str) -> Any:
        s += rt.text(question, document, order="free")
        before = s.text()
        s += rt.gen("answer")
        return before

    with FakeTarget(of_prompt) as target:
        results = looks.run_batch(INPUTS, runtime=target)
        assert results[0].value == f"number 0?{DOCUMENT}"
        assert prompts(target)[0] == f"number 0?{DOCUMENT}"


def test_generated_values_come_last_and_generations_are_refused() -> None:
    @rt.program
    def quotes(s: Any, document: str) -> Any:
        s += rt.gen("draft")
        s += rt.text(s["draft"], document, order="free")
        s += rt.gen("final")

    with FakeTarget(of_prompt) as target:
        (first, _) = quotes.run_batch([{"document": DOCUMENT}] * 2, runtime=target)
        assert first.graph.nodes[1].parts == (DOCUMENT, Ref(0))
    with pytest.raises(rt.TraceError, match=r"argument 2 of user\(order='free'\) is not text"):
        rt.user("a", rt.gen("x"), order="free")
    with pytest.raises(rt.ParameterError, match="order"):
        rt.text("a", order="any")  # type: ignore[arg-type]
