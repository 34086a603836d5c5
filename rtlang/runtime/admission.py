"""Admission control: limits the number of unfinished requests of accepted graphs.

The requests of a node are counted when its graph is accepted, long before the node starts, and released when the node ends. Nodes that
would exceed the limit are refused as a whole.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rtlang.contract.errors import GraphError, OverloadError
from rtlang.contract.graph import Node, blocks_of, num_requests

RETRY_AFTER_S = 1.0


class Admission:
    """Counts unfinished requests of all accepted graphs. Safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._num_open = 0
        self._lock = threading.Lock()

    @property
    def num_open(self) -> int:
        """Number of admitted requests of nodes that have not ended."""
        return self._num_open

    def admit(self, count: int) -> None:
        """Admit `count` more requests.

        Raises:
            GraphError: `count` exceeds the limit itself. OverloadError: there is no room for them now.
        """
        limit = self._limit
        if count > limit:
            raise GraphError(
                None,
                "nodes",
                f"the nodes need {count} requests (n, or the number of choices, for each); at most max_waiting = {limit} are allowed",
            )
        with self._lock:
            if self._num_open + count > limit:
                raise OverloadError(
                    f"{self._num_open} requests are unfinished and the nodes need {count} more; at most max_waiting = {limit} are allowed",
                    RETRY_AFTER_S,
                )
            self._num_open += count

    def add(self, count: int) -> None:
        """Count requests of a graph that was admitted before, whatever the limit."""
        with self._lock:
            self._num_open += count

    def release(self, count: int) -> None:
        """Release `count` requests."""
        with self._lock:
            self._num_open -= count


class Share:
    """The admitted requests of one graph. Safe to use from several threads."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._counts: dict[int, int] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def add(self, nodes: Sequence[Node]) -> None:
        """Admit the requests of nodes, all or none; does nothing once the graph has ended.

        Raises:
            GraphError, OverloadError: as `Admission.admit`.
        """
        counts = _counts(nodes)
        with self._lock:
            if not self._is_closed and counts:
                self._admission.admit(sum(counts.values()))
                self._counts.update(counts)

    def expand(self, control_id: int, nodes: Sequence[Node]) -> None:
        """Count the nodes of a block that a control node starts, instead of the control node. Never refused: the graph was admitted."""
        counts = _counts(nodes)
        with self._lock:
            if not self._is_closed:
                self._admission.add(sum(counts.values()) - self._counts.pop(control_id, 0))
                self._counts.update(counts)

    def end_node(self, node_id: int) -> None:
        """Release the requests of a node. Idempotent."""
        with self._lock:
            self._admission.release(self._counts.pop(node_id, 0))

    def close(self) -> None:
        """Release everything, because the graph has ended. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._admission.release(sum(self._counts.values()))
            self._counts.clear()


def _counts(nodes: Sequence[Node]) -> dict[int, int]:
    """The requests of each node; one for a control node, until its block starts."""
    return {node.node_id: count for node in nodes if (count := num_requests(node) or len(blocks_of(node)[:1]))}
