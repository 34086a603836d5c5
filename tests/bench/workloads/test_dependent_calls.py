"""Agents wait for each of their tools, and a judge merges the verdicts of its branches."""

from __future__ import annotations

import json

from rtlang.bench.workloads import dependent_calls
from rtlang.bench.workloads.catalogue import make
from rtlang.bench.workloads.workload import generations, tool_of
from rtlang.contract.request_graph import Call, Ref, Text, dependencies
from tests.support.engine.encoders import Bytes


def test_agents_make_dependent_calls_with_a_tool_between_any_two() -> None:
    encoder = Bytes()
    for quick, num_agents, shortest, longest in ((True, 4, 10, 16), (False, 8, 10, 40)):
        graphs = make("agents", encoder, quick=quick).graphs
        lengths = [sum(1 for _ in generations(graph)) for graph in graphs]
        assert (len(lengths), min(lengths), max(lengths)) == (num_agents, shortest, longest)
        for graph in graphs:
            nodes = {node.node_id: node for node in graph.nodes}
            calls = list(generations(graph))
            tools = [node for node in graph.nodes if isinstance(node, Call)]
            assert [tool_of(tool)[0] for tool in tools] == [call.node_id for call in calls[:-1]]
            for tool, following in zip(tools, calls[1:], strict=True):
                _, delay_s, answer = tool_of(tool)
                low, high = dependent_calls.AGENT_RESULT_TOKENS
                assert low <= len(encoder.encode(answer, is_start=False)) <= high
                assert 0.02 <= delay_s <= 0.4
                assert following.parent is not None
                assert tool.node_id in dependencies(nodes[following.parent])


def test_agents_fit_into_a_model_of_4096_tokens() -> None:
    _, calls = dependent_calls.AGENT_CALLS
    longest = dependent_calls.AGENT_OUTPUT[1] + dependent_calls.AGENT_RESULT_TOKENS[1]
    assert dependent_calls.AGENT_SYSTEM_TOKENS + dependent_calls.AGENT_TASK_TOKENS + calls * longest < 4096


def test_a_judge_branches_and_merges_all_verdicts() -> None:
    for graph in make("judge", Bytes(), quick=True).graphs:
        verdicts = [node for node in generations(graph) if node.constraint is not None]
        assert len(verdicts) == dependent_calls.CRITERIA
        assert all(
            set(json.loads(each.constraint.source)["properties"]) == {"score", "reason"}
            for each in verdicts
            if each.constraint
        )
        *_, merging, last = graph.nodes
        assert isinstance(merging, Text)
        assert merging.parent == 1
        assert [part.node_id for part in merging.parts if isinstance(part, Ref)] == [each.node_id for each in verdicts]
        assert last is list(generations(graph))[-1]


def test_graphs_are_marked_as_those_of_programs() -> None:
    for name in ("agents", "judge"):
        first, *_ = generations(make(name, Bytes(), quick=True).graphs[0])
        assert first.marks.remaining_tokens > 0
        assert first.marks.lifetime == "part"
