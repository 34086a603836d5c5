"""Request graphs: validation names node and field, and the plain form gives the same graph back."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang.contract.errors import GraphError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams, SelectMethod
from rtlang.contract.request_graph import (
    MAX_NODES,
    MAX_TEXT_CHARS,
    Arg,
    Generate,
    Node,
    Ref,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Text,
    choices_of,
    dependencies,
    nodes_from_plain,
    nodes_to_plain,
)
from rtlang_grammars import JsonLayout, JsonStyle, PropertyOrder, Whitespace

PARAMS = SamplingParams()
MANY = SamplingParams(n=3)


@st.composite
def graphs(draw: st.DrawFn) -> RequestGraph:
    """Valid graphs of all kinds of nodes and parts."""
    nodes: list[Node] = []
    inputs = draw(st.lists(st.text(min_size=1, max_size=3), max_size=2, unique=True))
    node_id = -1
    names = st.none() | st.text(min_size=1, max_size=4)
    for _ in range(draw(st.integers(0, 8))):
        node_id += draw(st.integers(1, 3))
        parents = [node.node_id for node in nodes if choices_of(node) <= 1]
        parent = draw(st.none() | st.sampled_from(parents)) if parents else None
        refs = [Ref(node.node_id, choice) for node in nodes for choice in range(choices_of(node))]
        parts: list[st.SearchStrategy[Any]] = [
            st.text(max_size=4),
            st.builds(RoleStart, st.sampled_from(("system", "user", "assistant", "tool"))),
            st.just(RoleEnd()),
        ]
        parts += [st.sampled_from(refs)] if refs else []
        parts += [st.builds(Arg, st.sampled_from(inputs))] if inputs else []
        constraint = st.none() | st.builds(
            Constraint,
            st.sampled_from(ConstraintKind),
            st.text(max_size=4),
            st.builds(
                JsonStyle,
                st.sampled_from(Whitespace),
                st.sampled_from(PropertyOrder),
                st.none()
                | st.builds(JsonLayout, st.sampled_from((None, ",", ", ")), indent=st.none() | st.integers(0, 4)),
            ),
        )
        params = st.builds(
            SamplingParams, n=st.integers(1, 3), temperature=st.floats(0, 2), seed=st.none() | st.just(1)
        )
        choices = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3, unique=True).map(tuple)
        kind = draw(st.integers(0, 2))
        if kind == 0:
            nodes.append(Text(node_id, parent, tuple(draw(st.lists(st.one_of(parts), max_size=4)))))
        elif kind == 1:
            nodes.append(Generate(node_id, parent, draw(names), draw(params), draw(constraint)))
        else:
            nodes.append(Select(node_id, parent, draw(names), draw(choices), draw(st.sampled_from(SelectMethod))))
    return RequestGraph(tuple(nodes), tuple(inputs))


@given(graphs())
def test_a_graph_comes_back_from_its_plain_forms(graph: RequestGraph) -> None:
    graph.validate()
    assert RequestGraph.from_msgpack(graph.to_msgpack()) == graph
    assert RequestGraph.from_plain(json.loads(json.dumps(graph.to_plain()))) == graph
    assert tuple(nodes_from_plain(nodes_to_plain(graph.nodes))) == graph.nodes


@given(graphs(), st.integers(0, 8))
def test_a_graph_may_come_in_two_pieces(graph: RequestGraph, cut: int) -> None:
    first, second = graph.nodes[:cut], graph.nodes[cut:]
    RequestGraph(first, graph.inputs).validate()
    RequestGraph(second, graph.inputs).validate({node.node_id: node for node in first})


@given(graphs())
def test_what_a_node_needs_comes_before_it(graph: RequestGraph) -> None:
    for node in graph.nodes:
        assert all(needed < node.node_id for needed in dependencies(node))


def gen(node_id: int, parent: int | None = None, **fields: Any) -> Generate:
    return Generate(node_id, parent, fields.pop("name", None), fields.pop("params", PARAMS), **fields)


WRONG: list[tuple[str, tuple[Any, ...], int | None, str]] = [
    ("negative id", (gen(-1),), None, "node_id"),
    ("boolean id", (gen(True),), None, "node_id"),
    ("id twice", (gen(1), gen(1)), 1, "node_id"),
    ("ids fall", (gen(2), gen(1)), 1, "node_id"),
    ("no parent", (gen(1, 0),), 1, "parent"),
    ("own parent", (gen(1, 1),), 1, "parent"),
    ("parent has many texts", (gen(0, params=MANY), gen(1, 0)), 1, "parent"),
    ("empty name", (gen(0, name=""),), 0, "name"),
    ("long name", (gen(0, name="x" * 32_769),), 0, "name"),
    ("name is no text", (gen(0, name=3),), 0, "name"),
    ("params are none", (gen(0, params={}),), 0, "params"),
    ("constraint is text", (gen(0, constraint="a+"),), 0, "constraint"),
    ("ref to nothing", (Text(0, None, (Ref(5),)),), 0, "parts"),
    ("ref to text", (Text(0, None, ()), Text(1, None, (Ref(0),))), 1, "parts"),
    ("ref to a choice too far", (gen(0, params=MANY), Text(1, None, (Ref(0, 3),))), 1, "parts"),
    ("ref to a choice below", (gen(0), Text(1, None, (Ref(0, -1),))), 1, "parts"),
    ("unknown input", (Text(0, None, (Arg("x"),)),), 0, "parts"),
    ("unknown role", (Text(0, None, (RoleStart("king"),)),), 0, "parts"),
    ("part is a number", (Text(0, None, (cast(Any, 3),)),), 0, "parts"),
    ("lone surrogate", (Text(0, None, ("\ud800",)),), 0, "parts"),
    ("endless text", (Text(0, None, ("x" * (MAX_TEXT_CHARS + 1),)),), 0, "parts"),
    ("no choices", (Select(0, None, None, ()),), 0, "choices"),
    ("empty choice", (Select(0, None, None, ("a", "")),), 0, "choices"),
    ("choice twice", (Select(0, None, None, ("a", "a")),), 0, "choices"),
]


@pytest.mark.parametrize(("nodes", "node_id", "field"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_malformed_graph_is_refused_by_node_and_field(nodes: Any, node_id: int | None, field: str) -> None:
    with pytest.raises(GraphError) as caught:
        RequestGraph(nodes).validate()
    assert (caught.value.node_id, caught.value.field) == (node_id, field)


def test_a_graph_has_a_largest_size() -> None:
    RequestGraph(tuple(gen(index) for index in range(MAX_NODES))).validate()
    with pytest.raises(GraphError, match="nodes"):
        RequestGraph((gen(MAX_NODES),)).validate({index: gen(index) for index in range(MAX_NODES)})


@pytest.mark.parametrize("name", ["", 3, None])
def test_input_names_are_non_empty_strings(name: Any) -> None:
    with pytest.raises(GraphError, match="inputs"):
        RequestGraph((), (name,)).validate()


@pytest.mark.parametrize(
    ("plain", "word"),
    [
        ([], "map"),
        ({"nodes": 3}, "nodes"),
        ({"nodes": [3]}, "map"),
        ({"nodes": [{}]}, "id"),
        ({"nodes": [{"id": True}]}, "id"),
        ({"nodes": [{"id": 0, "parent": "x"}]}, "parent"),
        ({"nodes": [{"id": 0, "kind": "poem"}]}, "kind"),
        ({"nodes": [{"id": 0, "kind": "text"}]}, "parts"),
        ({"nodes": [{"id": 0, "kind": "text", "parts": [{"odd": 1}]}]}, "parts"),
        ({"nodes": [{"id": 0, "kind": "text", "parts": [None]}]}, "parts"),
        ({"nodes": [{"id": 0, "kind": "generate", "params": 3}]}, "params"),
        ({"nodes": [{"id": 0, "kind": "generate", "params": {"top_p": 7}}]}, "params.top_p"),
        ({"nodes": [{"id": 0, "kind": "generate", "params": {"odd": 7}}]}, "params.odd"),
        ({"nodes": [{"id": 0, "kind": "generate", "constraint": {"kind": "regex"}}]}, "constraint"),
        ({"nodes": [{"id": 0, "kind": "generate", "constraint": {"kind": "poem", "source": ""}}]}, "constraint.kind"),
        ({"nodes": [{"id": 0, "kind": "generate", "constraint": {"kind": None, "source": ""}}]}, "constraint.kind"),
        (
            {"nodes": [{"id": 0, "kind": "generate", "constraint": {"kind": "regex", "source": "", "whitespace": 1}}]},
            "constraint.whitespace",
        ),
        (
            {"nodes": [{"id": 0, "kind": "generate", "constraint": {"kind": "regex", "source": "", "order": "up"}}]},
            "constraint.order",
        ),
        (
            {"nodes": [{"id": 0, "kind": "generate", "constraint": {"kind": "regex", "source": "", "numbers": 1}}]},
            "constraint.numbers",
        ),
        ({"nodes": [{"id": 0, "kind": "select"}]}, "choices"),
        ({"nodes": [{"id": 0, "kind": "select", "choices": ["a"], "method": "dice"}]}, "method"),
        ({"inputs": "abc"}, "inputs"),
    ],
)
def test_wrong_plain_data_is_refused_by_field(plain: Any, word: str) -> None:
    with pytest.raises(GraphError, match=word):
        RequestGraph.from_plain(plain)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_graph_or_a_graph_error(data: bytes) -> None:
    try:
        RequestGraph.from_msgpack(data).validate()
    except GraphError:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(("text", "generate", "select", "user", "", "x")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "id",
                    "kind",
                    "parent",
                    "parts",
                    "params",
                    "name",
                    "choices",
                    "method",
                    "constraint",
                    "ref",
                    "role",
                    "arg",
                )
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3), st.lists(JSON, max_size=2))
def test_any_plain_data_is_a_graph_or_a_graph_error(nodes: list[Any], inputs: list[Any]) -> None:
    try:
        RequestGraph.from_plain({"nodes": nodes, "inputs": inputs}).validate()
    except GraphError:
        return
