"""Metrics of two processes as one page."""

from __future__ import annotations

from itertools import pairwise

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rtlang.contract.service.metrics import Metrics
from rtlang.fleet.engines.mirrored_metrics import MirroredMetrics


def samples(metrics: Metrics) -> dict[str, float]:
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            key = sample.name + "".join(sorted(f"{name}={value}" for name, value in sample.labels.items()))
            assert key not in found, "each sample comes once"
            found[key] = sample.value
    return found


def test_each_sample_comes_from_the_process_that_counts_it() -> None:
    own, engine = MirroredMetrics(), Metrics()
    before = samples(own)
    own.ws_connections.set(3)
    own.engine_restarts.inc()
    own.sockets.set(5)
    own.sockets_refused.inc(2)
    engine.engine_steps.inc(7)
    engine.ws_connections.set(9)
    engine.request_success("stop")
    own.mirror(engine.render())
    found = samples(own)
    assert found.keys() == before.keys()
    assert found["rtlang_ws_connections"] == 3
    assert found["rtlang_engine_restarts_total"] == 1
    assert (found["rtlang_sockets"], found["rtlang_sockets_refused_total"]) == (5, 2)
    assert found["rtlang_engine_steps_total"] == 7
    assert found["rtlang_request_success_totalfinished_reason=stop"] == 1


def engine_that_worked(seconds: float, steps: int, principal: str = "ana") -> bytes:
    engine = Metrics()
    engine.engine_steps.inc(steps)
    engine.num_requests_running.set(3)
    engine.grammar_compile.observe(0.02)
    engine.principals.engine_work.add(principal, "steps", seconds)
    return engine.render()


@pytest.mark.parametrize("replica", [None, "replica-1"])
def test_counters_go_on_when_the_process_of_an_engine_is_replaced(replica: str | None) -> None:
    own, label = MirroredMetrics(), "" if replica is None else f"replica={replica}"
    work = f"rtlang_engine_principal_work_seconds_totalkind=stepsprincipal={{}}{label}"
    seen: list[dict[str, float]] = []
    for rendered in (
        engine_that_worked(3, 5),
        engine_that_worked(4, 6),
        engine_that_worked(1, 9, "ben"),  # another process, in which ana has not worked
        engine_that_worked(2, 9, "ben"),
        engine_that_worked(2, 1),  # and a third one
    ):
        own.mirror(rendered, replica)
        seen.append(samples(own))
    assert [each[work.format("ana")] for each in seen] == [3, 4, 4, 4, 6]
    assert [each.get(work.format("ben"), 0) for each in seen] == [0, 0, 1, 2, 2]
    assert [each[f"rtlang_engine_steps_total{label}"] for each in seen] == [5, 6, 15, 15, 16]
    assert [each[f"rtlang_grammar_compile_seconds_count{label}"] for each in seen] == [1, 1, 2, 2, 3]
    assert [each[f"rtlang_num_requests_running{label}"] for each in seen] == [3] * 5, "a gauge is not added up"
    for before, now in pairwise(seen):
        assert all(now[name] >= value for name, value in before.items() if "_created" not in name)
    if replica is not None:
        own.forget(replica)
        own.mirror(engine_that_worked(1, 1), replica)
        assert samples(own)[work.format("ana")] == 1, "another engine of the same name"
