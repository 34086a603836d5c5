"""The comparison with the routers of Ray Serve: its table, and a small run with the real Ray Serve."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest

from rtlang.bench.measure import Measurement, run_on_target
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.request_graph import RequestGraph
from rtlang.model.loader import model_directory
from rtlang.runtime.runtime import Runtime
from rtlang_bench.fleet.fleet_programs import QUICK
from rtlang_bench.ray_serve import __main__ as serve_routers
from rtlang_bench.ray_serve.__main__ import (
    POWER_OF_TWO,
    PREFIX_AFFINITY,
    PROGRAMS,
    ROUTERS,
    Turns,
    compare_routers,
    table,
)
from tests.support.servers.ray_cluster import ray_cluster

CONFIG = RuntimeConfig(model=str(model_directory("rtlang:tiny")), dtype="float32", num_pages=400, num_threads=1)
SIZES = replace(QUICK, num_programs=2)


def run(*latencies_s: float, cached: int) -> Measurement:
    return Measurement(9.0, latencies_s, {}, {}, 100, cached)


def test_the_table_has_each_rule_over_whole_programs() -> None:
    turns = {
        PROGRAMS: Turns([run(1.0, 3.0, cached=90), run(2.0, 2.0, cached=70)]),
        POWER_OF_TWO: Turns([run(2.0, 6.0, cached=50), run(3.0, 3.0, cached=50)], 0.5),
    }
    head, ours, other = (line.split() for line in table(turns))
    assert head[0] == "rule"
    assert ours == ["whole", "programs", "2.00s", "3.00s", "0.800", "0.0s", "1.00", "(1.00", "to", "1.00)", "1.00"]
    assert other[3:] == ["3.50s", "6.00s", "0.500", "0.5s", "1.75", "(1.50", "to", "2.00)", "2.00"]


def test_every_rule_begins_a_turn_once() -> None:
    assert [serve_routers._rotated(["a", "b", "c"], turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]


class LocalTarget:
    """One engine in this process in place of a deployment."""

    def __init__(self, runtime: Runtime) -> None:
        self.submit = runtime.submit
        self._runtime = runtime

    def warm_up(self, graphs: Sequence[RequestGraph]) -> None:
        run_on_target(self._runtime, graphs)
        self._runtime.clear_cache()


def check(found: dict[str, dict[str, Turns]]) -> None:
    assert len(found) == 2
    for turns in found.values():
        assert list(turns) == [PROGRAMS, POWER_OF_TWO, PREFIX_AFFINITY]
        outputs = [side.runs[0].outputs for side in turns.values()]
        assert outputs[0] == outputs[1] == outputs[2], "the same programs, whichever way they are sent"
        assert all(0.0 < side.hit_rate < 1.0 and len(side.latencies_s) == 2 for side in turns.values())


def test_every_rule_runs_the_same_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    with Runtime(config=CONFIG) as runtime:
        targets = {rule: LocalTarget(runtime) for rule in ROUTERS}
        monkeypatch.setattr(serve_routers, "_deployed", lambda *_: nullcontext(targets))
        check(dict(compare_routers(CONFIG, SIZES, rounds=1, seed=0, tell=lambda line: None)))


@pytest.mark.long
def test_a_small_run_on_ray_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray.serve")
    monkeypatch.setattr(serve_routers, "NUM_REPLICAS", 1)
    with ray_cluster(1, cpus_per_node=len(ROUTERS)) as address:
        import ray

        ray.init(address, log_to_driver=False)
        check(dict(compare_routers(CONFIG, SIZES, rounds=1, seed=0, tell=lambda line: None)))
