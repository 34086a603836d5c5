"""Mermaid flowcharts, read back by a small parser of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Arg, Const, Generate, Node, Ref, Repeat, RequestGraph, Switch, Text, all_nodes
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

NODE = re.compile(r'(n\d+)(\(\[|\[\[|\[/|\[\(|\[|\{\{|\{|>)"([^"]*)"(\]\)|\]\]|/\]|\)\]|\]|\}\}|\})')
PAIRS = {"([": "])", "[[": "]]", "[/": "/]", "[(": ")]", "[": "]", "{{": "}}", "{": "}", ">": "]"}


@dataclass
class Chart:
    """What a flowchart says: labels by node, the subgraph around each node, and its arrows."""

    labels: dict[str, str] = field(default_factory=dict)
    inside: dict[str, str | None] = field(default_factory=dict)
    solid: list[tuple[str, str]] = field(default_factory=list)
    dashed: list[tuple[str, str]] = field(default_factory=list)


def parse(text: str) -> Chart:
    """Read the part of the language that a line-based chart needs; anything else is an error."""
    head, *lines = text.split("\n")
    assert head == "flowchart TD"
    assert lines.pop() == ""
    chart = Chart()
    open_graphs: list[str] = []
    for line in map(str.strip, lines):
        if line == "end":
            open_graphs.pop()
        elif match := re.fullmatch(r'subgraph (b\d+_\d+)\["([^"]*)"\]', line):
            open_graphs.append(match[1])
        elif match := re.fullmatch(r"(n\d+) (-->|-\.->) (n\d+)", line):
            (chart.solid if match[2] == "-->" else chart.dashed).append((match[1], match[3]))
        else:
            match = NODE.fullmatch(line)
            assert match is not None, line
            assert PAIRS[match[2]] == match[4]
            assert match[1] not in chart.labels
            chart.labels[match[1]] = match[3]
            chart.inside[match[1]] = open_graphs[-1] if open_graphs else None
    assert not open_graphs
    return chart


def shown(label: str) -> str:
    """The label as a reader sees it."""
    label = label.replace("\u200b", "")
    return unescape(re.sub(r"#(\d+);", lambda match: f"&#{match[1]};", re.sub(r"<b>|</b>|<br/>", " ", label)))


def expected_arrows(graph: RequestGraph) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    solid, dashed = [], []
    for node in all_nodes(graph.nodes):
        if getattr(node, "parent", None) is not None:
            solid.append((f"n{node.parent}", f"n{node.node_id}"))  # type: ignore[union-attr]
        read: list[object] = []
        for name in ("parts", "args", "of", "by"):
            read.extend(getattr(node, name, None) or ())
        read.extend(getattr(node, name) for name in ("on", "until") if hasattr(node, name))
        sources = dict.fromkeys(each.node_id for each in read if isinstance(each, Ref))
        dashed.extend((f"n{source}", f"n{node.node_id}") for source in sources)
    return solid, dashed


@pytest.mark.parametrize("seed", range(sized(150)))
def test_random_graphs_are_written_whole(seed: int) -> None:
    graph = random_graph(seed, most_nodes=20)
    chart = parse(graph.to_mermaid())
    assert sorted(chart.labels) == sorted(f"n{node.node_id}" for node in all_nodes(graph.nodes))
    solid, dashed = expected_arrows(graph)
    assert sorted(chart.solid) == sorted(solid)
    assert sorted(chart.dashed) == sorted(dashed)


def blocks(nodes: tuple[Node, ...], around: str | None, found: dict[str, str | None]) -> None:
    for node in nodes:
        found[f"n{node.node_id}"] = around
        inner = [block for _, block in node.cases] if isinstance(node, Switch) else []
        if isinstance(node, Switch) and node.default is not None:
            inner.append(node.default)
        if isinstance(node, Repeat):
            inner.append(node.body)
        for number, block in enumerate(inner):
            blocks(block.nodes, f"b{node.node_id}_{number}", found)


@pytest.mark.parametrize("seed", range(sized(40)))
def test_blocks_are_nested_subgraphs(seed: int) -> None:
    graph = random_graph(seed, most_nodes=20)
    found: dict[str, str | None] = {}
    blocks(graph.nodes, None, found)
    assert parse(graph.to_mermaid()).inside == found


@pytest.mark.parametrize(
    "text",
    [
        'say "hi"',
        "a[b](c){d}|e<f>g",
        "end",
        "100%% --> n1; style n1 fill:red",
        "</script><script>alert(1)</script>",
        "#quot; &amp; `code` \\",
        "1. no list",
        "emoji 😀 漢字 é",
    ],
)
def test_labels_are_read_back_as_they_are(text: str) -> None:
    graph = RequestGraph((Text(0, None, (text,)), Generate(1, 0, text, SamplingParams())))
    chart = parse(graph.to_mermaid())
    assert text in shown(chart.labels["n0"])
    assert text in shown(chart.labels["n1"])
    assert not set('"[]{}|`&') & set(chart.labels["n0"])


@pytest.mark.parametrize(("text", "special"), [("a\\nb", "\\n"), ("$$x^2$$", "$$"), ("fa:fa-car fab:x", ":fa")])
def test_what_mermaid_replaces_in_labels_is_taken_apart(text: str, special: str) -> None:
    label = parse(RequestGraph((Text(0, None, (text,)),)).to_mermaid()).labels["n0"]
    decoded = unescape(re.sub(r"#(\d+);", lambda match: f"&#{match[1]};", label))
    assert special not in decoded
    assert text in shown(label)


def test_control_characters_do_not_break_lines() -> None:
    graph = RequestGraph((Text(0, None, ("a\nb\rc\x00d\u2028e\u202ef",)),))
    text = graph.to_mermaid()
    assert len(text.splitlines()) == 2
    assert "a⏎b‹U+000D›c" in shown(parse(text).labels["n0"])


def test_long_texts_are_cut() -> None:
    graph = RequestGraph((Text(0, None, ("x" * 10_000,)),))
    assert len(graph.to_mermaid()) < 200


def test_an_empty_graph_is_a_chart() -> None:
    assert parse(RequestGraph().to_mermaid()) == Chart()


def test_constants_and_inputs_are_words_not_arrows() -> None:
    graph = RequestGraph(
        (Text(0, None, (Arg("q"),)), Switch(1, 0, Const("a"), (), None)),
        ("q",),
    )
    chart = parse(graph.to_mermaid())
    assert chart.dashed == []
    assert "{q}" in shown(chart.labels["n0"])
    assert 'on "a"' in shown(chart.labels["n1"])
