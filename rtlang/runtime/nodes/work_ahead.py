"""The work of nodes of a graph that have not begun: what waits at an engine besides its requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rtlang.contract.graph import Node
from rtlang.contract.node_work import NodeWork, node_work


class WorkAhead:
    """The estimated work of nodes that have not begun.

    Args:
        inputs: the text of each input.

    Attributes:
        total: their tokens.
    """

    def __init__(self, inputs: Mapping[str, str]) -> None:
        self._inputs, self._works, self.total = inputs, dict[int, NodeWork](), NodeWork()

    def add(self, nodes: Iterable[Node]) -> None:
        """Nodes were added."""
        for node in nodes:
            work = node_work(node, self._inputs)
            if any(work):
                self._works[node.node_id] = work
                self.total = self.total.plus(work)

    def leave(self, node_id: int) -> None:
        """A node has begun, or ended without that. Does nothing the second time."""
        work = self._works.pop(node_id, None)
        if work is not None:
            self.total = self.total.plus(work, -1.0) if self._works else NodeWork()
