"""Known outcomes: their pieces and events."""

from __future__ import annotations

from rtlang.contract.errors import DeadlineError
from rtlang.contract.events import Completion, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.runs.known import KnownOutcome

END = NodeFinished(
    1,
    2,
    "x",
    (Completion("abc", (1, 2), FinishReason.STOP), Completion("d", (3,), FinishReason.STOP)),
    Usage(1, 0, 3),
    Timing(),
)


def test_pieces_follow_the_chunks() -> None:
    outcome = KnownOutcome(END, ((0, 1, 1), (1, 1, 1), (0, 2, 1)))
    assert outcome.deltas(5, 6) == [
        TextDelta(5, 6, 0, "a", (1,)),
        TextDelta(5, 6, 1, "d", (3,)),
        TextDelta(5, 6, 0, "bc", (2,)),
    ]
    assert [delta.text for delta in KnownOutcome(END).deltas(5, 6)] == ["abc", "d"]
    assert KnownOutcome(DeadlineError("late")).deltas(5, 6) == []


def test_the_event_is_of_the_new_node() -> None:
    event = KnownOutcome(END).event(5, 6, "y")
    assert (event.graph_id, event.node_id, event.name, event.is_replayed) == (5, 6, "y", True)
    assert not KnownOutcome(END, is_replayed=False).event(5, 6, "y").is_replayed
