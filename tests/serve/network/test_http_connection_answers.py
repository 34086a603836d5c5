"""Answers that come while the client is sending reach it: nothing is lost to a reset, and no client prolongs that without bound."""

from __future__ import annotations

import importlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.serve.network import http_connection
from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.waiting import wait_until

LIMIT = 100_000
BODY = b"x" * (12 << 20)
"""Longer than what the kernel holds of both sides, so that a client that sends it all must be read."""
LARGE = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(BODY)
CHUNKED = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(max_frame_bytes=LIMIT) as made:
        yield made


def answer(peer: RawSocket) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of a response."""
    status, headers = int(peer.file.readline().split()[1]), {}
    while line := peer.file.readline().strip().decode().lower():
        name, _, value = line.partition(": ")
        headers[name] = value
    return status, headers, json.loads(peer.file.read(int(headers["content-length"])))


def send_all(peer: RawSocket, *parts: bytes) -> None:
    """Send before anything is read, as simple clients do."""
    for part in parts:
        peer.socket.sendall(part)


@pytest.mark.parametrize(
    ("parts", "status", "code"),
    [
        ((LARGE, BODY), 413, "body_too_large"),
        ((LARGE.replace(b"Host", b"Connection: close\r\nHost"), BODY), 413, "body_too_large"),
        ((CHUNKED, b"%x\r\n" % len(BODY), BODY, b"\r\n0\r\n\r\n"), 413, "body_too_large"),
        ((CHUNKED, b"no number\r\n", BODY), 400, "bad_request"),
        ((b"no request\r\n\r\n", BODY), 400, "bad_request"),
        ((b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", BODY), 431, "header_too_large"),
        ((LARGE.replace(b"localhost", b"elsewhere"), BODY), 403, "host"),
        ((LARGE.replace(b"/v1/completions", b"/nowhere"), BODY), 404, "not_found"),
        ((LARGE.replace(b"Host", b"Expect: 100-continue\r\nHost"), BODY), 413, "body_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_answer_reaches_a_client_that_sends_first(
    server: Serving, parts: tuple[bytes, ...], status: int, code: str
) -> None:
    with RawSocket(server.url) as peer:
        send_all(peer, *parts)
        found, headers, body = answer(peer)
        assert (found, body["error"]["code"]) == (status, code)
        if headers.get("connection") == "close":
            assert peer.file.read() == b""
    wait_until(lambda: server.count("sockets") == 0)


def test_a_connection_goes_on_after_a_body_that_nobody_read() -> None:
    with serving(api_key="secret") as keyed, RawSocket(keyed.url) as peer:
        for _ in range(3):
            send_all(peer, LARGE, BODY)
            found, headers, _ = answer(peer)
            assert found == 401
            assert "connection" not in headers
        send_all(peer, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer(peer)[0] == 200


@pytest.mark.parametrize("beginning", [b"GET /health HTTP/1.1\r\nHost: loc", LARGE + b"x"], ids=["header", "body"])
def test_a_late_request_is_told_so(beginning: bytes) -> None:
    with serving(hello_timeout_s=0.2, request_timeout_s=0.2, max_frame_bytes=len(BODY)) as quick:
        with RawSocket(quick.url) as peer:
            send_all(peer, beginning)
            found, headers, body = answer(peer)
            assert (found, body["error"]["code"], headers["connection"]) == (408, "timeout", "close")
            send_all(peer, b"more")
            assert peer.file.read() == b""
        wait_until(lambda: quick.count("sockets") == 0)


@pytest.mark.parametrize("head", [LARGE, LARGE.replace(b"Host", b"Connection: close\r\nHost")], ids=["open", "close"])
def test_a_client_that_goes_on_sending_is_dropped_after_a_time(head: bytes) -> None:
    with serving(request_timeout_s=0.2, max_frame_bytes=LIMIT) as quick, RawSocket(quick.url) as peer:
        send_all(peer, head)
        assert answer(peer)[0] == 413
        wait_until(lambda: quick.count("sockets") == 0)
        assert is_dropped(peer, b"x")


@pytest.mark.parametrize("path", [b"/v1/completions", b"/nowhere"])
def test_a_client_that_goes_on_sending_is_dropped_after_a_number_of_bytes(
    path: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "MAX_DROPPED_BYTES", 1 << 20)
    with serving(max_frame_bytes=LIMIT) as patient, RawSocket(patient.url) as peer:
        send_all(peer, LARGE.replace(b"/v1/completions", path))
        assert answer(peer)[0] in (404, 413)
        assert is_dropped(peer, BODY * 4)
        wait_until(lambda: patient.count("sockets") == 0)


def is_dropped(peer: RawSocket, data: bytes) -> bool:
    """Whether the server ends the connection while the client sends."""
    try:
        for _ in range(20):
            peer.socket.sendall(data)
            threading.Event().wait(0.02)
    except OSError:
        return True
    return False


def test_a_client_that_has_sent_all_is_closed_at_once(server: Serving) -> None:
    with RawSocket(server.url) as peer:
        send_all(peer, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert answer(peer)[0] == 200
        assert peer.file.read() == b""
        wait_until(lambda: server.count("sockets") == 0)


def test_a_client_that_leaves_while_its_rest_is_read_is_forgotten(server: Serving) -> None:
    with RawSocket(server.url) as peer:
        send_all(peer, LARGE, BODY[:1000])
        assert answer(peer)[0] == 413
        peer.socket.shutdown(socket.SHUT_WR)
        wait_until(lambda: server.count("sockets") == 0)


@pytest.mark.parametrize("library", ["httpx", "urllib3", "requests"])
@pytest.mark.parametrize("path", ["/v1/completions", "/nowhere"])
def test_published_clients_see_the_answer_to_a_large_body(server: Serving, library: str, path: str) -> None:
    module: Any = pytest.importorskip(library, reason=f"needs the package {library}")
    url = server.url.replace("ws", "http", 1) + path
    if library == "urllib3":
        pool = module.PoolManager(retries=False)
        response = pool.request("POST", url, body=BODY)
        status = response.status
        pool.clear()
    else:
        options = {"trust_env": False} if library == "httpx" else {"proxies": {"http": ""}}
        response = importlib.import_module(library).post(
            url, **{"content" if library == "httpx" else "data": BODY}, **options
        )
        status = response.status_code
    assert status == (413 if path == "/v1/completions" else 404)
    wait_until(lambda: server.count("sockets") == 0)


def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_fault(
    server: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    with RawSocket(server.url) as peer:
        send_all(peer, b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        wait_until(lambda: server.count("sockets") == 1)
    wait_until(lambda: server.count("sockets") == 0)
    with RawSocket(server.url) as peer:  # the loop has taken a turn since
        send_all(peer, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer(peer)[0] == 200
    assert not caplog.records
