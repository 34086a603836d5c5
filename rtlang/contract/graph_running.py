"""Runs a whole graph on a runtime and waits for its values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rtlang.contract.errors import DependencyError, ParameterError, RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed
from rtlang.contract.graph.host_calls import answer_call
from rtlang.contract.runs.run_options import RunOptions


class Runs(Protocol):
    """The part of a runtime that runs graphs; see `rtlang.contract.service.target.Target`."""

    def submit(self, graph: Any, listener: Callable[[Event], None], options: RunOptions) -> Any: ...


def run_graph(
    graph: Any,
    runtime: Runs,
    inputs: Mapping[str, str] | None,
    functions: Mapping[str, Callable[..., Any]],
    **options: Any,
) -> dict[str, Any]:
    """See `RequestGraph.run`."""
    if not callable(getattr(runtime, "submit", None)):
        raise ParameterError("runtime", runtime, "expected an rt.Runtime(...) or rt.connect(...)")
    if not isinstance(functions, Mapping) or not all(map(callable, functions.values())):
        raise ParameterError("functions", functions, "expected a mapping of names to functions")
    is_submitted, ended = threading.Event(), threading.Event()
    failures: list[RtlangError] = []
    finals: list[GraphFinished | GraphFailed] = []
    runs: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, CallRequested):
            called = functions.get(event.function)
            function = None if called is None else (lambda args: called(*args))
            answer_call(
                event,
                function,
                submitted,
                unknown="graph.run() got no function of this name",
                context=event.context,
            )
        elif isinstance(event, NodeFailed) and not isinstance(event.error, DependencyError):
            failures.append(event.error)
        elif isinstance(event, (GraphFinished, GraphFailed)):
            finals.append(event)
            ended.set()

    def submitted() -> Any:
        is_submitted.wait()
        return runs[0]

    runs.append(runtime.submit(graph, listen, options=RunOptions(inputs or {}, **options)))
    is_submitted.set()
    try:
        while not ended.wait(0.5):  # so that Ctrl-C is noticed
            pass
    except BaseException:
        runs[0].cancel()
        raise
    final = finals[0]
    if isinstance(final, GraphFailed):
        raise final.error
    if failures:
        raise failures[0]
    return final.values
