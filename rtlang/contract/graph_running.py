"""Runs a whole graph on a runtime and waits for its values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rtlang.contract.errors import DependencyError, ParameterError, RtlangError, described
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed


class Runs(Protocol):
    """The part of a runtime that runs graphs; see `rtlang.contract.target.Target`."""

    def submit(
        self, graph: Any, listener: Callable[[Event], None], *, inputs: Mapping[str, str] | None = None
    ) -> Any: ...


def run_graph(
    graph: Any,
    runtime: Runs,
    inputs: Mapping[str, str] | None,
    functions: Mapping[str, Callable[..., Any]],
    **options: Any,
) -> dict[str, Any]:
    """See `RequestGraph.run`."""
    is_submitted, ended = threading.Event(), threading.Event()
    failures: list[RtlangError] = []
    finals: list[GraphFinished | GraphFailed] = []
    runs: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, CallRequested):
            threading.Thread(target=answer, args=(event,), daemon=True).start()
        elif isinstance(event, NodeFailed) and not isinstance(event.error, DependencyError):
            failures.append(event.error)
        elif isinstance(event, (GraphFinished, GraphFailed)):
            finals.append(event)
            ended.set()

    def answer(event: CallRequested) -> None:
        is_submitted.wait()
        run = runs[0]
        try:
            function = functions.get(event.function)
            if function is None:
                run.reject(event.node_id, "call", "graph.run() got no function of this name")
            else:
                run.resolve(event.node_id, function(*event.args))
        except ParameterError as error:
            run.reject(event.node_id, "call", error.message)
        except BaseException as error:
            run.reject(event.node_id, "call", described(error))

    runs.append(runtime.submit(graph, listen, inputs=inputs, **options))
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
