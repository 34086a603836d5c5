"""The work of programs: which text their digests cover, and how the estimate of their tokens grows."""

from __future__ import annotations

from random import Random

import pytest

from rtlang.contract.node_work import CHARS_PER_TOKEN, EXPECTED_OUTPUT, OUTPUT_WEIGHT
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Arg,
    Generate,
    Node,
    Part,
    Ref,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Text,
    TokenIds,
)
from rtlang.fleet.routing.program_prefix import (
    BLOCK_CHARS,
    WorkEstimator,
    block_digests,
    longest_prefix,
    program_work,
)
from tests.support.programs.random_graphs import GraphMaker


def chain(*parts: tuple[Part, ...] | int) -> RequestGraph:
    """A sequence of texts; a number is a generation of so many tokens."""
    nodes: list[Node] = []
    for node_id, each in enumerate(parts):
        parent = node_id - 1 if node_id else None
        if isinstance(each, int):
            nodes.append(Generate(node_id, parent, f"v{node_id}", SamplingParams(max_tokens=each)))
        else:
            nodes.append(Text(node_id, parent, each))
    return RequestGraph(tuple(nodes), ("question",))


def test_digests_are_equal_as_far_as_the_texts_are() -> None:
    random = Random(0)
    base = "".join(random.choice("abü😀") for _ in range(12 * BLOCK_CHARS))
    for _ in range(30):
        place = random.randrange(len(base))
        changed = base[:place] + "x" + base[place + 1 :]
        common = place // BLOCK_CHARS
        ours, theirs = block_digests(base), block_digests(changed)
        assert ours[:common] == theirs[:common]
        assert not set(ours[common:]) & set(theirs[common:]), "chained: no block behind the difference is equal"


def test_only_whole_blocks_have_digests() -> None:
    text = "a" * (2 * BLOCK_CHARS)
    assert len(block_digests(text[:-1])) == 1
    assert len(block_digests(text)) == 2
    assert block_digests(text + "b") == block_digests(text)


def test_namespaces_share_no_digest() -> None:
    text = "a" * (3 * BLOCK_CHARS)
    assert not set(block_digests(text, "tenant")) & set(block_digests(text))


def test_digests_stay_the_same_between_processes() -> None:
    by_b2sum = bytes.fromhex("78b03efd0a5ea28b")  # of 256 letters a, with `b2sum -l 64`
    assert block_digests("a" * BLOCK_CHARS) == (int.from_bytes(by_b2sum, "little"),)


def test_prefix_has_inputs_and_ends_at_the_first_generated_value() -> None:
    graph = chain(("System. ", Arg("question")), (" More",), 8, (" behind",))
    assert longest_prefix(graph.nodes, {"question": "Why?"}) == "System. Why? More"
    graph = chain(("Start. ",), 8)
    nodes = (*graph.nodes, Text(2, 0, ("a", Ref(1), "b")), Text(3, 2, ("c" * 100,)))
    assert longest_prefix(nodes, {}) == "Start. a"


def test_prefix_of_several_sequences_is_the_longest_text() -> None:
    nodes = (Text(0, None, ("short",)), Text(1, None, ("system ",)), Text(2, 1, ("a",)), Text(3, 1, ("longer",)))
    assert longest_prefix(nodes, {}) == "system longer"


def test_chat_turns_and_tokens_differ_from_their_text() -> None:
    def prefix(*parts: Part) -> str:
        return longest_prefix(chain(parts).nodes, {})

    texts = [
        prefix("hello"),
        prefix(RoleStart("user"), "hello", RoleEnd()),
        prefix(RoleStart("system"), "hello", RoleEnd()),
        prefix(RoleStart("user", "[]"), "hello", RoleEnd()),
        prefix(TokenIds((1, 2)), "hello"),
        prefix(TokenIds((12,)), "hello"),
    ]
    assert len(set(texts)) == len(texts)


def test_estimate_counts_text_once_and_weights_output() -> None:
    graph = chain(("a" * 400,), 10, ("b" * 40,))
    output = 10 * EXPECTED_OUTPUT * OUTPUT_WEIGHT
    work = program_work(graph, {"question": ""})
    assert work.compute == pytest.approx(440 / CHARS_PER_TOKEN + output)
    assert work.tokens_per_block == BLOCK_CHARS / CHARS_PER_TOKEN
    branches: tuple[Node, ...] = (
        Text(0, None, ("a" * 400,)),
        *(Generate(i, 0, None, SamplingParams(max_tokens=10)) for i in (1, 2, 3)),
    )
    assert program_work(RequestGraph(branches)).compute == pytest.approx(100 + 3 * output)
    assert program_work(chain((Arg("question"),)), {"question": "q" * 80}).compute == pytest.approx(20)


def test_estimates_follow_the_tokenizer_and_the_machine() -> None:
    estimator = WorkEstimator()
    graph = chain(("a" * 600,), 10, ("b" * 60,), 10)
    assert estimator.estimate(graph, {}) == program_work(graph)
    nodes = {node.node_id: node for node in graph.nodes}
    for _ in range(200):
        estimator.learn(nodes, 1, {}, 400)
    assert estimator.chars_per_token == pytest.approx(1.5, abs=0.01)
    estimator.output_weight = 3.0
    work = estimator.estimate(graph, {})
    assert work.compute == pytest.approx(440 + 2 * 10 * EXPECTED_OUTPUT * 3.0, rel=0.01)
    assert work.tokens_per_block == pytest.approx(BLOCK_CHARS / 1.5, rel=0.01)


def test_only_prompts_of_known_text_tell_of_the_tokenizer() -> None:
    estimator = WorkEstimator()
    two = Generate(1, 0, "two", SamplingParams(max_tokens=4, n=2))
    for graph, node_id, count in (
        (chain(("a" * 600,), 10, ("b" * 60,), 10), 3, 500),  # behind a generated text
        (chain(("a" * 600, Ref(9)), 10), 1, 500),
        (chain(("a" * 600, TokenIds((1, 2, 3))), 10), 1, 500),
        (RequestGraph((Text(0, None, ("a" * 600,)), two)), 1, 800),
        (chain(10), 0, 1),
        (chain(("a" * 600,), 10), 1, 0),
        (chain(("a" * 600,), 10), 7, 400),
    ):
        estimator.learn({node.node_id: node for node in graph.nodes}, node_id, {}, count)
        assert estimator.chars_per_token == CHARS_PER_TOKEN
    graph = chain((Arg("question"),), 10)
    estimator.learn({node.node_id: node for node in graph.nodes}, 1, {"question": "q" * 2560}, 256)
    assert estimator.chars_per_token == pytest.approx((2560 + 1024) / 512)


@pytest.mark.parametrize("seed", range(10))
def test_work_of_any_graph_covers_its_prefix(seed: int) -> None:
    nodes = tuple(GraphMaker(Random(seed)).nodes(30))
    work = program_work(RequestGraph(nodes, ("question",)), {"question": "long " * 500})
    assert work.compute >= len(work.digests) * work.tokens_per_block
    assert work.remaining(len(work.digests)) >= 0
