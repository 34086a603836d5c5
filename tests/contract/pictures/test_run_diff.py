"""Differences between runs by path: what they say, and that they say all of it."""

from __future__ import annotations

import json
import random
import re

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.pictures.run_diff import Change, NodeText, diff_runs, marked_words, texts_of
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.pictures.svg import CHANGED
from rtlang.contract.request_graph import Generate, Text
from tests.support.servers.html_check import read_html

BEFORE = {"plan": NodeText("one two three"), "fork[0]/tip": NodeText("a"), "old": NodeText("gone")}
AFTER = {
    "plan": NodeText("one 2 three", num_tokens=4),
    "fork[0]/tip": NodeText("a", True, 9),
    "new": NodeText("<b>", num_tokens=1),
}


def test_each_path_is_the_same_changed_added_or_removed() -> None:
    found = diff_runs([(BEFORE, AFTER)])
    assert [(node.path, node.change.value) for node in found.nodes] == [
        ("plan", "changed"),
        ("fork[0]/tip", "same"),
        ("new", "added"),
        ("old", "removed"),
    ]
    assert [node.path for node in found.computed] == ["plan", "new"]
    assert found.num_tokens == 5
    assert not found.is_same
    assert diff_runs([(BEFORE, BEFORE)]).is_same


def test_the_text_shows_counts_and_both_sides() -> None:
    assert str(diff_runs([(BEFORE, AFTER)])).splitlines() == [
        "4 nodes: 1 same, 1 changed, 1 added, 1 removed; 2 computed (5 tokens), 1 reused",
        "~ plan (computed)",
        "    - one two three",
        "    + one 2 three",
        "+ new (computed)",
        "    + <b>",
        "- old",
        "    - gone",
    ]
    rows = str(diff_runs([(BEFORE, BEFORE), (BEFORE, AFTER)], rows_added=2))
    assert rows.startswith("7 nodes in 2 rows: ")
    assert "2 rows added, 0 removed" in rows
    assert "~ row 1: plan (computed)" in rows


def test_the_plain_form_is_json() -> None:
    plain = diff_runs([(BEFORE, AFTER)]).to_plain()
    assert json.loads(json.dumps(plain))[0] == {
        "row": 0,
        "path": "plan",
        "change": "changed",
        "before": "one two three",
        "after": "one 2 three",
        "is_reused": False,
    }


def test_html_marks_the_words_and_escapes_them() -> None:
    found = diff_runs([(BEFORE, AFTER)])
    root = read_html(found._repr_html_())
    assert [each.text for each in root.all("del")] == ["two"]
    assert [each.text for each in root.all("ins")] == ["2"]
    assert "&lt;b&gt;" in found._repr_html_()
    assert read_html(found.to_html("a <title>")).all("table")


@pytest.mark.parametrize("seed", range(20))
def test_without_its_marks_a_text_is_whole(seed: int) -> None:
    draw = random.Random(seed)
    before, after = ("".join(draw.choices("ab \n.é", k=draw.randrange(60))) for _ in range(2))
    for html, text in zip(marked_words(before, after), (before, after), strict=True):
        assert re.sub(r"</?(?:del|ins)>", "", html) == text


def test_texts_are_read_from_the_record_of_a_run() -> None:
    params = SamplingParams(n=2)
    nodes = (
        Text(0, None, ("x",)),
        Generate(1, 0, "a", params, path="a"),
        Generate(2, 0, "b", SamplingParams(), path="b"),
    )
    record = RunRecord(
        nodes,
        nodes,
        {
            1: NodeRecord(("p", "q"), ("stop", "cancelled"), num_tokens=(3, 1), is_replayed=True),
            2: NodeRecord(error="SpentError: no tokens"),
        },
        node_paths={1: "a", 2: "b", 3: "never"},
    )
    texts = texts_of(record)
    assert texts == {
        "a[0]": NodeText("p", True, 3),
        "a[1]": NodeText("(cancelled)", True, 1),
        "b": NodeText("SpentError: no tokens"),
    }
    page = diff_runs([({**texts, "a[0]": NodeText("other")}, texts)], record=record).to_html()
    assert page.count(CHANGED) == 2  # the box of a, filled and outlined
    assert [node.change for node in diff_runs([(texts, texts)]).nodes] == [Change.SAME] * 3
