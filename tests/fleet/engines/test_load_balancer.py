"""The rule of a target whose engines are alike."""

from __future__ import annotations

from rtlang.fleet.engines.load_balancer import LoadBalancer


def test_a_plain_balancer_sends_every_graph_to_the_first_engine() -> None:
    balancer = LoadBalancer()
    assert [balancer.choose(graph_id, ["b", "a"]) for graph_id in (1, 2)] == ["b", "b"]
