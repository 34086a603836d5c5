"""Metrics by principal have bounded labels, and no principal sees another's."""

from __future__ import annotations

import pytest

from rtlang.contract.accounts.request_account import RequestAccount
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.principal_metrics import BY_PRINCIPAL, MAX_NAMED, OTHERS


def used(metrics: Metrics, *names: str) -> None:
    for name in names:
        metrics.principals.begin(name)
        metrics.principals.end(name, "POST /v1/completions", 200, 1.5)
        metrics.principals.count_engine(name, RequestAccount(None, {"output": 5}, {"row": 0.5}, {"steps": 0.25}))
        metrics.principals.server_work.add(name, "tokenize", 2.0)
        metrics.principals.count_server_wait(name, "thread", 1.0)


def test_principals_beyond_the_limit_share_a_label() -> None:
    metrics = Metrics()
    names = [f"p{number}" for number in range(MAX_NAMED + 10)]
    used(metrics, *names, *names)
    values = metrics.snapshot()
    assert values["rtlang_engine_principal_tokens_total{p0,output}"] == 10
    assert values[f"rtlang_engine_principal_tokens_total{{{OTHERS},output}}"] == 100
    assert values[f"rtlang_principal_requests_total{{{OTHERS},200}}"] == 20
    assert sum(name.startswith("rtlang_principal_open_requests{") for name in values) == MAX_NAMED + 1


@pytest.mark.parametrize("name", ["one", 'q"uote', "back\\slash", "x}y"])
def test_a_principal_with_a_namespace_sees_its_own_samples_only(name: str) -> None:
    metrics = Metrics()
    used(metrics, name, "other")
    metrics.engine_steps.inc(3)
    rendered = metrics.render_for(Principal(name, namespace="n")).decode()
    lines = [line for line in rendered.splitlines() if BY_PRINCIPAL.match(line)]
    assert len(lines) >= 7
    assert "other" not in "".join(lines)
    assert "rtlang_engine_steps_total 3.0" in rendered
    everything = metrics.render_for(Principal(name)).decode()
    assert 'principal="other"' in everything
