"""SVG pictures of graphs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.pictures.layout import draw
from rtlang.contract.pictures.svg import FAILED, HUES, graph_svg
from rtlang.contract.request_graph import Apply, Generate, Ref, RequestGraph, Text, all_nodes
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

SPACE = "{http://www.w3.org/2000/svg}"
ODD = "<script>alert(1)</script> \"quoted\" 'q' & \x00 \u202e \ud800 ]]>"


@pytest.mark.parametrize("seed", range(sized(60)))
def test_random_graphs_are_well_formed(seed: int) -> None:
    graph = random_graph(seed, most_nodes=20)
    root = ElementTree.fromstring(graph_svg(draw(graph.nodes), facts=lambda node_id: f"node {node_id}"))
    ids = [group.get("data-node") for group in root.iter(f"{SPACE}g") if group.get("data-node")]
    assert len(ids) == len(set(ids))
    assert {int(each) for each in ids if each is not None and int(each) >= 0} <= {
        node.node_id for node in all_nodes(graph.nodes)
    }
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    for rect in root.iter(f"{SPACE}rect"):
        x, y, w, h = (float(rect.get(name) or "nan") for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height


def test_any_text_is_escaped() -> None:
    graph = RequestGraph((Text(0, None, (ODD,)), Generate(1, 0, ODD, SamplingParams())))
    text = graph_svg(draw(graph.nodes), facts=lambda node_id: ODD)
    root = ElementTree.fromstring(text)
    assert "<script" not in text
    assert not list(root.iter(f"{SPACE}script"))
    assert any("alert(1)" in "".join(each.itertext()) for each in root.iter(f"{SPACE}title"))


def test_failed_nodes_have_another_color() -> None:
    nodes = [Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams())]
    root = ElementTree.fromstring(graph_svg(draw(nodes), color=lambda node_id: FAILED if node_id == 1 else None))
    fills = [
        rect.get("fill")
        for group in root.iter(f"{SPACE}g")
        if group.get("data-node") == "1"
        for rect in group
        if rect.tag == f"{SPACE}rect"
    ]
    assert fills
    assert fills[0] not in HUES.values()


def test_a_value_has_a_dashed_arrow_and_one_tip() -> None:
    nodes = [Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams()), Apply(2, "upper", (Ref(1),))]
    root = ElementTree.fromstring(graph_svg(draw(nodes)))
    paths = list(root.iter(f"{SPACE}path"))
    lines = [path for path in paths if path.get("fill") == "none"]
    assert [bool(path.get("stroke-dasharray")) for path in lines] == [False, True]
    assert len(paths) == 2 * len(lines)
