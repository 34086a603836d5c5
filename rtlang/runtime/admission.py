"""How many requests the accepted graphs may still make.

A node stands for requests long before it starts, so they are counted when its graph is accepted and given back when the node ends. What
would go beyond the limit is refused before anything of it is taken in.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rtlang.contract.errors import GraphError, OverloadError
from rtlang.contract.graph import Node, num_requests

RETRY_AFTER_S = 1.0


class Admission:
    """Counts the requests of all accepted graphs that have not ended. Safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._num_open = 0
        self._lock = threading.Lock()

    @property
    def num_open(self) -> int:
        """Requests of nodes that were accepted and have not ended."""
        return self._num_open

    def take(self, count: int) -> None:
        """Count more requests in.

        Raises:
            GraphError: they are more than may ever be there. OverloadError: they are more than there is room for now.
        """
        limit = self._limit
        if count > limit:
            raise GraphError(
                None,
                "nodes",
                f"they make {count} requests (n, or the choices, of each); at most max_waiting = {limit} are allowed",
            )
        with self._lock:
            if self._num_open + count > limit:
                raise OverloadError(
                    f"{self._num_open} requests are unfinished and the nodes make {count} more; max_waiting = {limit}",
                    RETRY_AFTER_S,
                )
            self._num_open += count

    def give_back(self, count: int) -> None:
        """Count ended requests out."""
        with self._lock:
            self._num_open -= count


class Share:
    """What one graph has taken of an `Admission`. Safe to use from several threads."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._counts: dict[int, int] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def add(self, nodes: Sequence[Node]) -> None:
        """Take room for nodes, all or nothing; for none once the graph has ended.

        Raises:
            GraphError, OverloadError: as `Admission.take`.
        """
        counts = {node.node_id: count for node in nodes if (count := num_requests(node))}
        with self._lock:
            if not self._is_closed and counts:
                self._admission.take(sum(counts.values()))
                self._counts.update(counts)

    def end_node(self, node_id: int) -> None:
        """Give back the room of a node. Idempotent."""
        with self._lock:
            self._admission.give_back(self._counts.pop(node_id, 0))

    def close(self) -> None:
        """Give back everything: the graph has ended. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._admission.give_back(sum(self._counts.values()))
            self._counts.clear()
