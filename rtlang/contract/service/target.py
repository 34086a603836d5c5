"""The interface shared by local and remote runtimes.

A program submits a graph and receives events, from an engine thread in this process or over a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rtlang.contract.events import Event
from rtlang.contract.graph.checks import NodeChecks, check_inputs
from rtlang.contract.request_graph import Node, RequestGraph
from rtlang.contract.runs.known import ContinueFrom, Known, check_continue_from
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions

Listener = Callable[[Event], None]
"""Called with each event of a graph, in order, on a thread of the runtime. Must return quickly and must not raise."""


class GraphRun(Protocol):
    """A submitted graph."""

    @property
    def graph_id(self) -> int:
        """Unique within its runtime."""

    def extend(self, nodes: Sequence[Node]) -> None:
        """Add nodes to a graph that was submitted with is_open=True.

        Raises:
            GraphError: the nodes are invalid or the graph is closed. The graph is unchanged.
            OverloadError: the queue is full. The graph is unchanged; the call may be repeated.
            EngineDeadError, ConnectionLostError: the runtime is closed or lost.
        """

    def resolve(self, node_id: int, value: Any) -> None:
        """Answer a `CallRequested` event with the value of the call. Only the first answer counts; the others are ignored.

        Raises:
            ParameterError: the value is not plain data, or too large.
        """

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a requested call fail, with the code of an error ("call" for CallError), its message and its facts."""

    def grant(self, num_tokens: int) -> None:
        """Add credit to a graph that was submitted with a limit; see `RunOptions.credit`. Ignored by other graphs.

        Raises:
            ParameterError: the number is negative or too large.
        """

    def close(self) -> None:
        """Declare that no more nodes follow: the graph ends when its nodes have ended. Idempotent."""

    def cancel(self) -> None:
        """Cancel unfinished nodes; GraphFailed(AbortedError) follows unless the graph has already ended. Idempotent."""


class ResumableRun(GraphRun, Protocol):
    """A submitted graph of a target that takes results of earlier runs."""

    def extend(
        self, nodes: Sequence[Node], *, known: Known | None = None, continue_from: ContinueFrom | None = None
    ) -> None:
        """See `GraphRun.extend`; `known` and `continue_from` are results of these nodes, as in `RunOptions`."""


class ForwardedRun:
    """A graph run that hands everything on to another one, `run`, which its subclasses set; they change single methods."""

    run: GraphRun

    @property
    def graph_id(self) -> int:
        return self.run.graph_id

    def resolve(self, node_id: int, value: Any) -> None:
        self.run.resolve(node_id, value)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        self.run.reject(node_id, code, message, facts)

    def grant(self, num_tokens: int) -> None:
        self.run.grant(num_tokens)

    def close(self) -> None:
        self.run.close()

    def cancel(self) -> None:
        self.run.cancel()


class Target(Protocol):
    """A runtime that executes graphs."""

    @property
    def is_alive(self) -> bool:
        """Whether graphs can be submitted: False once the runtime is closed or its engine or connection is lost. Thread-safe."""

    @property
    def tool_format(self) -> str | None:
        """The name of the format in which the model writes tool calls; None if its chat template shows none. Loads the model if needed."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that options of a run may need here. A target that wraps another one has at most its abilities.

        With `Ability.KNOWN`, `model_identity` is a digest of what determines the model's outputs: weights, tokenizer and number format.
        """

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> GraphRun:
        """Submit a graph. Once accepted, exactly one final event reaches the listener, whatever fails.

        Callers pass `options` by its name, so that a wrapper may hand it on among other keywords.

        Raises:
            GraphError: the graph is invalid, needs more than the principal may ever use, or an input is missing or unknown; or an option
                needs an ability that the target lacks.
            OverloadError: the queue is full, or the principal has used up what it may use now.
            EngineDeadError, ConnectionLostError: the runtime is closed or lost.
        """

    def close(self) -> None:
        """Cancel all graphs and free all resources. Idempotent."""


def check_run(graph: RequestGraph, options: RunOptions) -> NodeChecks:
    """Check a graph with the options that depend on it. Returns the checks of its nodes, for nodes that are added later.

    Raises:
        GraphError: the graph is invalid, an input is missing or unknown, or tokens are given for a node that cannot go on from them.
    """
    checks = graph.validate()
    check_inputs(graph.inputs, options.inputs)
    check_continue_from(options.continue_from, graph.nodes)
    return checks
