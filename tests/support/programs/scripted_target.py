"""A target that does one thing per `step`, on the caller's thread: for tests of what carries its events.

Each `step` gives every running graph one piece of text. Cancelling takes effect at the next step, as in an engine, and the graph
then ends in its one final event. Nothing happens between steps, so a test says exactly what is under way when.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from rtlang.contract.errors import AbortedError, GraphError, RtlangError
from rtlang.contract.events import Completion, GraphFailed, GraphFinished, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Generate, Node, RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener


class ScriptedRun:
    """A graph that generates `max_tokens` pieces and ends. Public for tests to read."""

    def __init__(
        self, graph_id: int, graph: RequestGraph, listener: Listener, inputs: Mapping[str, str], is_open: bool
    ) -> None:
        self._graph_id, self.graph, self.listener, self.inputs = graph_id, graph, listener, dict(inputs)
        self.is_open, self.was_cancelled, self.has_ended = is_open, False, False
        self.nodes = list(graph.nodes)
        self.pieces: list[str] = []
        self.deadline_s: float | None = None
        self.priority = 0
        self.principal: Principal | None = None
        self.num_granted = 0
        self.credit: int | None = None
        self.reports_progress = False

    @property
    def graph_id(self) -> int:
        return self._graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        if not self.is_open:
            raise GraphError(None, "graph", "the graph is closed")
        RequestGraph(tuple(nodes), self.graph.inputs).validate({node.node_id: node for node in self.nodes})
        self.nodes.extend(nodes)

    def resolve(self, node_id: int, value: object) -> None:
        raise NotImplementedError("this target asks for no host calls")

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError("this target asks for no host calls")

    def grant(self, num_tokens: int) -> None:
        self.num_granted += num_tokens

    def close(self) -> None:
        self.is_open = False

    def cancel(self) -> None:
        self.was_cancelled = True

    def advance(self, piece: str) -> None:
        """Tell one piece, or the end."""
        if self.was_cancelled:
            self.finish_with(AbortedError("the graph was cancelled"))
            return
        node = next(node for node in self.nodes if isinstance(node, Generate))
        if len(self.pieces) < node.params.max_tokens:
            self.pieces.append(piece)
            self.listener(TextDelta(self._graph_id, node.node_id, 0, piece, (len(self.pieces),)))
        elif not self.is_open:
            self.has_ended = True
            text, usage = "".join(self.pieces), Usage(1, 0, len(self.pieces))
            done = Completion(text, tuple(range(1, len(self.pieces) + 1)), FinishReason.LENGTH)
            name = node.name or "text"
            self.listener(NodeFinished(self._graph_id, node.node_id, node.name, (done,), usage, Timing()))
            self.listener(GraphFinished(self._graph_id, {name: text}, usage))

    def finish_with(self, error: RtlangError) -> None:
        """End the graph as a whole."""
        self.has_ended = True
        self.listener(GraphFailed(self._graph_id, error))


class ScriptedTarget:
    """Attributes: runs, every graph accepted so far; refusal, what the next submits raise; was_closed."""

    def __init__(self) -> None:
        self.runs: list[ScriptedRun] = []
        self.refusal: Exception | None = None
        self.was_closed = False
        self._arrived = threading.Condition()

    tool_format: str | None = None
    abilities = frozenset({Ability.CREDIT, Ability.PROGRESS, Ability.CONTINUE})

    @property
    def is_alive(self) -> bool:
        return not self.was_closed

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> ScriptedRun:
        options.check_abilities(self.abilities)
        if self.refusal is not None:
            raise self.refusal
        graph.validate()
        if set(options.inputs) != set(graph.inputs):
            raise GraphError(None, "inputs", "one text for each input is needed")
        with self._arrived:
            run = ScriptedRun(len(self.runs) + 1, graph, listener, options.inputs, options.is_open)
            run.priority, run.deadline_s, run.principal = options.priority, options.deadline_s, options.principal
            run.credit, run.reports_progress = options.credit, options.reports_progress
            for choices in options.continue_from.values():
                run.pieces = [f"<{number - 1}>" for number in choices[0]]  # token k is the piece of step k - 1
            self.runs.append(run)
            self._arrived.notify_all()
        return run

    def close(self) -> None:
        self.was_closed = True

    def wait_for(self, num_runs: int) -> None:
        """Wait until so many graphs were accepted."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.runs) >= num_runs, 20.0)

    @property
    def running(self) -> list[ScriptedRun]:
        """The graphs that have not ended."""
        return [run for run in self.runs if not run.has_ended]

    def step(self, piece: str = "x") -> int:
        """One piece, or the end, for every running graph; how many there were."""
        running = self.running
        for run in running:
            run.advance(piece)
        return len(running)

    def finish(self) -> None:
        """Step until nothing runs."""
        while self.step():
            pass
