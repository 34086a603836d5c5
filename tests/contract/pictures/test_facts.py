"""The words about nodes after a run."""

from __future__ import annotations

import pytest

from rtlang.contract.events import Timing
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.pictures.facts import facts_of, labels_of_run, seconds
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.request_graph import Block, Const, Generate, Node, Repeat, Select, Text

NODES: tuple[Node, ...] = (
    Text(0, None, ("Hi",)),
    Generate(1, 0, "x", SamplingParams(max_tokens=9)),
    Select(2, 1, "y", ("red", "blue")),
)
RECORD = RunRecord(
    NODES,
    NODES,
    {
        1: NodeRecord(("out",), ("stop",), None, Usage(20, 12, 3), Timing(0.01, 0.02, 0.05), 0.05, (3,), (None,)),
        2: NodeRecord(("red",), ("stop",), None, Usage(30, 0, 0), Timing(0, 0, 1.5), 1.6, (1,), (None,), (0.25, 0.75)),
    },
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0 ms"),
        (0.0001234, "0.123 ms"),
        (0.0000258, "26 µs"),
        (0.0419, "41.9 ms"),
        (0.3222, "322 ms"),
        (1.2345, "1.23 s"),
        (75, "1 min 15 s"),
    ],
)
def test_durations_have_three_digits(value: float, words: str) -> None:
    assert seconds(value) == words


def test_a_box_shows_the_text_and_what_it_cost() -> None:
    label = labels_of_run(NODES, RECORD)
    assert label(NODES[0]).text == "Hi"
    assert (label(NODES[1]).text, label(NODES[1]).notes) == ("out", ("50 ms", "20 → 3 tok", "12 cached"))
    assert label(NODES[2]).notes == ("1.5 s", "30 tok")


def test_a_box_that_ran_in_a_loop_shows_how_often() -> None:
    record = RunRecord(NODES, NODES, {1: RECORD.nodes[1], 5: RECORD.nodes[1]}, copies={1: (1, 5)})
    assert labels_of_run(NODES, record)(NODES[1]).notes == ("2 times", "100 ms", "40 → 6 tok", "24 cached")
    assert "iteration 2" in facts_of(NODES, record)(1)


def test_pointing_at_a_box_tells_everything() -> None:
    words = facts_of(NODES, RECORD)
    for part in (
        "#1 gen x",
        "≤ 9 tokens",
        "20 prompt tokens (12 cached), 3 generated",
        "first token after 20 ms",
        "out",
        "stop",
    ):
        assert part in words(1)
    assert "75.0% blue" in words(2)
    assert "left out" in words(-5)


def test_a_failed_box_shows_its_error() -> None:
    record = RunRecord(NODES, NODES, {1: NodeRecord(error="RequestError: no room")})
    assert labels_of_run(NODES, record)(NODES[1]).text == "RequestError: no room"
    assert "no room" in facts_of(NODES, record)(1)


def test_what_a_decision_did_without_is_cancelled_and_a_loop_keeps_its_condition() -> None:
    nodes: tuple[Node, ...] = (*NODES, Repeat(3, 2, Block(()), Const(True), 2, 1))
    record = RunRecord(nodes, nodes, {1: NodeRecord(("",), ("cancelled",)), 3: NodeRecord(value="None")})
    label = labels_of_run(nodes, record)
    assert (label(nodes[1]).text, label(nodes[1]).notes) == ("", ("cancelled",))
    assert label(nodes[3]).text == "until True"
    assert labels_of_run(nodes, RunRecord(nodes, nodes, {3: NodeRecord(value="7")}))(nodes[3]).text == "until True → 7"
