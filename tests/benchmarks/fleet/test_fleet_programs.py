"""Programs of the fleet benchmark: valid graphs of the stated sizes."""

from __future__ import annotations

import pytest

from rtlang.bench.workloads.workload import generations
from rtlang.contract.request_graph import Text, parent_of
from rtlang.model.loader import model_directory
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_bench.fleet.fleet_programs import QUICK, ProgramSizes, chats, trees

ENCODER = Tokenizer.from_pretrained(model_directory("rtlang:tiny"))
SIZES = ProgramSizes(4, 2, 48, 8, 4, 2, 3, 5)


@pytest.mark.parametrize(("make", "num_calls", "depth"), [(trees, 3 + 9, 2), (chats, 5, 5)])
def test_programs_have_the_stated_calls(make: type, num_calls: int, depth: int) -> None:
    workload = make(ENCODER, SIZES, 0)
    assert len(workload.graphs) == SIZES.num_programs
    documents = []
    for graph in workload.graphs:
        graph.validate()
        nodes = {node.node_id: node for node in graph.nodes}
        calls = list(generations(graph))
        assert len(calls) == num_calls
        assert {call.params.max_tokens for call in calls} == {SIZES.output_tokens}
        depths = []
        for call in calls:
            above, at = 0, call.node_id
            while (parent := parent_of(nodes[at])) is not None:
                above, at = above + 1, parent
            depths.append(above // 2)
        assert max(depths) == depth
        first = nodes[0]
        assert isinstance(first, Text)
        documents.append(first.parts)
    assert documents[0] == documents[2] != documents[1] == documents[3]


def test_another_seed_gives_other_texts() -> None:
    assert trees(ENCODER, QUICK, 0).graphs == trees(ENCODER, QUICK, 0).graphs != trees(ENCODER, QUICK, 1).graphs
