"""Folding: before and after, and that the sequences stay what they were."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rtlang.compiler.fold_text import fold_text
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, Node, Ref, RequestGraph, RoleEnd, RoleStart, Text

PARAMS = SamplingParams()


def gen(node_id: int, parent: int | None) -> Generate:
    return Generate(node_id, parent, None, PARAMS)


def folded(*nodes: Node, keep: Any = ()) -> tuple[Node, ...]:
    return fold_text(RequestGraph(nodes), keep).nodes


def test_text_after_text_is_one_node_with_the_later_id() -> None:
    before = (
        Text(0, None, (RoleStart("user"), "a")),
        Text(1, 0, ("b", "c")),
        Text(2, 1, (RoleEnd(),)),
        gen(3, 2),
        Text(4, 3, ("d",)),
        Text(5, 4, (Ref(3), "e")),
        gen(6, 5),
    )
    assert folded(*before) == (
        Text(2, None, (RoleStart("user"), "abc", RoleEnd())),
        gen(3, 2),
        Text(5, 3, ("d", Ref(3), "e")),
        gen(6, 5),
    )


def test_text_with_two_children_stays() -> None:
    nodes = (Text(0, None, ("a",)), Text(1, 0, ("b",)), Text(2, 0, ("c",)))
    assert folded(*nodes) == nodes


def test_text_beside_a_generation_stays() -> None:
    nodes = (Text(0, None, ("a",)), gen(1, 0), Text(2, 0, ("b",)))
    assert folded(*nodes) == nodes


def test_text_that_later_nodes_may_continue_stays() -> None:
    nodes = (Text(0, None, ("a",)), Text(1, 0, ("b",)), Text(2, 1, ("c",)))
    assert folded(*nodes, keep={0}) == (nodes[0], Text(2, 0, ("bc",)))


def test_text_that_was_submitted_before_is_not_touched() -> None:
    nodes = (Text(5, 4, ("b",)), Text(6, 5, ("c",)))
    assert folded(*nodes) == (Text(6, 4, ("bc",)),)


def test_inputs_are_kept() -> None:
    assert fold_text(RequestGraph((), ("a",))).inputs == ("a",)


@st.composite
def graphs(draw: st.DrawFn) -> RequestGraph:
    nodes: list[Node] = []
    for node_id in range(draw(st.integers(0, 14))):
        parent = draw(st.one_of(st.none(), st.sampled_from(range(node_id)))) if node_id else None
        if draw(st.booleans()) or draw(st.booleans()):
            nodes.append(
                Text(node_id, parent, tuple(draw(st.lists(st.text("ab", min_size=1, max_size=2), max_size=2))))
            )
        else:
            nodes.append(gen(node_id, parent))
    return RequestGraph(tuple(nodes))


def sequence(nodes: dict[int, Node], node_id: int | None) -> str:
    if node_id is None:
        return ""
    node = nodes[node_id]
    own = "".join(map(str, node.parts)) if isinstance(node, Text) else f"<{node_id}>"
    return sequence(nodes, node.parent) + own


@given(graphs(), st.sets(st.integers(0, 13)))
def test_folding_keeps_every_sequence_and_folds_all_it_may(graph: RequestGraph, keep: set[int]) -> None:
    after = fold_text(graph, keep)
    after.validate()
    before_nodes = {node.node_id: node for node in graph.nodes}
    after_nodes = {node.node_id: node for node in after.nodes}
    for node_id in after_nodes:
        assert sequence(after_nodes, node_id) == sequence(before_nodes, node_id)
    for node_id in before_nodes.keys() - after_nodes.keys():
        assert node_id not in keep
        assert isinstance(before_nodes[node_id], Text)
    for node in after.nodes:
        parent = after_nodes.get(node.parent) if node.parent is not None else None
        if isinstance(node, Text) and isinstance(parent, Text):
            siblings = [other for other in after.nodes if other.parent == parent.node_id]
            assert len(siblings) > 1 or parent.node_id in keep
    assert fold_text(after, keep) == after
