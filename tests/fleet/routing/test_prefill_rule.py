"""Which prompts are computed elsewhere, by the measured times of replicas."""

from __future__ import annotations

import pytest

from rtlang.fleet.routing.prefill_rule import MIN_TOKENS, UNMEASURED_TOKENS, PrefillRule
from rtlang.fleet.routing.router import ProgramWork


def prompt(num_tokens: int) -> ProgramWork:
    return ProgramWork(tuple(range(num_tokens // 64)), 64.0, 10_000.0)


def test_without_measurements_long_prompts_are_computed_elsewhere() -> None:
    rule = PrefillRule()
    for _ in range(2):
        assert rule.is_worthwhile(prompt(int(UNMEASURED_TOKENS)))
        assert not rule.is_worthwhile(prompt(int(UNMEASURED_TOKENS) - 64))
        rule.report("a", {"prefill_ns": 1, "running": 3})
    assert not rule.is_worthwhile(prompt(1024), 600.0), "the other has most of it"


@pytest.mark.parametrize(
    ("prefill_ns", "fetch_ns", "expected"),
    [
        (1e6, 50_000, True),  # 1.02 s of computing, 51 ms of fetching and 10 ms of moving
        (1e6, 95_000, False),  # 97 ms and 10 ms
        (1e5, 1, True),  # 102 ms and 10 ms
        (9e4, 1, False),
    ],
)
def test_a_prompt_is_computed_elsewhere_where_that_takes_ten_times_as_long_as_handing_it_over(
    prefill_ns: float, fetch_ns: float, expected: bool
) -> None:
    rule = PrefillRule()
    rule.report("a", {"prefill_ns": prefill_ns, "fetch_ns": None})
    rule.report("b", {"fetch_ns": fetch_ns})
    assert rule.is_worthwhile(prompt(1024)) == expected
    assert not rule.is_worthwhile(prompt(int(MIN_TOKENS) - 64))
    rule.forget("b")
    assert rule.is_worthwhile(prompt(1024)), "unknown again"


def test_the_times_of_replicas_are_averaged() -> None:
    rule = PrefillRule(gain=1.0)
    for name, ns in (("a", 0), ("b", 400_000)):
        rule.report(name, {"prefill_ns": ns, "fetch_ns": 150_000})
    assert rule.is_worthwhile(prompt(1024))
    rule.report("b", {"prefill_ns": 200_000})
    assert not rule.is_worthwhile(prompt(1024))
