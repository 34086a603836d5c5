"""Upgrades at /v1/responses pass the checks of the other doors, and are refused with an HTTP status and an error body."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from rtlang.serve.network.key_table import entry_of
from tests.support.servers.mode_client import ModeClient
from tests.support.servers.serving import RawSocket, serving
from tests.support.waiting import wait_until

KEYS = {"ann": "a" * 20, "bob": "b" * 20}


def refusal(url: str, **headers: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, error and headers of an upgrade that is refused."""
    with pytest.raises(InvalidStatus) as caught, ModeClient(url, headers):
        pass
    response = caught.value.response
    assert response.headers["Content-Type"] == "application/json"
    error = json.loads(response.body or b"")["error"]
    assert error["request_id"] == response.headers["x-request-id"]
    return response.status_code, error, dict(response.headers.raw_items())


def test_an_upgrade_is_admitted_or_refused_like_a_request(caplog: pytest.LogCaptureFixture) -> None:
    keys = "".join(entry_of(name, key) for name, key in KEYS.items())
    with (
        caplog.at_level(logging.INFO, "rtlang.requests"),
        serving(keys=keys, max_connections_per_principal=2) as server,
    ):
        ann = {"Authorization": f"Bearer {KEYS['ann']}", "OpenAI-Beta": "responses_websockets=2026-02-06"}
        assert refusal(server.url)[:2][0] == 401
        assert refusal(server.url, Authorization="Bearer wrong")[2]["WWW-Authenticate"] == "Bearer"
        status, error, _ = refusal(server.url, Origin="https://elsewhere.example", **ann)
        assert (status, error["code"]) == (403, "origin")
        with ModeClient(server.url, ann) as first, ModeClient(server.url, ann | {"Origin": "http://localhost:1"}):
            assert first.websocket.response is not None
            assert first.websocket.response.headers["x-request-id"]
            status, error, headers = refusal(server.url, **ann)
            assert (status, error["code"], headers["retry-after"]) == (429, "overload", "1")
            with ModeClient(server.url, {"Authorization": f"Bearer {KEYS['bob']}"}):
                pass
        wait_until(lambda: server.count("ws_connections") == 0)
        with ModeClient(server.url, ann):
            pass
        with RawSocket(server.url) as raw:
            raw.upgrade("/v1/responses", host="elsewhere.example")
            assert raw.status() == 403
        with RawSocket(server.url) as raw:
            raw.upgrade("/v1/response")
            assert raw.status() == 404
    refused = [vars(record) for record in caplog.records if vars(record).get("door") == "WS /v1/responses"]
    assert [line["status"] for line in refused] == [401, 401, 403, 429, 403]


def test_a_full_or_stopping_server_takes_no_more_connections() -> None:
    with serving(max_connections=1) as server, ModeClient(server.url) as client:
        status, error, headers = refusal(server.url)
        assert (status, error["code"], headers["retry-after"]) == (503, "overload", "1")
        client.create(input="hi")
        server.target.wait_for(1)
