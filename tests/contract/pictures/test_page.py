"""HTML pages and fragments."""

from __future__ import annotations

import re
import time

import pytest

from rtlang.contract.events import Timing
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.pictures.page import (
    graph_fragment,
    graph_page,
    run_fragment,
    run_page,
    table_fragment,
)
from rtlang.contract.pictures.page_style import NUM_COLORS, SCRIPT, TRANSCRIPT_CSS
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Text, all_nodes
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph
from tests.support.servers.html_check import read_html

PARAMS = SamplingParams()
ODD = "</script><script>alert(1)</script></style>\"'&\x00\u202e\ud800"
NODES: tuple[Node, ...] = (Text(0, None, (ODD,)), Generate(1, 0, ODD, PARAMS), Generate(2, 1, "second", PARAMS))
RECORD = RunRecord(
    NODES,
    NODES,
    {
        1: NodeRecord((ODD,), ("stop",), None, Usage(9, 4, 2), num_tokens=(2,), logprobs=(None,)),
        2: NodeRecord(error=ODD),
    },
    names={1: ODD, 2: "second"},
    breaks=(f"file.py:3: needs {ODD}",),
    total=Usage(9, 4, 2),
    seconds=0.25,
    error=ODD,
    returned=ODD,
)


@pytest.mark.parametrize("seed", range(sized(30)))
def test_pages_of_random_graphs_are_whole(seed: int) -> None:
    graph = random_graph(seed, most_nodes=20)
    root = read_html(graph.to_html())
    assert len(root.all("svg")) == 1
    assert len(root.all("script")) == 1
    nodes = [each for each in root.all(kind="rt-box") if each.attributes["data-node"] != "-"]
    assert 0 < len(nodes) <= len(list(all_nodes(graph.nodes)))
    assert all(each.all("title") for each in nodes)


@pytest.mark.parametrize(
    "html", [graph_page(NODES, ODD), run_page(RECORD, ODD), graph_fragment(NODES), run_fragment(RECORD)], ids=range(4)
)
def test_any_text_is_escaped(html: str) -> None:
    root = read_html(html)
    scripts = root.all("script")
    assert all(each.text == SCRIPT for each in scripts)
    assert "alert(1)" in root.words
    assert all(len(root.all(tag)) <= 1 for tag in ("script", "style"))
    assert not {"\x00", "\u202e"} & set(html)


def test_a_run_page_shows_everything() -> None:
    words = read_html(run_page(RECORD, "my run")).words
    for part in (
        "my run",
        "Graph breaks",
        "file.py:3",
        "Text",
        "9 prompt tokens (4 cached), 2 generated",
        "250 ms",
        "returned",
    ):
        assert part in words
    assert "1 graph break" in words


def test_a_page_needs_no_network_and_no_script_for_its_picture() -> None:
    html = graph_page(NODES, "x")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    assert html.index("<svg") < html.index("<script>")
    assert "prefers-color-scheme: dark" in html


def test_a_large_graph_is_cut_says_so_and_is_quick() -> None:
    nodes: list[Node] = [Text(0, None, ("start",))]
    while len(nodes) < 10_000:
        number = len(nodes)
        nodes.append(Generate(number, 0 if number % 7 == 1 else number - 1, f"name {number}", PARAMS))
    started = time.process_time()
    html = RequestGraph(tuple(nodes)).to_html()
    record = RunRecord(
        tuple(nodes),
        tuple(nodes),
        {
            node.node_id: NodeRecord(("text",), ("stop",), None, Usage(9, 4, 2), Timing(0, 1, 2), 2.0, (1,), (None,))
            for node in nodes[1:]
        },
    )
    run = run_page(record, "large")
    assert time.process_time() - started < 10
    assert "leaves out 9600 of 10000 nodes" in html
    assert len(html) < 1_500_000
    assert len(run) < 3_000_000
    assert "more pieces of text are not shown" in run


def test_an_empty_graph_has_a_page() -> None:
    assert "no nodes" in read_html(RequestGraph().to_html()).words
    read_html(RequestGraph()._repr_html_())


def test_tables_are_escaped() -> None:
    root = read_html(table_fragment(ODD, ["a", ODD], [[1, ODD], [None, "x"]], ODD, ODD))
    assert [each.words for each in root.all("td")][:1] == ["1"]
    assert root.words.count("alert(1)") == 5


def test_every_color_of_a_text_has_a_style() -> None:
    for number in range(NUM_COLORS):
        assert f".rt .rt-c{number} " in TRANSCRIPT_CSS
