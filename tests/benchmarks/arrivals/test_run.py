"""The workloads, on a pretended machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang_bench.arrivals import run
from rtlang_bench.arrivals.figures import RunFigures
from rtlang_bench.arrivals.long_prompt import LongPromptFigures
from rtlang_bench.arrivals.run import ArrivalsBench, Sizes, fixed, measure, sized
from rtlang_bench.figure import Figure
from tests.support.engine.timed_engine import pretended_engine

SIZES = Sizes(num_programs=4, longest_prompt=128, long_prompt=300, num_streamed=20, rounds=1)


def test_every_setting_runs_every_workload() -> None:
    told: list[str] = []
    bench = ArrivalsBench(RuntimeConfig(), pretended_engine, SIZES, tell=told.append)
    lines = list(bench.lines(["poisson", "bursts", "clients", "longprompt"]))
    found = [each for each in lines if isinstance(each, RunFigures)]
    workloads = ["at once", "poisson 0.5", "poisson 0.8", "poisson 0.95", "bursts 0.8", "clients 0.8"]
    settings = ["planned", "128 tokens", "1024 tokens"]
    assert [(each.workload, each.setting) for each in found] == [(w, s) for w in workloads for s in settings]
    assert [each.setting for each in lines if isinstance(each, LongPromptFigures)] == settings
    names = [each.name for each in lines if isinstance(each, Figure)]
    assert names[:4] == ["at once throughput", "at once gap p99", "at once steady gap p99", "poisson 0.5 throughput"]
    assert names[-2:] == ["longprompt steady throughput", "longprompt urgent start"]
    assert "at once: planned, round 1 of 1" in told


def test_arrivals_are_a_share_of_the_measured_capacity() -> None:
    bench = ArrivalsBench(RuntimeConfig(), pretended_engine, Sizes(24, 256, 300, 20, 1))
    busy = {
        each.workload: each.busy_share
        for each in bench.lines(["poisson"])
        if isinstance(each, RunFigures) and each.setting == "planned"
    }
    assert busy["at once"] == pytest.approx(1.0)
    assert busy["poisson 0.5"] < busy["poisson 0.95"] < 1.001


def test_a_fixed_setting_fills_its_steps_whoever_decodes() -> None:
    config = fixed(RuntimeConfig(), 512)
    assert (config.max_step_tokens, config.shared_step_limit) == (512, 512)
    engine = pretended_engine(config)
    engine.run(run.load.at_once(6, longest_prompt=4096, seed=0))
    assert max(step.num_tokens for step in engine.steps if step.num_decodes) >= 511


def test_no_turn_begins_that_would_end_too_late() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    told: list[str] = []
    bench = ArrivalsBench(
        RuntimeConfig(), pretended_engine, replace(SIZES, rounds=9, limit_s=12), tell=told.append, clock=clock
    )
    assert str(list(bench.lines(["bursts", "longprompt"]))[-1]).startswith("4 programs in each run; took ")
    rounds = {
        name: sum(each.startswith(f"{name}: planned") for each in told)
        for name in ("at once", "bursts 0.8", "longprompt")
    }
    assert all(1 <= count < 9 for count in rounds.values())


def test_there_are_fewer_programs_on_a_slow_machine() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 30.0
        return now

    bench = ArrivalsBench(RuntimeConfig(), pretended_engine, replace(SIZES, num_programs=12, limit_s=20), clock=clock)
    lines = list(bench.lines(["bursts"]))
    assert str(lines[-1]).startswith("8 programs in each run; took ")
    assert len([each for each in lines if isinstance(each, RunFigures)]) == 6


def test_sizes_can_be_given() -> None:
    assert sized(SIZES, None, None) == SIZES
    assert (sized(SIZES, 9, 3).num_programs, sized(SIZES, 9, 3).rounds) == (9, 3)


def test_other_devices_and_workloads_are_refused() -> None:
    with pytest.raises(ConfigError, match="device"):
        next(measure(RuntimeConfig(device="interpreter"), ["poisson"], SIZES))
    with pytest.raises(ConfigError, match="poisson, bursts, clients, longprompt"):
        next(measure(RuntimeConfig(), ["poison"], SIZES))
