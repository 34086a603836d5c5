"""Parts of a body past uvicorn: what a client of each version receives, over real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import h11
import pytest

from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.waiting import wait_until

BODY = json.dumps({"prompt": "a", "max_tokens": 5, "stream": True}).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving() as server:
        yield server


def request(version: str) -> bytes:
    return (
        f"POST /v1/completions HTTP/{version}\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY
    )


def texts(body: bytes) -> list[str]:
    events = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line.startswith(b"data: {")]
    return [json.loads(event)["choices"][0]["text"] for event in events]


def step(server: Serving, peer: RawSocket, num_before: int) -> bytes:
    """One step of the target, and what the client receives of it."""
    wait_until(lambda: len(server.target.runs) > num_before)
    server.target.step()
    return peer.socket.recv(1 << 16)


def test_a_body_in_chunks_is_valid_for_a_strict_reader(server: Serving) -> None:
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="POST", target="/", headers=[("host", "a"), ("content-length", "0")]))
    reader.send(h11.EndOfMessage())
    num_before, body, is_over = len(server.target.runs), b"", False
    with RawSocket(server.url) as peer:
        peer.socket.sendall(request("1.1"))
        while not is_over:
            reader.receive_data(step(server, peer, num_before))
            while (event := reader.next_event()) is not h11.NEED_DATA and not is_over:
                body += bytes(event.data) if isinstance(event, h11.Data) else b""
                is_over = isinstance(event, h11.EndOfMessage)
        assert texts(body) == [*server.target.runs[-1].pieces, ""]
        assert body.endswith(b"data: [DONE]\n\n")
        # The connection serves the next request.
        peer.socket.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert peer.status() == 200


def test_a_client_without_chunks_gets_the_same_body(server: Serving) -> None:
    num_before, body = len(server.target.runs), b""
    with RawSocket(server.url) as peer:
        peer.socket.sendall(request("1.0"))
        while data := step(server, peer, num_before):
            body += data
    assert texts(body.partition(b"\r\n\r\n")[2]) == [*server.target.runs[-1].pieces, ""]
