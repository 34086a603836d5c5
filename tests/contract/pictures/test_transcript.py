"""Texts of runs as HTML."""

from __future__ import annotations

from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.pictures.transcript import MAX_DEPTH, MAX_SPANS, transcript
from rtlang.contract.request_graph import Generate, Node, RoleEnd, RoleStart, Text
from tests.support.servers.html_check import read_html

PARAMS = SamplingParams()
ODD = "<script>alert('1')</script> \"quoted\" & \x00 \u202eabc \ud800"


def made(text: str, **others: object) -> NodeRecord:
    return NodeRecord((text,), ("stop",), None, Usage(9, 4, 2), num_tokens=(2,), logprobs=(-1.25,), **others)  # type: ignore[arg-type]


def test_messages_have_roles_and_generated_texts_have_colors_and_facts() -> None:
    nodes: tuple[Node, ...] = (
        Text(0, None, (RoleStart("user"), "Hi", RoleEnd(), RoleStart("assistant"))),
        Generate(1, 0, "answer", PARAMS),
        Text(2, 1, (RoleEnd(),)),
    )
    root = read_html(transcript(RunRecord(nodes, nodes, {1: made("Yes.")})))
    assert [each.words for each in root.all(kind="rt-role")] == ["user", "assistant"]
    assert [each.words for each in root.all(kind="rt-body")] == ["Hi", "Yes."]
    (span,) = root.all(kind="rt-span")
    (key,) = root.all(kind="rt-key")
    assert (
        set(span.attributes["class"].split()) & {"rt-c0"} == set(key.attributes["class"].split()) & {"rt-c0"} != set()
    )
    for part in ("answer", "2 tokens", "log-probability -1.25", "9 prompt tokens (4 cached)"):
        assert part in span.attributes["title"]


def test_any_text_is_escaped() -> None:
    nodes: tuple[Node, ...] = (Text(0, None, (ODD,)), Generate(1, 0, ODD, PARAMS), Generate(2, 1, ODD, PARAMS))
    html = transcript(RunRecord(nodes, nodes, {1: made(ODD), 2: NodeRecord(error=ODD)}))
    root = read_html(html)
    assert not root.all("script")
    assert root.words.count("<script>alert('1')</script>") == 4
    assert "\x00" not in html
    assert "\u202e" not in html


def test_errors_and_missing_texts_are_shown() -> None:
    nodes: tuple[Node, ...] = (Text(0, None, ("a",)), Generate(1, 0, "x", PARAMS), Generate(2, 1, "y", PARAMS))
    root = read_html(transcript(RunRecord(nodes, nodes, {1: NodeRecord(error="RequestError: no room")})))
    assert [each.words for each in root.all(kind="rt-bad")] == ["RequestError: no room"]
    assert [each.words for each in root.all(kind="rt-span")] == ["RequestError: no room", "…"]


def test_many_texts_are_cut_and_it_says_so() -> None:
    nodes: tuple[Node, ...] = (
        Text(0, None, ("start",)),
        *(Text(number, 0, (f"branch {number}",)) for number in range(1, MAX_SPANS + 500)),
    )
    html = transcript(RunRecord(nodes, nodes))
    assert "more pieces of text are not shown" in html
    assert len(read_html(html).all(kind="rt-seq")) == MAX_SPANS


def test_deep_branches_do_not_nest_without_end() -> None:
    nodes: list[Node] = [Text(0, None, ("0",))]
    for number in range(1, 601, 2):
        nodes += [Text(number, max(number - 2, 0), ("a",)), Text(number + 1, max(number - 2, 0), ("b",))]
    html = transcript(RunRecord(tuple(nodes), tuple(nodes)))
    deepest = depth = 0
    for part in html.split("<div")[1:]:
        depth += 1
        deepest = max(deepest, depth)
        depth -= part.count("</div>")
    assert depth == 0
    assert deepest <= 3 * MAX_DEPTH + 5
    assert html.count(">b<") == 300
