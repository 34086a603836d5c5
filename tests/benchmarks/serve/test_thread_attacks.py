"""Every attack is valid, but for what it is meant to be refused for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.request_graph import Node, RequestGraph
from rtlang.runtime.result_size import check_result_sizes
from rtlang_bench.serve.thread_attacks import ATTACKS


class Remote:
    """Validates what is submitted, and keeps it."""

    def __init__(self) -> None:
        self.graphs: list[RequestGraph] = []
        self.num_extensions = 0

    def submit(self, graph: RequestGraph, listener: Any, options: Any = None) -> Remote:
        self.checks = graph.validate()
        self.graphs.append(graph)
        return self

    def extend(self, nodes: Sequence[Node]) -> None:
        self.checks.add(nodes)
        self.num_extensions += 1

    def close(self) -> None:
        """Nothing follows."""


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_submits_valid_graphs(name: str) -> None:
    remote: Any = Remote()
    recorders = ATTACKS[name](remote)
    assert len(recorders) == len(remote.graphs) > 0
    assert remote.num_extensions == (2000 if name == "extensions" else 0)
    refused = 0
    for graph in remote.graphs:
        try:
            check_result_sizes(graph.nodes, 1024)
        except GraphError:
            refused += 1
    assert refused == (20 if name == "large_results" else 0)
