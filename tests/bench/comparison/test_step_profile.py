"""Times of nested functions add up, and an engine is as before when its timers are removed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import rtlang as rt
from rtlang.bench.comparison.step_profile import FUSED, PARTS, PartTimer, Profile, profile, profile_rows
from rtlang.bench.measure import run_on_target
from rtlang.bench.workloads.workload import fixed_generation
from rtlang.contract.request_graph import RequestGraph, Text
from rtlang.engine.requests.detokenizer import IncrementalDetokenizer
from rtlang.model.layers.linear import Linear
from rtlang_kernels import ops


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def takes(self, seconds: float, *inner: Callable[[], Any]) -> Callable[[], str]:
        """A function that takes so long, besides those that it calls."""

        def run() -> str:
            self.now += seconds
            for each in inner:
                each()
            return "result"

        return run


def test_a_part_counts_without_those_within_it() -> None:
    clock = Clock()
    timer = PartTimer(clock)
    timer.use_this_thread()
    head = timer.timed("head", clock.takes(1.0))
    layers = timer.timed("layers", clock.takes(2.0, head, head))
    step = timer.timed("step", clock.takes(4.0, layers, clock.takes(8.0), head))
    assert step() == "result"
    assert timer.seconds == {"head": 3.0, "layers": 2.0, "step": 12.0}


def test_within_a_whole_part_nothing_else_counts() -> None:
    clock = Clock()
    timer = PartTimer(clock)
    timer.use_this_thread()
    linear = timer.timed("linears", clock.takes(1.0), is_whole=True)
    head = timer.timed("head", clock.takes(2.0, linear), is_whole=True)
    timer.timed("step", clock.takes(0.0, head, linear))()
    assert timer.seconds == {"head": 3.0, "linears": 1.0, "step": 0.0}


def test_an_exception_ends_its_part_and_other_threads_do_not_count() -> None:
    clock = Clock()
    timer = PartTimer(clock)

    def fail() -> None:
        clock.now += 1.0
        raise ValueError

    failing = timer.timed("bad", fail)
    timer.use_this_thread()
    with pytest.raises(ValueError):
        failing()
    thread = threading.Thread(target=timer.timed("other", clock.takes(5.0)))
    thread.start()
    thread.join()
    assert timer.seconds == {"bad": 1.0}


def test_a_run_of_an_engine_is_divided_into_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = RequestGraph((Text(0, None, ("One, two, three",)), fixed_generation(1, 0, 6)))
    graphs = (graph, graph)
    with rt.Runtime("rtlang:tiny", dtype="float32", num_threads=1, num_pages=64, speculation="off") as runtime:
        engine: Any = runtime._engine
        loop, runner = runtime._running_loop(), runtime._runner
        owners: list[Any] = [loop, loop._condition, engine, engine._pipeline, engine.scheduler, runner, runner.decoder]
        before = [dict(vars(owner)) for owner in owners]
        functions = (Linear.__call__, IncrementalDetokenizer.push, ops.backend_named)
        plain = run_on_target(runtime, graphs).outputs
        runs: list[Any] = []

        def run() -> None:
            runtime.clear_cache()
            runs.append(run_on_target(runtime, graphs))

        found = profile(runtime, "w", lambda: run)
        assert [sorted(vars(owner)) for owner in owners] == [sorted(each) for each in before]
        assert functions == (Linear.__call__, IncrementalDetokenizer.push, ops.backend_named)
    assert len(runs) == 2  # a second one without the call of all layers
    assert all(each.outputs == plain for each in runs)
    assert found.num_steps >= 6
    for name in (FUSED, "head", "sampling", "batch", "schedule", "detokenize", "outputs and events"):
        assert found.parts_s[name] > 0, name
    assert found.parts_s["linears"] == 0  # they are within the call of all layers
    assert found.within_fused["linears"] > 0
    assert sum(found.within_fused.values()) == pytest.approx(1)
    assert 0 < found.explained <= 1


def test_parts_that_take_no_time_are_left_out() -> None:
    parts_s = {**dict.fromkeys(PARTS, 0.0), "linears": 0.5, "masks": 1e-5}
    rows = profile_rows([Profile("w", 10, 1.0, parts_s, {})])
    assert [row[0] for row in rows] == ["part", "linears", "explained", "unexplained"]
    assert rows[1][1] == "50.00 (50.0%)"
