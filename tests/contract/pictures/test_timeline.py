"""Timelines of runs."""

from __future__ import annotations

from xml.etree import ElementTree

from rtlang.contract.events import Timing
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.pictures.timeline import MAX_ROWS, PHASES, phases_of, timeline_svg
from rtlang.contract.request_graph import Block, Const, Decide, Generate, Ref, Repeat, Text

SPACE = "{http://www.w3.org/2000/svg}"


def ended(at: float, timing: Timing, **others: object) -> NodeRecord:
    return NodeRecord(("t",), ("stop",), None, Usage(1, 0, 1), timing, at, (1,), (None,), **others)  # type: ignore[arg-type]


def bars(svg: str) -> dict[str, list[tuple[str, float, float]]]:
    """For each node, its bars: color, left edge and width."""
    root = ElementTree.fromstring(svg)
    return {
        group.get("data-node") or "": [
            (rect.get("fill") or "", float(rect.get("x") or 0), float(rect.get("width") or 0))
            for rect in group.iter(f"{SPACE}rect")
        ]
        for group in root.iter(f"{SPACE}g")
    }


def test_bars_are_where_the_times_say() -> None:
    record = RunRecord(nodes={3: ended(2.0, Timing(0.5, 1.0, 2.0)), 5: ended(4.0, Timing(0.0, 1.0, 2.0))})
    found = bars(timeline_svg(record))
    assert list(found) == ["3", "5"]
    (waiting, x0, w0), (reading, x1, w1), (generating, x2, w2) = found["3"]
    assert (waiting, reading, generating) == tuple(list(PHASES.values())[:3])
    assert round(w1 / w0, 1) == 1.0
    assert round(w2 / w0, 1) == 2.0
    assert round(x0 + w0 - x1) == round(x1 + w1 - x2) == 0
    assert len(found["5"]) == 2
    assert round(found["5"][0][1] - (x2 + w2)) == 0


def test_values_and_failures_are_shown() -> None:
    record = RunRecord(
        nodes={
            1: NodeRecord(value="v", timing=Timing(0, 0, 1.0), ended_s=1.0),
            2: NodeRecord(error="E: <bad>", ended_s=0.5),
        },
        names={1: "search", 2: "</script>"},
    )
    svg = timeline_svg(record)
    assert "failed" in svg
    assert "<bad>" not in svg
    assert bars(svg)["1"][0][0] == PHASES["outside of the model"]
    assert phases_of(record) == ["outside of the model"]


def test_a_run_without_times_has_no_timeline() -> None:
    assert timeline_svg(RunRecord()) == ""
    assert timeline_svg(RunRecord(nodes={1: NodeRecord(value="v")})) == ""


def test_a_long_timeline_is_cut_and_says_so() -> None:
    record = RunRecord(nodes={number: ended(number + 1.0, Timing(0, 0, 1.0)) for number in range(MAX_ROWS + 50)})
    svg = timeline_svg(record)
    assert len(bars(svg)) == MAX_ROWS
    assert "50 more nodes are not shown" in svg


def test_ticks_are_round_and_labels_stay_inside() -> None:
    for end in (1e-4, 0.037, 1.0, 9.99, 1234.5):
        svg = timeline_svg(RunRecord(nodes={1: ended(end, Timing(0, 0, end))}))
        root = ElementTree.fromstring(svg)
        ticks = [each for each in root.iter(f"{SPACE}text") if each.get("text-anchor") == "middle"]
        assert 4 <= len(ticks) <= 12
        width = float((root.get("viewBox") or "").split()[2])
        assert all(float(each.get("x") or 0) + 25 <= width for each in ticks)


def test_branches_loops_and_decisions_are_shown_as_spans_of_others_under_their_names() -> None:
    body = Block((Generate(2, 1, "x", SamplingParams()),), 2)
    graph = (Text(0, None, ("a",)), Repeat(1, 0, body, Const(False), 2, 1), Decide(5, "vote", (Ref(1),)))
    spans = NodeRecord(value="v", timing=Timing(0, 0, 1.0), ended_s=1.0)
    record = RunRecord(
        graph,
        nodes={1: spans, 2: ended(0.5, Timing(0, 0.1, 0.5)), 3: ended(1.0, Timing(0, 0.1, 0.5)), 5: spans},
        copies={2: (2, 3)},
    )
    svg = timeline_svg(record)
    found = bars(svg)
    assert {found["1"][0][0], found["5"][0][0]} == {PHASES["branches, loops and decisions"]}
    assert phases_of(record) == [*list(PHASES)[:3], "branches, loops and decisions"]
    words = [each.text for each in ElementTree.fromstring(svg).iter(f"{SPACE}text") if each.get("text-anchor") == "end"]
    assert sorted(word or "" for word in words) == ["repeat", "vote", "x", "x"]
