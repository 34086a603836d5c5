"""Outcomes and tokens of earlier runs in messages."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ProtocolError, RequestError
from rtlang.contract.events import Completion, NodeFinished, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.runs.known import KnownOutcome
from rtlang.protocol.continuation import continuation_to_wire, continue_from_from_wire, known_from_wire

END = NodeFinished(
    0, 3, "x", (Completion("ab", (1, 2), FinishReason.STOP),), Usage(4, 1, 2), Timing(), value=[1, 1 << 70]
)


def test_outcomes_and_tokens_come_back_as_they_were() -> None:
    known = {3: KnownOutcome(END, is_replayed=False), 5: KnownOutcome(RequestError("no"))}
    wire = continuation_to_wire(known, {7: [[1, 2], []]})
    assert wire["continue_from"] == [{"n": 7, "ids": [[1, 2], []]}]
    back = known_from_wire(wire)
    assert back[3] == known[3]
    assert isinstance(back[5].end, RequestError)
    assert back[5].end.message == "no"
    assert continue_from_from_wire(wire) == {7: [(1, 2), ()]}


def test_fields_of_some_nodes_are_chosen_and_empty_ones_left_out() -> None:
    known = {3: KnownOutcome(END)}
    assert continuation_to_wire(known, {7: [[1]]}, {7}) == {"continue_from": [{"n": 7, "ids": [[1]]}]}
    assert continuation_to_wire(known, {7: [[1]]}, {8}) == {}
    assert known_from_wire({}) == {}
    assert continue_from_from_wire({}) == {}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"known": 1}, "known"),
        ({"known": [1]}, "known"),
        ({"known": [{"e": "call", "n": 1}]}, "known"),
        ({"known": [{"e": "end", "n": -1}]}, None),
        ({"continue_from": {}}, "continue_from"),
        ({"continue_from": [1]}, "continue_from"),
        ({"continue_from": [{"n": 1}]}, "ids"),
        ({"continue_from": [{"n": 1, "ids": [["a"]]}]}, "ids"),
        ({"continue_from": [{"n": "1", "ids": []}]}, "n"),
    ],
)
def test_malformed_fields_are_refused(message: dict[str, Any], param: str | None) -> None:
    read = known_from_wire if "known" in message else continue_from_from_wire
    with pytest.raises(ProtocolError) as caught:
        read(message)
    assert param is None or caught.value.param == param
