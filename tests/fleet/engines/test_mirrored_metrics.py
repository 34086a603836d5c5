"""Metrics of two processes as one page."""

from __future__ import annotations

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
