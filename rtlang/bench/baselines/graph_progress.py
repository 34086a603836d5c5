"""The token sequences of a running graph, for engines that know single requests only."""

from __future__ import annotations

from collections.abc import Mapping

from rtlang.bench.workloads import Encoder, generations
from rtlang.contract.graph import Generate, Node, RequestGraph, Text, dependencies, parent_of


class GraphProgress:
    """The token ids of one running graph of texts and single generations.

    Raises:
        ValueError: the graph has other nodes, a reference, or a node with several completions.
    """

    def __init__(self, graph: RequestGraph, encoder: Encoder) -> None:
        for node in graph.nodes:
            is_plain = isinstance(node, Text) and all(isinstance(part, str) for part in node.parts)
            if not is_plain and not (isinstance(node, Generate) and node.params.n == 1):
                raise ValueError(f"node {node.node_id}: the baseline runs plain text and single generations only")
        self._nodes: Mapping[int, Node] = {node.node_id: node for node in graph.nodes}
        self._waiting = {node.node_id: node for node in generations(graph)}
        self._own: dict[int, list[int]] = {}
        self._encoder = encoder

    def ready(self) -> list[Generate]:
        """Generations whose input sequence is complete, in node order."""
        return [node for node in self._waiting.values() if self._is_complete(parent_of(node))]

    def sequence(self, node_id: int | None) -> list[int]:
        """Token ids from the start of the sequence to the end of `node_id`."""
        if node_id is None:
            return list(self._encoder.start_ids())
        node = self._nodes[node_id]
        before = self.sequence(parent_of(node))
        if node_id not in self._own:
            assert isinstance(node, Text)
            text = "".join(part for part in node.parts if isinstance(part, str))
            self._own[node_id] = self._encoder.encode(text, is_start=parent_of(node) is None)
        return before + self._own[node_id]

    def finish(self, node: Generate, token_ids: list[int]) -> None:
        """Record the tokens of a generation."""
        self._own[node.node_id] = token_ids
        del self._waiting[node.node_id]

    def _is_complete(self, node_id: int | None) -> bool:
        if node_id is None:
            return True
        return node_id not in self._waiting and all(map(self._is_complete, dependencies(self._nodes[node_id])))
