"""What a program runs on: the shape that a local runtime and a remote one share.

The language submits a graph and listens. Whether the far end is an engine thread in this process or a socket is not visible here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rtlang.contract.events import Event
from rtlang.contract.graph import Node, RequestGraph

Listener = Callable[[Event], None]
"""Called with each event of a graph, in order, from a thread of the runtime. It must return quickly and not raise."""


class GraphRun(Protocol):
    """A submitted graph."""

    @property
    def graph_id(self) -> int:
        """Unique within its runtime."""

    def extend(self, nodes: Sequence[Node]) -> None:
        """Add nodes to a graph submitted with is_open=True.

        Raises:
            GraphError: the nodes are malformed, or the graph is closed. The graph goes on as it was.
            OverloadError: the queue has no room for them now. The graph goes on as it was, and they may be given again.
            EngineDeadError, ConnectionLostError: the runtime is gone.
        """

    def close(self) -> None:
        """No more nodes will come: the graph ends when its nodes have. Idempotent."""

    def cancel(self) -> None:
        """End now: unfinished nodes are dropped and GraphFailed(AbortedError) follows, unless the graph ended already. Idempotent."""


class Target(Protocol):
    """Where graphs run."""

    @property
    def is_alive(self) -> bool:
        """Whether graphs can still be submitted: False once it is closed, or its engine or connection is gone. From any thread."""

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
    ) -> GraphRun:
        """Accept a graph. From here on exactly one final event reaches the listener, whatever fails.

        Args:
            inputs: the text of every input that the graph names.
            is_open: nodes may be added later; `close` says when there are no more.
            priority: lower is served first, under the priority policy.
            deadline_s: seconds from now after which the graph fails with DeadlineError.
        Raises:
            GraphError: malformed, an input is missing or unknown. OverloadError: the queue is full.
            EngineDeadError, ConnectionLostError: the runtime is gone.
        """

    def close(self) -> None:
        """End all graphs, free everything. Idempotent."""
