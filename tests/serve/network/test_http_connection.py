"""Timers and counts of HTTP connections, over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.waiting import wait_until

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def quick() -> Iterator[Serving]:
    with serving(hello_timeout_s=0.3, request_timeout_s=0.3, keep_alive_s=0.3) as server:
        yield server


def is_closed(peer: RawSocket) -> bool:
    """Wait for the end of the connection."""
    try:
        while peer.socket.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /health HTTP/1.1\r\nHost: loc",
        GET + b"GET /health HT",  # a later request of the same connection
        GET,  # idle
        b"POST /v1/programs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12",
    ],
)
def test_a_request_that_does_not_arrive_ends_its_connection(quick: Serving, beginning: bytes) -> None:
    with RawSocket(quick.url) as peer:
        peer.socket.sendall(beginning)
        assert is_closed(peer)
    wait_until(lambda: quick.count("sockets") == 0)


def trickle(peer: RawSocket, data: bytes) -> None:
    for byte in data:
        peer.socket.sendall(bytes([byte]))
        time.sleep(0.01)


def test_bytes_that_trickle_do_not_prolong_the_time(quick: Serving) -> None:
    with RawSocket(quick.url) as peer:
        peer.socket.sendall(GET)
        assert peer.status() == 200
        with pytest.raises(OSError):
            trickle(peer, b"GET /" + b"a" * 3000)


def test_requests_one_behind_the_other_are_answered(quick: Serving) -> None:
    with RawSocket(quick.url) as peer:
        for _ in range(3):
            peer.socket.sendall(GET)
            assert peer.status() == 200
            peer.file.read(len(b'{"status":"alive"}'))


def test_sockets_are_counted_whatever_becomes_of_them() -> None:
    with serving(max_sockets=2) as server:
        with RawSocket(server.url) as http, RawSocket(server.url) as upgraded:
            http.socket.sendall(GET)
            assert http.status() == 200
            upgraded.greet()
            assert server.count("sockets") == 2
            with RawSocket(server.url) as refused:
                assert is_closed(refused)
            assert server.count("sockets_refused_total") == 1
        wait_until(lambda: server.count("sockets") == 0)
        with RawSocket(server.url) as peer:
            peer.greet()
        wait_until(lambda: server.count("sockets") == 0)


def test_an_upgrade_that_is_refused_is_counted_once() -> None:
    with serving(max_sockets=1) as server:
        for _ in range(3):
            with RawSocket(server.url) as peer:
                peer.upgrade(path="/elsewhere")
                assert peer.status() == 404
            wait_until(lambda: server.count("sockets") == 0)


def test_a_connection_that_is_reset_is_forgotten(quick: Serving) -> None:
    with RawSocket(quick.url) as peer:
        peer.socket.sendall(b"GET /he")
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    wait_until(lambda: quick.count("sockets") == 0)


def test_a_client_that_takes_no_bytes_is_dropped_and_its_graph_cancelled() -> None:
    body = b'{"prompt": "a", "max_tokens": 1000, "stream": true}'
    with serving(slow_timeout_s=0.1) as server, RawSocket(server.url, 4096) as peer:
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        peer.socket.sendall(head % len(body) + body)
        server.target.wait_for(1)
        for _ in range(10):  # more than the buffers of the kernel hold, less than the server keeps
            server.target.step("x" * 700_000)
        wait_until(lambda: server.target.runs[0].was_cancelled)
        server.target.step()


def test_a_client_that_reads_slowly_is_not_dropped() -> None:
    body = b'{"prompt": "a", "max_tokens": 10, "stream": true}'
    with serving(slow_timeout_s=0.1) as server, RawSocket(server.url, 100_000) as peer:
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        peer.socket.sendall(head % len(body) + body)
        server.target.wait_for(1)
        server.target.step("x" * 4_000_000)
        server.target.finish()
        found = 0
        pause = threading.Event()
        while data := peer.socket.recv(200_000):
            found += len(data)
            pause.wait(0.005)
        assert found > 4_000_000
