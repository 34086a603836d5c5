from __future__ import annotations

import json

import jsonschema
import pytest

from rtlang.bench.workloads import requests
from rtlang.bench.workloads.catalogue import make
from rtlang.bench.workloads.text import Encoder
from rtlang.bench.workloads.workload import generations
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from tests.support.engine.encoders import Bytes


def prompt_tokens(graph: RequestGraph, encoder: Encoder, node_id: int | None) -> int:
    """Tokens before a node without those that are generated."""
    if node_id is None:
        return len(encoder.start_ids())
    node = graph.nodes[node_id]
    own = 0
    if isinstance(node, Text):
        own = len(encoder.encode("".join(map(str, node.parts)), is_start=node.parent is None))
    return own + prompt_tokens(graph, encoder, node.parent)


def test_shared_requests_begin_alike_and_go_on_differently() -> None:
    encoder = Bytes()
    for quick in (False, True):
        graphs = make("shared", encoder, quick=quick).graphs
        assert len(graphs) == 32
        assert len({graph.nodes[0] for graph in graphs}) == 1
        assert len({graph.nodes[1] for graph in graphs}) == 32
        assert {prompt_tokens(graph, encoder, 1) for graph in graphs} == {1024 + 32}
        assert {node.params.max_tokens for graph in graphs for node in generations(graph)} == {64}


def test_the_tree_has_four_levels_of_three() -> None:
    encoder = Bytes()
    (graph,) = make("tree", encoder, quick=True).graphs
    thoughts = list(generations(graph))
    depths = [(prompt_tokens(graph, encoder, node.node_id) - 256) // 48 for node in thoughts]
    assert [depths.count(depth) for depth in (1, 2, 3, 4)] == [3, 9, 27, 81]
    assert {node.params.max_tokens for node in thoughts} == {32}


@pytest.mark.parametrize("num_requests", [32, 64])
@pytest.mark.parametrize("seed", range(5))
def test_static_batches_of_eight_fill_about_two_fifths_of_their_slots_in_mixed(num_requests: int, seed: int) -> None:
    lengths = requests.mixed_lengths(num_requests, seed)
    outputs = [output for _, output in lengths]
    slots = sum(8 * max(outputs[start : start + 8]) for start in range(0, num_requests, 8))
    assert 0.33 <= sum(outputs) / slots <= 0.43
    assert all(16 <= prompt <= 512 and 8 <= output <= 256 for prompt, output in lengths)


def test_a_stream_is_one_request() -> None:
    encoder = Bytes()
    (graph,) = make("stream", encoder, quick=True).graphs
    (node,) = generations(graph)
    assert prompt_tokens(graph, encoder, node.node_id) == 32
    assert node.params.max_tokens == 300


def test_json_schemas_are_satisfiable_within_the_budget_and_closed() -> None:
    graphs = make("json", Bytes()).graphs
    sources = {
        node.constraint.source
        for graph in graphs
        for node in graph.nodes
        if isinstance(node, Generate) and node.constraint is not None
    }
    assert len(graphs) == 24
    assert len(sources) == len(requests.SCHEMAS) == 6
    for source in sources:
        schema = json.loads(source)
        jsonschema.Draft202012Validator.check_schema(schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({}, schema)
