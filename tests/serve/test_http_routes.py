"""The HTTP routes, over a real socket: who gets in, and what they say."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

import rtlang
from rtlang.contract.config import ServeConfig
from rtlang.contract.metrics import Metrics
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.scripted_target import ScriptedTarget


class Routes:
    """Requests to one server."""

    def __init__(self, url: str, metrics: Metrics) -> None:
        self.address, self.metrics = urlsplit(url).netloc, metrics

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        """Status, content type and body."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers.get("content-type", ""), response.read().decode()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def routes() -> Iterator[Routes]:
    metrics = Metrics()
    config = ServeConfig(port=0, api_key="secret")
    with running_server(ScriptedTarget(), config, TokenizerInfo("m", 300, 512), metrics=metrics) as url:
        yield Routes(url, metrics)


AUTH = {"Authorization": "Bearer secret"}


def test_probes_need_no_key(routes: Routes) -> None:
    assert (routes.get("/health")[0], routes.get("/ready")[0]) == (200, 200)
    assert json.loads(routes.get("/ready")[2]) == {"status": "ready"}


def test_a_server_whose_engine_is_gone_is_not_ready() -> None:
    target = ScriptedTarget()
    with running_server(target, ServeConfig(port=0)) as url:
        routes = Routes(url, Metrics())
        assert routes.get("/ready")[0] == 200
        target.close()
        assert (routes.get("/ready")[0], routes.get("/health")[0]) == (503, 200)


@pytest.mark.parametrize("path", ["/metrics", "/version", "/", "/nowhere", "/health/", "//health", "/health%20"])
@pytest.mark.parametrize("key", [None, "Bearer wrong", "Basic secret", "Bearer"])
def test_every_other_path_needs_the_key(routes: Routes, path: str, key: str | None) -> None:
    status, _, body = routes.get(path, **({} if key is None else {"Authorization": key}))
    assert status == 401
    assert "secret" not in body


def test_version_describes_the_server(routes: Routes) -> None:
    status, _, body = routes.get("/version", **AUTH)
    assert status == 200
    found = json.loads(body)
    assert found["models"] == [{"model": "m", "vocab_size": 300, "max_model_len": 512, "tool_format": None}]
    assert found["protocol"] == 1
    assert found["version"] == rtlang.__version__


def test_metrics_are_in_the_text_format(routes: Routes) -> None:
    routes.metrics.generation_tokens.inc(41)
    status, content_type, body = routes.get("/metrics", **AUTH)
    assert status == 200
    assert content_type.startswith("text/plain")
    samples = {
        sample.name: sample.value for family in text_string_to_metric_families(body) for sample in family.samples
    }
    assert samples["rtlang:generation_tokens_total"] == 41


@pytest.mark.parametrize("path", ["/health", "/metrics", "/version"])
def test_another_host_name_is_refused(routes: Routes, path: str) -> None:
    assert routes.get(path, **AUTH, Host="rebound.example")[0] == 403


def test_unknown_routes_are_404_and_only_get_is_allowed(routes: Routes) -> None:
    assert routes.get("/nowhere", **AUTH)[0] == 404
    assert routes.get("/version", "POST", **AUTH)[0] == 405
    assert routes.get("/v1/stream", **AUTH)[0] == 404
