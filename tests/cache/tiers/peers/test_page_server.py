"""A page server against clients that do not know the secret, send anything, or stop in the middle."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from rtlang.cache.tiers.peers import page_server
from rtlang.cache.tiers.peers.frames import PeerError
from rtlang.cache.tiers.peers.handshake import greet
from tests.support.engine.page_peers import IDENTITY, SECRET, digest_of, fetching, page_of, served, store, stream_to
from tests.support.waiting import wait_until


def test_garbage_ends_a_connection_and_nothing_else() -> None:
    rng = random.Random(0)
    with served(store([0])) as server, fetching(server.address) as tier:
        for number in range(20):
            connection = socket.create_connection(server.address, 10.0)
            data = rng.randbytes(rng.randint(1, 200))
            if number % 2:
                data = struct.pack("!II", 20, rng.choice([0, 1, 1 << 31])) + data
            connection.sendall(data)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1024):
                    pass
            connection.close()
        tier.ask([digest_of(0)])
        assert tier.get(digest_of(0)) == page_of(0)


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({"t": "get", "n": 0}, bytes(15)),
        ({"t": "get", "n": 0}, bytes(32)),
        ({"t": "get"}, bytes(16)),
        ({"t": "put", "n": 0}, bytes(16)),
        ({"t": "ask", "n": None}, bytes(16)),
        ({"t": "ask", "n": 0}, bytes(16 * (page_server.MAX_ASKED + 1))),
        ({"t": ["ask"], "n": 0}, b""),
    ],
)
def test_a_malformed_request_ends_the_connection(fields: dict[str, object], body: bytes) -> None:
    with served(store([0])) as server:
        stream = stream_to(server.address)
        greet(stream, SECRET, IDENTITY, b"me")
        with suppress(PeerError):
            stream.send(fields, body)
        with pytest.raises(PeerError):
            stream.receive(10.0)
        stream.close()


def test_connections_are_bounded_and_strangers_more_tightly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_server, "MAX_STRANGERS", 2)
    monkeypatch.setattr(page_server, "MAX_CONNECTIONS", 4)
    with served(store([0])) as server:
        strangers = [socket.create_connection(server.address, 10.0) for _ in range(3)]
        assert strangers[2].recv(1) == b"", "closed at once"
        assert server.stats.num_refused == 1
        strangers[0].close()
        strangers[1].shutdown(socket.SHUT_WR)
        assert strangers[1].recv(1) == b""
        for each in strangers[1:]:
            each.close()
        wait_until(lambda: not server._streams)  # a place is free once the thread of its connection has ended
        streams = []
        for _ in range(4):
            streams.append(stream_to(server.address))
            greet(streams[-1], SECRET, IDENTITY, b"me")
            # The server counts a peer as a stranger until its thread has sent the last frame and gone on.
            wait_until(lambda: server.stats.num_connections == len(streams))
        more = socket.create_connection(server.address, 10.0)
        assert more.recv(1) == b""
        more.close()
        for stream in streams:
            stream.close()


def test_a_question_waits_for_pages_that_are_being_stored() -> None:
    tier = store([])
    with served(tier) as server, fetching(server.address) as client:
        server.settle = lambda: tier.put(digest_of(0), memoryview(page_of(0)))
        client.ask([digest_of(0)])
        assert client.has(digest_of(0))


def test_closing_ends_its_threads() -> None:
    with served(store([0])) as server, fetching(server.address) as tier:
        tier.ask([digest_of(0)])
    for thread in threading.enumerate():
        if thread.name.startswith("cache-"):
            thread.join(10.0)
    assert not [each for each in threading.enumerate() if each.name.startswith("cache-")]


def test_a_connection_that_cannot_get_a_thread_or_a_descriptor_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(error: Exception) -> Callable[..., None]:
        def fails(*args: object) -> None:
            raise error

        return fails

    with served(store([1])) as server:
        for place, name, error in (
            (threading.Thread, "start", RuntimeError("can't start new thread")),
            (page_server.FrameStream, "__init__", OSError(24, "Too many open files")),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(place, name, failing(error))
                connection = socket.create_connection(server.address, 10.0)
                assert connection.recv(1) == b""
                connection.close()
        with fetching(server.address) as tier:
            assert tier.stats.num_connected == 1
        assert len(server._streams) <= 1
