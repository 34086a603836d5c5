"""Reordering: the pieces that most instances share come first."""

from __future__ import annotations

from rtlang.compiler.context import Sharing
from rtlang.compiler.reorder import layout, reorder
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, Ref, RequestGraph, RoleEnd, RoleStart, Text

START, END = RoleStart("user"), RoleEnd()
DOCUMENT = ("a long document",)


def test_pieces_that_siblings_share_come_first() -> None:
    texts = tuple(Text(i, 0, (START, f"question {i}", *DOCUMENT, END)) for i in (1, 2))
    graph = RequestGraph((Text(0, None, ("system",)), *texts, Generate(3, 1, "x", SamplingParams())))
    after = reorder(graph, {i: ((f"question {i}",), DOCUMENT) for i in (1, 2)})
    assert after.nodes[1:3] == tuple(Text(i, 0, (START, *DOCUMENT, f"question {i}", END)) for i in (1, 2))
    assert (after.nodes[0], after.nodes[3]) == (graph.nodes[0], graph.nodes[3])


def test_pieces_that_more_runs_of_a_batch_share_come_first() -> None:
    shares = {("own",): 0.1, ("most",): 0.8, ("all",): 1.0, ("also all",): 1.0}
    pieces = tuple(shares)
    graph = RequestGraph((Text(0, None, (START, *(part for piece in pieces for part in piece), END)),))
    (after,) = reorder(graph, {0: pieces}, lambda piece: Sharing(shares[piece])).nodes
    assert after == Text(0, None, (START, "all", "also all", "most", "own", END))


def test_a_piece_of_several_parts_stays_whole() -> None:
    pieces = (("a", Ref(0)), ("b",))
    graph = RequestGraph((Text(1, None, ("x", "a", Ref(0), "b")),))
    (after,) = reorder(graph, {1: pieces}, lambda piece: Sharing(float(piece == ("b",)))).nodes
    assert after == Text(1, None, ("x", "b", "a", Ref(0)))


def test_a_text_alone_keeps_its_order() -> None:
    graph = RequestGraph((Text(0, None, ("b", "a")),))
    assert reorder(graph, {0: (("b",), ("a",))}) is graph
    assert layout(graph, {}) == {}


def test_equally_shared_pieces_are_in_one_order_in_all_instances() -> None:
    ranks = {("early",): 3, ("late",): 7}
    for written in ((("early",), ("late",)), (("late",), ("early",))):
        pieces = (("heading",), written[0], ("between",), written[1])
        graph = RequestGraph((Text(0, None, tuple(part for piece in pieces for part in piece)),))
        (after,) = reorder(graph, {0: pieces}, lambda piece: Sharing(1.0, ranks.get(piece))).nodes
        assert after == Text(0, None, ("heading", "early", "between", "late"))


def test_siblings_put_equally_shared_pieces_in_one_order() -> None:
    written = {1: ("b", "a", "own"), 2: ("a", "other", "b"), 3: ("b", "a")}
    graph = RequestGraph((Text(0, None, ("x",)), *(Text(i, 0, parts) for i, parts in written.items())))
    after = reorder(graph, {i: tuple((part,) for part in parts) for i, parts in written.items()})
    assert [node.parts for node in after.nodes[1:] if isinstance(node, Text)] == [
        ("b", "a", "own"),
        ("b", "a", "other"),
        ("b", "a"),
    ]
