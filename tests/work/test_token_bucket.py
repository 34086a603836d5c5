"""The bucket against a sum over all charges."""

from __future__ import annotations

import random

import pytest

from rtlang.work.token_bucket import TokenBucket
from tests.support.long_tests import sized


@pytest.mark.parametrize("seed", range(sized(20)))
def test_no_window_gets_more_than_the_bucket_and_what_refills(seed: int) -> None:
    rng = random.Random(seed)
    rate, now, spent = rng.choice([6.0, 600.0, 60_000.0]), 100.0, list[tuple[float, float]]()
    bucket = TokenBucket(rate, now)
    for _ in range(300):
        now += rng.choice([0.0, 0.01, 1.0, rng.random() * 30])
        if not bucket.wait_s(now):
            amount = rng.random() * rate / 4
            bucket.charge(amount, now)
            spent.append((now, amount))
    for index, (start, _) in enumerate(spent):
        total = 0.0
        for end, amount in spent[index:]:
            assert total <= rate + (end - start) * rate / 60 + 1e-6, "charged only while something was left"
            total += amount


def test_it_tells_how_long_to_wait() -> None:
    bucket = TokenBucket(60.0, 0.0)
    bucket.charge(90.0, 0.0)
    wait = bucket.wait_s(0.0)
    assert wait == pytest.approx(30.0, abs=0.01)
    assert bucket.wait_s(29.0) > 0
    assert bucket.wait_s(wait + 0.01) == 0
    bucket.set_rate(120.0)
    assert bucket.wait_s(31.0) == 0
