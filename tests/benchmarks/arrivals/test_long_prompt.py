"""A long prompt beside streams on a pretended machine: the planner keeps the gap, a large fixed step does not."""

from __future__ import annotations

import pytest

from rtlang.bench.workloads.arriving import NUM_STREAMS
from rtlang.contract.config import RuntimeConfig
from rtlang_bench.arrivals.figures import PlainSteps
from rtlang_bench.arrivals.long_prompt import long_prompt_figures, run_long_prompt
from rtlang_bench.arrivals.run import fixed
from tests.support.engine.timed_engine import pretended_engine


def test_gaps_of_the_streams_are_those_beside_the_prompt() -> None:
    config = RuntimeConfig(page_size=64)
    runs = {
        name: run_long_prompt(pretended_engine(each), 2000, 60)
        for name, each in (("planned", config), ("fixed", fixed(config, 512)))
    }
    plain = PlainSteps([step for each in runs.values() for step in each.run.steps])
    planned, large = (long_prompt_figures(name, [found], plain) for name, found in runs.items())
    assert plain.seconds(NUM_STREAMS) == pytest.approx(0.025, rel=0.01)
    assert planned.gap[2] < 1.3
    assert large.gap[2] == pytest.approx(512 * 0.0016 / 0.1, rel=0.2)
    assert large.gap_in_steps[2] == pytest.approx(4 * large.gap[2], rel=1e-3)
    assert 1 <= planned.urgent_steps <= 2
    total = sum(each.load.num_tokens for each in runs["fixed"].run.records)
    assert total == NUM_STREAMS * (32 + 60) + 2016 + 48
    assert large.steady_tokens_per_s == pytest.approx(large.tokens_per_s, rel=0.02)
    assert large.tokens_per_s == pytest.approx(total / runs["fixed"].run.busy_s)
    assert len(runs["fixed"].gaps) == pytest.approx(NUM_STREAMS * 2000 / (512 - NUM_STREAMS), abs=2 * NUM_STREAMS)
