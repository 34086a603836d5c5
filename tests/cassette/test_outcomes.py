"""Outcomes survive storage to the last bit, with the pieces in which their texts came."""

from __future__ import annotations

import math

import msgpack
import pytest

from rtlang.cassette.outcomes import Kept, from_stored, how_kept, to_stored
from rtlang.contract.errors import BudgetError, CassetteError, DeadlineError, OverloadError
from rtlang.contract.events import Completion, NodeFailed, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage

LOGPROBS = (TokenLogprob(1, -0.1, ((1, -0.1), (2, -math.inf))), TokenLogprob(2, -1e-300), TokenLogprob(3, -1 / 3))
EVENT = NodeFinished(
    7,
    3,
    "x",
    (
        Completion("héllo", (1, 2, 3), FinishReason.STOP, "\n", LOGPROBS),
        Completion("", (), FinishReason.LENGTH),
    ),
    Usage(5, 4, 3),
    Timing(0.1, 0.2, 1 / 3),
    (0.5, -math.inf),
    (1.0, 0.0),
)
DELTAS = [TextDelta(7, 3, 0, "hé", (1,)), TextDelta(7, 3, 0, "", (2,)), TextDelta(7, 3, 0, "llo", (3,))]


def stored(event: NodeFinished | NodeFailed, deltas: list[TextDelta]) -> object:
    return msgpack.unpackb(msgpack.packb(to_stored(event, deltas)))


def test_a_finished_node_comes_back_as_it_was() -> None:
    outcome = from_stored("p", stored(EVENT, DELTAS))
    assert outcome.deltas(7, 3) == DELTAS
    event = outcome.event(7, 3, "x")
    assert event.is_replayed
    assert event.completions == EVENT.completions
    assert (event.usage, event.timing, event.scores, event.probabilities) == (
        EVENT.usage,
        EVENT.timing,
        EVENT.scores,
        EVENT.probabilities,
    )


def test_pieces_that_are_not_the_text_become_one() -> None:
    outcome = from_stored("p", stored(EVENT, DELTAS[:2]))
    assert outcome.deltas(7, 3) == [TextDelta(7, 3, 0, "héllo", (1, 2, 3))]


def test_errors_that_come_again_are_kept_with_their_facts() -> None:
    failed = NodeFailed(7, 3, "x", BudgetError(3, 9))
    assert how_kept(failed) is Kept.ALL
    error = from_stored("p", stored(failed, [])).end
    assert isinstance(error, BudgetError)
    assert (error.max_tokens, error.needed, error.message) == (3, 9, failed.error.message)


@pytest.mark.parametrize("error", [OverloadError("full", 1.0), DeadlineError("late")])
def test_errors_of_the_moment_are_not(error: OverloadError | DeadlineError) -> None:
    assert how_kept(NodeFailed(7, 3, "x", error)) is Kept.NO


@pytest.mark.parametrize("data", [None, [1], [{}, []], [{"e": "end"}, []], [{"e": "error", "code": 1}, []]])
def test_another_form_is_an_error(data: object) -> None:
    with pytest.raises(CassetteError, match="unknown form"):
        from_stored("p", data)
