"""A runtime without a model: graphs, failures and ends are those of the runtime; a function ends the generations."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rtlang.contract.errors import AbortedError, EngineDeadError, GraphError
from rtlang.contract.events import Completion, GraphFailed, GraphFinished, NodeFinished, Timing
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Generate, RequestGraph, RoleEnd, RoleStart, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.scripted_runtime import AskedNode, ModelFreeRuntime

GRAPH = RequestGraph((Text(0, None, (RoleStart("user"), "hé", RoleEnd())), Generate(1, 0, "x", SamplingParams())))


def end(asked: AskedNode) -> bool:
    if isinstance(asked.node, Text):
        return False
    text = f"[{asked.prompt}]"
    completion = Completion(text, tuple(map(ord, text)), FinishReason.STOP)
    asked.end(KnownOutcome(NodeFinished(0, 0, "x", (completion,), Usage(), Timing())))
    return True


def run(runtime: ModelFreeRuntime, graph: RequestGraph, **options: Any) -> Any:
    events: list[Any] = []
    done = threading.Event()

    def listen(event: Any) -> None:
        events.append(event)
        if isinstance(event, (GraphFinished, GraphFailed)):
            done.set()

    runtime.submit(graph, listen, RunOptions(**options))
    assert done.wait(20)
    return events


def test_the_prompt_is_the_text_so_far() -> None:
    with ModelFreeRuntime(end) as runtime:
        assert run(runtime, GRAPH)[-1].values == {"x": "[User: hé\n]"}


def test_answers_from_another_thread_and_later() -> None:
    def later(asked: AskedNode) -> bool:
        if isinstance(asked.node, Text):
            return False
        asked.later(0.01, lambda: threading.Thread(target=end, args=(asked,)).start())
        return True

    with ModelFreeRuntime(later) as runtime:
        assert run(runtime, GRAPH)[-1].values == {"x": "[User: hé\n]"}


def test_closing_ends_graphs_and_refuses_more() -> None:
    runtime = ModelFreeRuntime(lambda asked: not isinstance(asked.node, Text))  # never answers
    events: list[Any] = []
    runtime.submit(GRAPH, events.append)
    runtime.close()
    assert isinstance(events[-1].error, AbortedError)
    assert not runtime.is_alive
    with pytest.raises(EngineDeadError):
        runtime.submit(GRAPH, events.append)


def test_inputs_are_checked() -> None:
    with ModelFreeRuntime(end) as runtime, pytest.raises(GraphError, match="inputs"):
        runtime.submit(GRAPH, print, RunOptions(inputs={"q": "x"}))
