"""The figures of a real fleet, with engines that are threads of this process and share one model."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.model.loader import model_directory
from rtlang_bench.fleet import fleet_figures
from rtlang_bench.fleet.fleet_figures import child_processes, cpu_seconds, measure_rules, measure_throughput
from rtlang_bench.fleet.fleet_programs import ProgramSizes
from tests.support.servers.engine_threads import ThreadLauncher

SIZES = ProgramSizes(3, 2, 24, 6, 3, 1, 2, 2)


@pytest.fixture(scope="module")
def host() -> Iterator[EngineHost]:
    host = EngineHost()
    yield host
    host.close()


@pytest.fixture
def config(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> RuntimeConfig:
    monkeypatch.setattr(fleet_figures, "ProcessLauncher", partial(ThreadLauncher, host))
    return RuntimeConfig(model=str(model_directory("rtlang:tiny")), dtype="float32", num_pages=400)


def test_throughput_has_three_figures_for_each_workload(config: RuntimeConfig) -> None:
    told: list[str] = []
    found = {figure.name: figure for figure in measure_throughput(config, SIZES, rounds=1, seed=0, tell=told.append)}
    for name in ("tree", "chat"):
        assert found[f"{name}_throughput_ratio"].value > 0
        assert math.isnan(found[f"{name}_processor_ratio"].value), "threads have no processor time of their own"
        assert 0 <= found[f"{name}_hit_rate_difference"].value < 1
    assert len(found) == 6
    assert len(told) == 2 + 4


def test_rules_are_compared_with_whole_programs(config: RuntimeConfig) -> None:
    found = {figure.name: figure for figure in measure_rules(config, SIZES, rounds=1, seed=0, tell=lambda line: None)}
    for workload in ("tree", "chat"):
        ours = found[f"{workload}_programs_mean_latency"].value
        for name in (f"{workload}_power_of_two", f"{workload}_prefix_affinity"):
            latency = found[f"{name}_mean_latency"]
            assert f"of {SIZES.num_programs} programs" in latency.note
            assert found[f"{name}_mean_over_programs"].value == pytest.approx(latency.value / ours)
            assert found[f"{name}_p99_over_programs"].value > 0


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="reads Linux's /proc")
def test_processor_time_of_children_is_read() -> None:
    program = "import sys\nsum(range(3_000_000))\nprint('done', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        assert child.pid in child_processes()
        assert cpu_seconds(child.pid) > 0
        child.communicate()
    assert child.pid not in child_processes()
