"""The interface shared by local and remote runtimes.

A program submits a graph and receives events, from an engine thread in this process or over a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rtlang.contract.events import Event
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.known import Known
from rtlang.contract.principal import Principal

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
        """Add credit to a graph that was submitted with a limit; see `StreamTarget.submit`. Ignored by other graphs.

        Raises:
            ParameterError: the number is negative or too large.
        """

    def close(self) -> None:
        """Declare that no more nodes follow: the graph ends when its nodes have ended. Idempotent."""

    def cancel(self) -> None:
        """Cancel unfinished nodes; GraphFailed(AbortedError) follows unless the graph has already ended. Idempotent."""


class ResumableRun(GraphRun, Protocol):
    """A submitted graph of a `ResumableTarget`."""

    def extend(self, nodes: Sequence[Node], *, known: Known | None = None) -> None:
        """See `GraphRun.extend`; `known` holds outcomes of these nodes."""


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

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
        principal: Principal | None = None,
    ) -> GraphRun:
        """Submit a graph. Once accepted, exactly one final event reaches the listener, whatever fails.

        Args:
            inputs: the text of each input of the graph.
            is_open: whether nodes may be added until `close` is called.
            priority: lower values run first under the priority policy.
            deadline_s: seconds from now after which the graph fails with DeadlineError.
            seed: determines the text of every generation that samples without a seed of its own; random if it is not given. The same graph
                with the same seed gives the same texts.
            principal: the party that the graph belongs to; None for `LOCAL`. A remote runtime ignores it: its server knows the
                principal from the key.
        Raises:
            GraphError: the graph is invalid, needs more than the principal may ever use, or an input is missing or unknown.
            OverloadError: the queue is full, or the principal has used up what it may use now.
            EngineDeadError, ConnectionLostError: the runtime is closed or lost.
        """

    def close(self) -> None:
        """Cancel all graphs and free all resources. Idempotent."""


class ResumableTarget(Target, Protocol):
    """A runtime that takes known outcomes of nodes."""

    @property
    def model_identity(self) -> str:
        """A digest of what determines the model's outputs: weights, tokenizer and number format."""

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
        known: Known | None = None,
        principal: Principal | None = None,
    ) -> ResumableRun:
        """See `Target.submit`.

        Args:
            known: outcomes of nodes of the graph from an earlier run; nothing is computed for these.
        """


class StreamTarget(Target, Protocol):
    """A runtime whose graphs wait for their reader, and report their progress."""

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
        principal: Principal | None = None,
        credit: int | None = None,
        reports_progress: bool = False,
    ) -> GraphRun:
        """See `Target.submit`.

        Args:
            credit: number of tokens that may be delivered until `GraphRun.grant` adds more; None for no limit. Every token of a TextDelta
                takes one. Without credit prompts are computed, but no token of the graph is sampled. Texts that come in one piece
                (`best_of`, a select, a value that is checked at its end) take theirs at once, so credit may fall below zero.
            reports_progress: whether NodeStarted, PromptComputed and ValueKnown are sent.
        """
