"""Who gets in over HTTP: keys, host names and browser origins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def client() -> Iterator[HttpClient]:
    with serving(api_key="secret", allowed_origins=("https://app.example",)) as server:
        yield HttpClient(server.url)


AUTH = {"Authorization": "Bearer secret"}


def test_probes_and_the_page_need_no_key(client: HttpClient) -> None:
    assert (client.get("/health").status, client.get("/ready").status, client.get("/").status) == (200, 200, 200)


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/version",
        "/v1/engine/snapshot",
        "/v1/engine/snapshot/stream",
        "/v1/sessions",
        "//",
        "/nowhere",
        "/health/",
        "//health",
        "/health%20",
        "/v1/models",
    ],
)
@pytest.mark.parametrize("key", [None, "Bearer wrong", "Basic secret", "Bearer"])
def test_every_other_path_needs_the_key(client: HttpClient, path: str, key: str | None) -> None:
    answer = client.get(path, **({} if key is None else {"Authorization": key}))
    assert answer.status == 401
    assert answer.json["error"]["code"] == "invalid_api_key"
    assert b"secret" not in answer.body


@pytest.mark.parametrize("path", ["/health", "/metrics", "/version"])
def test_another_host_name_is_refused(client: HttpClient, path: str) -> None:
    assert client.get(path, **AUTH, Host="rebound.example").status == 403


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_a_page_of_another_origin_is_refused(client: HttpClient, path: str) -> None:
    answer = client.get(path, **AUTH, Origin="https://elsewhere.example")
    assert (answer.status, answer.json["error"]["code"]) == (403, "origin")
    for origin in ("https://app.example", "http://localhost:5173"):
        assert client.get(path, **AUTH, Origin=origin).status == 200


def test_a_page_of_an_allowed_origin_may_ask_and_read(client: HttpClient) -> None:
    origin = {"Origin": "https://app.example"}
    asked = client.request("OPTIONS", "/v1/chat/completions", **origin, **{"Access-Control-Request-Method": "POST"})
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == "https://app.example"
    assert "authorization" in asked.headers["access-control-allow-headers"]
    for key, status in (({}, 401), (AUTH, 200)):
        answer = client.get("/version", **key, **origin)
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert answer.headers["vary"] == "origin"
    assert "access-control-allow-origin" not in client.get("/version", **AUTH).headers
    refused = client.request(
        "OPTIONS", "/version", Origin="https://x.example", **{"Access-Control-Request-Method": "GET"}
    )
    assert (refused.status, "access-control-allow-origin" in refused.headers) == (403, False)


def test_a_page_of_the_server_itself_is_allowed_under_any_name() -> None:
    with serving(host="0.0.0.0", api_key="secret") as server:
        client = HttpClient(server.url.replace("0.0.0.0", "127.0.0.1"))
        for origin, status in (("http://models.example", 200), ("http://models.example.org", 403), ("null", 403)):
            assert client.get("/version", **AUTH, Host="models.example", Origin=origin).status == status
