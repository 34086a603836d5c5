"""Times of arrivals follow from measured runs."""

from __future__ import annotations

import pytest

from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.arriving import timed, without_times
from rtlang.bench.workloads.catalogue import make
from rtlang.bench.workloads.workload import generations
from tests.support.engine.encoders import Bytes


def run_of(total_s: float, *times: tuple[float, ...]) -> Measurement:
    return Measurement(total_s, (), {(index, 1): each for index, each in enumerate(times)}, {}, 0)


def test_programs_arrive_at_a_share_of_the_capacity_of_the_slower_side() -> None:
    workload = make("poisson", Bytes(), quick=True)
    assert without_times(workload) is workload
    placed = timed(workload, [run_of(10.0), run_of(25.0)], seed=3)
    mean_s = placed.arrivals_s[-1] / len(placed.graphs)
    assert placed.graphs == workload.graphs
    assert list(placed.arrivals_s) == sorted(placed.arrivals_s)
    assert mean_s == pytest.approx(25.0 / 20 / 0.8, rel=0.5)
    assert "0.64 a second, 0.8 of the capacity of the slower side" in placed.summary
    doubled = timed(workload, [run_of(50.0)], seed=3)
    assert doubled.arrivals_s == pytest.approx([2 * each for each in placed.arrivals_s])


def test_prompts_fit_into_the_model() -> None:
    with pytest.raises(ValueError, match="max_len = 1030: expected at least 1040"):
        make("poisson", Bytes(), max_len=1030)
    for graph in make("poisson", Bytes(), quick=True, max_len=1200).graphs:
        assert 1 <= len(list(generations(graph))) <= 3
    long = make("longprompt", Bytes(), quick=True, max_len=600).graphs[-1]
    assert sum(len(Bytes().encode(str(part), is_start=True)) for part in long.nodes[0].parts) == 600 - 32 - 1  # type: ignore[union-attr]


def test_a_long_prompt_arrives_when_both_sides_decode() -> None:
    workload = make("longprompt", Bytes(), quick=True, max_len=600)
    streams = without_times(workload)
    assert (len(workload.graphs), len(streams.graphs), workload.watched) == (9, 8, 8)
    assert streams.watched is None
    fast, slow = run_of(1.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)), run_of(9.0, (0.5, 1.0, 1.5), (1.0, 1.5, 2.0))
    placed = timed(workload, [fast, slow], seed=0)
    assert placed.arrivals_s == (0.0,) * 8 + (1.0 + 16 * 0.5,)


def test_a_workload_at_once_has_no_times() -> None:
    workload = make("stream", Bytes())
    assert timed(workload, [run_of(1.0)], seed=0) is workload
