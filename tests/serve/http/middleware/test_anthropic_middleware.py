"""Errors of every layer reach clients of the Messages API in its envelope, and other clients as before."""

from __future__ import annotations

import json
from typing import Any

from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import RawSocket, serving

KEY, VERSION = "k" * 20, {"anthropic-version": "2023-06-01"}


def test_errors_of_all_layers_have_the_envelope() -> None:
    with FakeTarget(lambda call: "a") as target, serving(target, api_key=KEY, max_frame_bytes=1000) as server:  # type: ignore[arg-type]
        client, stranger = HttpClient(server.url, KEY), HttpClient(server.url)
        for answer, status, kind in (
            (stranger.post("/v1/messages", {}), 401, "authentication_error"),
            (stranger.get("/v1/models", **VERSION), 401, "authentication_error"),
            (client.get("/v1/messages"), 405, "not_found_error"),
            (client.post("/v1/messages/batches", {}), 404, "not_found_error"),
            (client.get("/v1/models/other", **VERSION), 404, "not_found_error"),
            (client.get("/v1/nowhere", **VERSION), 404, "not_found_error"),
            (client.post("/v1/messages", b"{"), 400, "invalid_request_error"),
            (client.post("/v1/messages", b"[]"), 400, "invalid_request_error"),
            (client.post("/v1/messages", b" " * 1001), 413, "request_too_large"),
            (client.post("/v1/messages", {}, Host="rebound.example"), 403, "permission_error"),
            (client.post("/v1/messages/count_tokens", {}), 501, "api_error"),
        ):
            assert (answer.status, answer.json["type"], answer.json["error"]["type"]) == (status, "error", kind)
            assert answer.json["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
        for answer in (
            client.get("/v1/messages2"),
            client.post("/v1/chat/completions", {}),
            stranger.get("/v1/models"),
        ):
            assert "type" not in answer.json
            assert "request-id" not in answer.headers


def test_the_key_may_come_in_either_header() -> None:
    with FakeTarget(lambda call: "a") as target, serving(target, api_key=KEY) as server:  # type: ignore[arg-type]
        client = HttpClient(server.url)
        for headers, status in (
            ({"x-api-key": KEY}, 200),
            ({"x-api-key": "wrong"}, 401),
            ({"x-api-key": "", "authorization": f"Bearer {KEY}"}, 200),
            ({"x-api-key": KEY, "authorization": "Basic abc"}, 200),
            ({"x-api-key": KEY, "authorization": "Bearer wrong"}, 401),
            ({"x-api-key": ""}, 401),
        ):
            assert client.get("/v1/models", **headers).status == status


def raw_request(path: str, num_bytes: int) -> bytes:
    body = b"{" + b" " * num_bytes
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def answer_of(peer: RawSocket) -> dict[str, Any]:
    head = iter(peer.file.readline, b"\r\n")
    (length,) = (line.split()[1] for line in head if line.lower().startswith(b"content-length"))
    found: dict[str, Any] = json.loads(peer.file.read(int(length)))
    return found


def test_other_requests_of_the_connection_keep_their_own_shape() -> None:
    """A long body pauses reading; the request that resumes it must not hand its context on, and neither may one that is answered."""
    with FakeTarget(lambda call: "a") as target, serving(target) as server, RawSocket(server.url) as peer:  # type: ignore[arg-type]
        for num_bytes in (300_000, 10, 300_000):
            peer.socket.sendall(raw_request("/v1/messages", num_bytes) + raw_request("/v1/chat/completions", 10))
            for has_envelope in (True, False):
                assert ("type" in answer_of(peer)) is has_envelope
