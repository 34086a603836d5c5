"""Return times: quantiles follow the replies of a principal, which outweigh the prior."""

from __future__ import annotations

import random

import pytest

from rtlang.engine.sessions.return_times import HORIZON_S, MAX_COUNT, NUM_BUCKETS, ReplyKind, ReturnTimes


@pytest.mark.parametrize("kind", ReplyKind)
def test_quantiles_follow_the_returns_of_a_simulation(kind: ReplyKind) -> None:
    generator, times = random.Random(1), ReturnTimes(kind)
    returns = [generator.lognormvariate(1.4, 1.2) if generator.random() < 0.7 else None for _ in range(400)]
    for seconds in returns:
        times.note_end() if seconds is None or seconds > HORIZON_S else times.note_return(seconds)
    came = sorted(each for each in returns if each is not None)
    for share in (0.25, 0.5, 0.75, 0.95):
        exact = came[int(share * len(came))]
        assert (
            exact / 2 <= times.overdue_s(share) <= 4 * exact
        )  # the end of its bucket, or of the next one for the prior


def test_calls_return_sooner_than_final_answers_before_anything_is_known() -> None:
    calls, final = ReturnTimes(ReplyKind.CALLS), ReturnTimes(ReplyKind.FINAL)
    for kind, times in ((ReplyKind.CALLS, calls), (ReplyKind.FINAL, final)):
        quantiles = [times.overdue_s(share / 100) for share in range(101)]
        assert quantiles == sorted(quantiles)
        assert quantiles[-1] <= HORIZON_S
        assert len(kind.prior) == NUM_BUCKETS + 1
    assert 8 * calls.overdue_s(0.5) <= final.overdue_s(0.5)


def test_old_replies_are_forgotten_and_no_return_counts_as_none() -> None:
    times = ReturnTimes(ReplyKind.CALLS)
    for _ in range(int(4 * MAX_COUNT)):
        times.note_return(100.0)
    assert times.overdue_s(0.5) == 128.0
    for _ in range(int(4 * MAX_COUNT)):
        times.note_return(0.7)
    times.note_end()
    assert times.overdue_s(0.9) == 1.0
