"""Return times: shares add up, and a principal's own replies outweigh the prior."""

from __future__ import annotations

import random

import pytest

from rtlang.engine.sessions.return_times import HORIZON_S, MAX_COUNT, NUM_BUCKETS, ReplyKind, ReturnTimes


@pytest.mark.parametrize("kind", ReplyKind)
def test_shares_follow_the_counts_of_a_simulation(kind: ReplyKind) -> None:
    generator, times = random.Random(1), ReturnTimes(kind)
    returns = [generator.lognormvariate(1.4, 1.2) if generator.random() < 0.7 else None for _ in range(400)]
    for seconds in returns:
        times.note_end() if seconds is None or seconds > HORIZON_S else times.note_return(seconds)
    for age, within in ((0.0, 4.0), (0.0, 60.0), (8.0, 8.0), (30.0, 100.0)):
        still = [each for each in returns if each is None or each >= age]
        share = sum(each is not None and each < age + within for each in still) / len(still)
        assert times.expected_share(age, within) == pytest.approx(share, abs=0.08)


def test_calls_return_sooner_than_final_answers_before_anything_is_known() -> None:
    calls, final = ReturnTimes(ReplyKind.CALLS), ReturnTimes(ReplyKind.FINAL)
    assert calls.expected_share(0.0, 60.0) > 0.9 > 0.4 > final.expected_share(0.0, 60.0)
    assert calls.expected_share(2 * HORIZON_S, 60.0) == final.expected_share(2 * HORIZON_S, 60.0) == 0.0
    for times in (calls, final):
        shares = [times.expected_share(0.0, 2.0**power) for power in range(12)]
        assert shares == sorted(shares)


def test_old_replies_are_forgotten() -> None:
    times = ReturnTimes(ReplyKind.FINAL)
    for _ in range(int(4 * MAX_COUNT)):
        times.note_end()
    for _ in range(int(4 * MAX_COUNT)):
        times.note_return(0.5)
    assert times.expected_share(0.0, 1.0) > 0.9
    assert len(ReplyKind.FINAL.prior) == len(ReplyKind.CALLS.prior) == NUM_BUCKETS + 1
