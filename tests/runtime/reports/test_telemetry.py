"""The metrics say what the engine did."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.service.metrics import Metrics
from rtlang.runtime.reports.telemetry import Telemetry
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner


def test_counters_and_latencies_follow_the_steps() -> None:
    driver = EngineDriver(FakeRunner(64, 4, eos_every=10**9), RuntimeConfig(page_size=4, num_pages=64))
    metrics = Metrics()
    telemetry = Telemetry(metrics)
    requests = [driver.add([1, 100, 101, 102, 103, 104 + i], 3) for i in range(2)]
    aborted = driver.add([1, 50], 30)
    while driver.engine.has_work:
        started = driver.now = driver.now + 1.0
        outputs = driver.engine.step(started)
        telemetry.after_step(driver.engine, outputs, started, started + 0.5)
        for output in outputs:
            output.request.spec.listener(output)
        if driver.now == 2.0:
            driver.engine.abort(aborted)
    values = metrics.snapshot()
    assert values["rtlang_generation_tokens_total"] == sum(r.num_output_tokens for r in (*requests, aborted))
    assert values["rtlang_prompt_tokens_total"] == 14
    assert values["rtlang_prefix_cache_hits_total"] == sum(r.stats.num_cached_tokens for r in requests)
    assert values["rtlang_engine_steps_total"] == driver.engine.num_steps
    assert values["rtlang_request_success_total{length}"] == 2
    assert values["rtlang_request_success_total{cancelled}"] == 1
    assert values["rtlang_time_to_first_token_seconds_count"] == 3
    assert values["rtlang_inter_token_latency_seconds_count"] == 2 + 2 + aborted.num_output_tokens - 1
    assert values["rtlang_e2e_request_latency_seconds_count"] == 3
    assert values["rtlang_num_requests_running"] == 0
    assert values["rtlang_kv_pages"] == 64
    assert values["rtlang_kv_cache_usage_perc"] == 0
