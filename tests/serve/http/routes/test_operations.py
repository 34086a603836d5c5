"""The routes for operators, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

import rtlang
from rtlang.contract.config import ServeConfig
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture(scope="module")
def client(metrics: Metrics) -> Iterator[HttpClient]:
    config = ServeConfig(port=0)
    with running_server(ScriptedTarget(), config, TokenizerInfo("m", 300, 512), metrics=metrics) as url:
        yield HttpClient(url)


def test_a_server_whose_engine_is_gone_is_not_ready() -> None:
    target = ScriptedTarget()
    with serving(target) as server:
        client = HttpClient(server.url)
        answer = client.get("/ready")
        assert (answer.status, answer.json) == (200, {"status": "ready"})
        target.close()
        assert (client.get("/ready").status, client.get("/health").status) == (503, 503)


def test_version_describes_the_server(client: HttpClient) -> None:
    answer = client.get("/version")
    assert answer.status == 200
    found = answer.json
    info = {"model": "m", "vocab_size": 300, "max_model_len": 512, "tool_format": None, "identity": None}
    assert found["models"] == [info]
    assert found["protocol"] == 1
    assert found["version"] == rtlang.__version__


def test_metrics_are_in_the_text_format(client: HttpClient, metrics: Metrics) -> None:
    metrics.generation_tokens.inc(41)
    answer = client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
    assert samples["rtlang_generation_tokens_total"] == 41
