from __future__ import annotations

import json

import jsonschema
import pytest
from tokenizers import Tokenizer as HubTokenizer

from rtlang.bench import workloads
from rtlang.contract.graph import Generate, RequestGraph, Text
from tests.support.tiny_models import make_tokenizer_json


class Words:
    """Counts as a vocabulary of words with their leading space would: a text of k words has k tokens, digits one each."""

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        pieces = "".join(f" {c} " if c.isdigit() else c for c in text).split()
        return [hash(piece) % 1000 for piece in pieces]

    def start_ids(self) -> list[int]:
        return []


class Bytes:
    """A real byte-level tokenizer that puts one token before every sequence."""

    def __init__(self) -> None:
        self._tokenizer = HubTokenizer.from_str(json.dumps(make_tokenizer_json()))

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def start_ids(self) -> list[int]:
        return [256]


def prompt_tokens(graph: RequestGraph, encoder: workloads.Encoder, node_id: int | None) -> int:
    """Tokens before a node without those that are generated."""
    if node_id is None:
        return len(encoder.start_ids())
    node = graph.nodes[node_id]
    own = 0
    if isinstance(node, Text):
        own = len(encoder.encode("".join(map(str, node.parts)), is_start=node.parent is None))
    return own + prompt_tokens(graph, encoder, node.parent)


@pytest.mark.parametrize("encoder", [Words(), Bytes()], ids=["words", "bytes"])
@pytest.mark.parametrize("num_tokens", [1, 2, 7, 48, 333])
def test_text_has_the_wanted_number_of_tokens(encoder: workloads.Encoder, num_tokens: int) -> None:
    maker = workloads.TextMaker(encoder, seed=3)
    assert len(encoder.encode(maker.text(num_tokens), is_start=False)) == num_tokens
    started = maker.text(num_tokens + 1, is_start=True)
    assert len(encoder.start_ids()) + len(encoder.encode(started, is_start=True)) == num_tokens + 1


def test_a_length_that_no_text_has_is_refused() -> None:
    with pytest.raises(ValueError, match="0 tokens"):
        workloads.TextMaker(Bytes(), seed=0).text(0, is_start=True)


@pytest.mark.parametrize("name", sorted(workloads.MAKERS))
def test_graphs_are_valid_and_repeat_with_the_seed(name: str) -> None:
    one, again, other = (workloads.make(name, Bytes(), seed=seed, quick=True) for seed in (1, 1, 2))
    assert one == again
    assert one.graphs != other.graphs
    for graph in one.graphs:
        graph.validate()


def test_shared_requests_begin_alike_and_go_on_differently() -> None:
    encoder = Bytes()
    for quick in (False, True):
        graphs = workloads.make("shared", encoder, quick=quick).graphs
        assert len(graphs) == 32
        assert len({graph.nodes[0] for graph in graphs}) == 1
        assert len({graph.nodes[1] for graph in graphs}) == 32
        assert {prompt_tokens(graph, encoder, 1) for graph in graphs} == {1024 + 32}
        assert {node.params.max_tokens for graph in graphs for node in workloads.generations(graph)} == {64}


def test_the_tree_has_four_levels_of_three() -> None:
    encoder = Bytes()
    (graph,) = workloads.make("tree", encoder, quick=True).graphs
    thoughts = list(workloads.generations(graph))
    depths = [(prompt_tokens(graph, encoder, node.node_id) - 256) // 48 for node in thoughts]
    assert [depths.count(depth) for depth in (1, 2, 3, 4)] == [3, 9, 27, 81]
    assert {node.params.max_tokens for node in thoughts} == {32}


@pytest.mark.parametrize("num_requests", [32, 64])
@pytest.mark.parametrize("seed", range(5))
def test_static_batches_of_eight_fill_about_two_fifths_of_their_slots_in_mixed(num_requests: int, seed: int) -> None:
    lengths = workloads.mixed_lengths(num_requests, seed)
    outputs = [output for _, output in lengths]
    slots = sum(8 * max(outputs[start : start + 8]) for start in range(0, num_requests, 8))
    assert 0.33 <= sum(outputs) / slots <= 0.43
    assert all(16 <= prompt <= 512 and 8 <= output <= 256 for prompt, output in lengths)


def test_a_stream_is_one_request() -> None:
    encoder = Bytes()
    (graph,) = workloads.make("stream", encoder, quick=True).graphs
    (node,) = workloads.generations(graph)
    assert prompt_tokens(graph, encoder, node.node_id) == 32
    assert node.params.max_tokens == 300


def test_json_schemas_are_satisfiable_within_the_budget_and_closed() -> None:
    graphs = workloads.make("json", Bytes()).graphs
    sources = {
        node.constraint.source
        for graph in graphs
        for node in graph.nodes
        if isinstance(node, Generate) and node.constraint is not None
    }
    assert len(graphs) == 24
    assert len(sources) == len(workloads.SCHEMAS) == 6
    for source in sources:
        schema = json.loads(source)
        jsonschema.Draft202012Validator.check_schema(schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({}, schema)


def test_an_unknown_workload_is_named() -> None:
    with pytest.raises(ValueError, match="'chess'"):
        workloads.make("chess", Bytes())
