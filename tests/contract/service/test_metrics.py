"""The registry counts what it is told, under the published names, and two registries do not mix."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rtlang.contract.params import FinishReason
from rtlang.contract.service.metrics import FINISHED_REASONS, PREFIX, Metrics

PUBLISHED = """
num_requests_running num_requests_waiting kv_cache_usage_perc prefix_cache_queries_total prefix_cache_hits_total
prompt_tokens_total generation_tokens_total num_preemptions_total request_success_total time_to_first_token_seconds
inter_token_latency_seconds e2e_request_latency_seconds request_queue_time_seconds kv_pages_free kv_pages_held kv_pages
engine_steps_total engine_step_gap_seconds grammar_compile_seconds mask_seconds ws_connections ws_slow_closed_total
returning_tokens_total returning_tokens_cached_total suspended_sessions_total
"""


def samples(metrics: Metrics) -> dict[str, float]:
    """The samples as a reader of the text format sees them."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            found[sample.name + "".join(sorted(sample.labels.values()))] = sample.value
    return found


def test_every_published_name_is_in_the_text() -> None:
    names = {name.removeprefix(PREFIX) for name in samples(Metrics())}
    for name in PUBLISHED.split():
        assert any(found.startswith(name) for found in names), name


def test_counts_reach_text_and_snapshot() -> None:
    metrics = Metrics()
    metrics.prompt_tokens.inc(12)
    metrics.prompt_tokens.inc(3)
    metrics.num_requests_running.set(4)
    metrics.num_requests_running.dec()
    metrics.mask.observe(0.25)
    metrics.mask.observe(0.5)
    metrics.request_success("length")
    for values, label in ((samples(metrics), "length"), (metrics.snapshot(), "{length}")):
        assert values[PREFIX + "prompt_tokens_total"] == 15
        assert values[PREFIX + "num_requests_running"] == 3
        assert values[PREFIX + "mask_seconds_sum"] == 0.75
        assert values[PREFIX + "mask_seconds_count"] == 2
        assert values[PREFIX + "request_success_total" + label] == 1


def test_reasons_are_those_of_the_engine_and_nothing_else_becomes_a_label() -> None:
    assert set(FINISHED_REASONS) == set(FinishReason)
    with pytest.raises(KeyError):
        Metrics().request_success("text of a request")


def test_two_registries_do_not_mix() -> None:
    one, other = Metrics(), Metrics()
    one.engine_steps.inc()
    assert one.snapshot()[PREFIX + "engine_steps_total"] == 1
    assert other.snapshot()[PREFIX + "engine_steps_total"] == 0


NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
OTHER_UNITS = {"ms", "us", "milliseconds", "minutes", "hours", "kb", "mb", "kilobytes", "megabytes", "percent"}


def test_names_follow_the_rules_of_promtool() -> None:
    """Rules of the linter of Prometheus in our own words, as far as they concern names, units and help texts."""
    for family in text_string_to_metric_families(Metrics().render().decode()):
        assert NAME.fullmatch(family.name), family.name
        assert family.documentation.strip(), family.name
        assert not OTHER_UNITS & set(family.name.split("_")), f"{family.name}: expected a base unit"
        assert family.type not in family.name.split("_"), f"{family.name}: the type is no part of a name"
        if family.type == "counter":
            assert all(sample.name.endswith(("_total", "_created")) for sample in family.samples), family.name
        else:
            assert not family.name.endswith("_total"), family.name
        if family.type != "histogram":
            assert not family.name.endswith(("_bucket", "_count", "_sum")), family.name
        for sample in family.samples:
            assert all(NAME.fullmatch(label) for label in sample.labels), sample


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, which comes with Prometheus")
def test_promtool_accepts_the_names() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    done = subprocess.run([promtool, "check", "metrics"], input=Metrics().render(), capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
