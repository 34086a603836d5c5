"""Loads have the lengths, rates and groups that they say."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import mean

import pytest

from rtlang.bench.workloads import load


def test_lengths_are_within_their_ranges_and_short_ones_are_as_many_as_long_ones() -> None:
    programs = load.at_once(1000, longest_prompt=4096, seed=0)
    prompts = [each.calls[0].num_prompt for each in programs]
    assert min(prompts) >= 16
    assert max(prompts) <= 4096
    assert mean(each < 256 for each in prompts) == pytest.approx(
        0.5, abs=0.05
    )  # the middle of 16 and 4,096 on a log scale
    assert all(16 <= call.num_output <= 128 for each in programs for call in each.calls)
    assert Counter(len(each.calls) for each in programs)[3] == pytest.approx(300, abs=60)
    assert {each.arrival_s for each in programs} == {0.0}
    assert programs == load.at_once(1000, longest_prompt=4096, seed=0)
    assert programs[0].num_tokens == sum(call.num_prompt + call.num_output for call in programs[0].calls)


def test_arrivals_have_the_mean_rate_with_and_without_bursts() -> None:
    programs = load.at_once(8000, longest_prompt=64, seed=0)
    for spread in (load.poisson, load.bursts):
        arriving = spread(programs, 4.0, seed=1)
        assert [each.calls for each in arriving] == [each.calls for each in programs]
        assert arriving[-1].arrival_s == pytest.approx(2000, rel=0.15)


def test_waits_of_a_poisson_process_are_exponential() -> None:
    arriving = load.poisson(load.at_once(8000, longest_prompt=64, seed=0), 1.0, seed=2)
    waits = [after.arrival_s - before.arrival_s for before, after in pairwise(arriving)]
    assert mean(each > 1 for each in waits) == pytest.approx(0.3679, abs=0.03)
    assert mean(each > 2 for each in waits) == pytest.approx(0.1353, abs=0.02)


def test_a_burst_arrives_at_once() -> None:
    arriving = load.bursts(load.at_once(40, longest_prompt=64, seed=0), 1.0, seed=0)
    assert list(Counter(each.arrival_s for each in arriving).values()) == [16, 16, 8]


def test_clients_take_turns() -> None:
    sent = load.of_clients(load.at_once(5, longest_prompt=64, seed=0), 2)
    assert [each.client for each in sent] == [0, 1, 0, 1, 0]
