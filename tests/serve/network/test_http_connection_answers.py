"""Answers that come while the client is sending reach it: nothing is lost to a reset, and no client prolongs that without bound."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import importlib
import io
import json
import socket
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.errors import OverloadError
from rtlang.serve.network import http_connection
from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.waiting import wait_until

LIMIT = 100_000
BODY = b"x" * (12 << 20)
"""Longer than what the kernel holds of both sides, so that a client that sends it all must be read."""
LARGE = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(BODY)
COMPLETION_HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
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
        ((CHUNKED, BODY), 400, "bad_request"),  # a length of a chunk that does not end
        ((b"no request\r\n\r\n", BODY), 400, "bad_request"),
        ((b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", BODY), 431, "header_too_large"),
        ((LARGE.replace(b"localhost", b"elsewhere"), BODY), 403, "host"),
        ((LARGE.replace(b"/v1/completions", b"/nowhere"), BODY), 404, "not_found"),
        ((LARGE.replace(b"Host", b"Expect: 100-continue\r\nHost"), BODY), 413, "body_too_large"),
        ((LARGE.replace(b"1.1", b"1.0"), BODY), 413, "body_too_large"),
        ((LARGE.replace(b"Host", b"Origin: http://elsewhere.example\r\nHost"), BODY), 403, "origin"),
        ((LARGE.replace(b"/v1/completions", b"/health"), BODY), 405, "method_not_allowed"),
        ((LARGE.replace(b"Host", b"Upgrade: websocket\r\nConnection: Upgrade\r\nHost"), BODY), 413, "body_too_large"),
        ((LARGE.replace(b"Host", b"Upgrade: h2c\r\nConnection: Upgrade\r\nHost"), BODY), 413, "body_too_large"),
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


@pytest.mark.parametrize("num_bytes", [1 << 20, 50 << 20])
@pytest.mark.parametrize("path", [b"/v1/completions", b"/nowhere"])
def test_a_sender_in_small_parts_gets_its_answer(server: Serving, path: bytes, num_bytes: int) -> None:
    part = b"x" * 8192
    with RawSocket(server.url) as peer:
        send_all(peer, b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path, num_bytes))
        send_all(peer, *[part] * (num_bytes // len(part)))
        assert answer(peer)[0] == (404 if path == b"/nowhere" else 413)


def test_an_answer_comes_before_the_body_of_a_client_that_waits_for_it(server: Serving) -> None:
    """A client that sends `Expect: 100-continue` is not asked for a body that nobody reads, and may leave it out."""
    with RawSocket(server.url) as peer:
        send_all(peer, LARGE.replace(b"Host", b"Expect: 100-continue\r\nHost"))
        found, headers, _ = answer(peer)
        assert (found, headers["connection"]) == (413, "close")
    with RawSocket(server.url) as peer:
        small = b'{"prompt": 3}'
        send_all(peer, (COMPLETION_HEAD % len(small)).replace(b"Host", b"Expect: 100-continue\r\nHost"))
        assert peer.status() == 100
        send_all(peer, small)
        assert answer(peer)[0] == 400


def test_a_server_that_is_busy_or_ending_tells_a_client_that_sends_first() -> None:
    large = b'{"prompt": "a", "max_tokens": 4, "user": "%b"}' % (b"x" * (4 << 20))
    request = (COMPLETION_HEAD % len(large), large)
    with contextlib.ExitStack() as server, contextlib.ExitStack() as sockets:
        busy = server.enter_context(serving(max_frame_bytes=8 << 20, drain_timeout_s=20))
        first, second, watcher = (sockets.enter_context(RawSocket(busy.url)) for _ in range(3))
        watcher.greet()
        send_all(first, *request)
        busy.target.wait_for(1)
        busy.target.refusal = OverloadError("the queue is full", 1.0)
        send_all(second, *request)
        found, headers, body = answer(second)
        assert (found, body["error"]["code"]) == (429, "overload"), body
        ending = threading.Thread(target=server.pop_all().close)
        ending.start()
        assert json.loads(watcher.receive()[1])["t"] == "drain"
        send_all(second, *request)
        found, headers, body = answer(second)
        assert (found, headers["retry-after"]) == (503, "20"), body
        busy.target.finish()
        assert answer(first)[0] == 200
        ending.join()


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


COMPLETION = b'{"prompt": "a", "max_tokens": 4}'
HALF_CLOSED = [
    (COMPLETION[:-1], 400),
    (COMPLETION[:-1] + b', "user": "%b"' % (b"x" * (2 << 20)), 400),  # parsed beside the event loop
    (COMPLETION, 200),
]


@pytest.mark.parametrize(("body", "status"), HALF_CLOSED, ids=["malformed", "large", "answer"])
def test_a_client_that_has_closed_its_side_gets_its_answer(body: bytes, status: int) -> None:
    with serving(max_frame_bytes=8 << 20) as patient, RawSocket(patient.url) as peer:
        send_all(peer, COMPLETION_HEAD % len(body), body)
        peer.socket.shutdown(socket.SHUT_WR)
        if status == 200:
            patient.target.wait_for(1)
            patient.target.finish()
        received = peer.file.read()
        assert received.startswith(b"HTTP/1.1 %d " % status)
        json.loads(received.partition(b"\r\n\r\n")[2])
        wait_until(lambda: patient.count("sockets") == 0)


@pytest.mark.parametrize("stream", [b"true", b"false"])
def test_a_client_that_has_closed_its_side_counts_as_gone_after_a_time(
    stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "HALF_CLOSED_S", 0.05)
    body = b'{"stream": %b, ' % stream + COMPLETION[1:]
    with serving() as patient, RawSocket(patient.url) as peer:
        send_all(peer, COMPLETION_HEAD % len(body), body)
        patient.target.wait_for(1)
        peer.socket.shutdown(socket.SHUT_WR)
        wait_until(lambda: patient.target.runs[0].was_cancelled)
        assert b"[DONE]" not in peer.file.read()
        patient.target.finish()
        wait_until(lambda: patient.count("sockets") == 0)


def test_all_requests_of_a_client_that_has_closed_its_side_are_answered(server: Serving) -> None:
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with RawSocket(server.url) as peer:
        send_all(peer, get * 5 + get[:20])
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.file.read().count(b"200 OK") == 5
    wait_until(lambda: server.count("sockets") == 0)


@pytest.mark.parametrize("library", ["http.client", "httpx", "urllib3", "requests", "aiohttp"])
@pytest.mark.parametrize("path", ["/v1/completions", "/nowhere"])
def test_published_clients_see_the_answer_to_a_large_body(server: Serving, library: str, path: str) -> None:
    module: Any = pytest.importorskip(library, reason=f"needs the package {library}")
    url = server.url.replace("ws", "http", 1) + path
    if library == "http.client":
        for is_chunked in (False, True):
            connection = http.client.HTTPConnection(url.split("/")[2], timeout=20)
            body = iter([BODY[: 1 << 20]] * 12) if is_chunked else BODY
            connection.request("POST", path, body, encode_chunked=is_chunked)
            response = connection.getresponse()
            status, text = response.status, response.read()
            assert json.loads(text)["error"]["code"]
            connection.close()
    elif library == "aiohttp":

        async def post() -> int:
            async with module.ClientSession() as session, session.post(url, data=io.BytesIO(BODY)) as response:
                assert (await response.json())["error"]["code"]
                return int(response.status)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # its connection may end after its loop
            status = asyncio.run(post())
            gc.collect()
    elif library == "urllib3":
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
