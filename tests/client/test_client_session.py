"""The body that both clients share, over a transport whose servers are scripts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from rtlang.client.address import ServerAddresses
from rtlang.client.client_session import ClientSession, Link, completed
from rtlang.client.remote_cache import CacheRequests
from rtlang.client.remote_run import Answer
from rtlang.contract.errors import ConnectionLostError, SlowConsumerError
from rtlang.contract.events import Event, GraphFailed
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.protocol.messages import CloseCode
from rtlang.protocol.serialization import Encoding

GRAPH = RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams())))
WELCOME: dict[str, Any] = {"epoch": "e", "limits": {}, "models": []}
BROKEN, SLOW = ConnectionClosedError(None, None), ConnectionClosedError(Close(CloseCode.SLOW, "slow"), None)


class Scripted:
    """Servers by URL, each with what it says next: a message, or the end of the connection. It blocks or suspends never."""

    is_closing = False

    def __init__(self, **servers: list[Any]) -> None:
        self.servers = servers
        self.dialled: list[str] = []
        self.closed: list[str] = []

    async def dial(self, url: str) -> Link:
        self.dialled.append(url)
        name = url.removeprefix("ws://")
        if not self.servers.get(name):
            raise ConnectionLostError(f"{url}: refused")
        return Link(name, WELCOME)

    async def receive(self, link: Link) -> bytes:
        said = self.servers[link.websocket].pop(0)
        if isinstance(said, Exception):
            raise said
        return Encoding.MSGPACK.pack(said)

    async def close(self, link: Link) -> None:
        self.closed.append(link.websocket)

    async def pause(self, seconds: float) -> None:
        return

    def flush(self, session: ClientSession) -> None:
        session.protocol.take_output()

    def later(self, seconds: float, act: Callable[[], None]) -> Any:
        raise AssertionError("no server is busy")


def opened(transport: Scripted, resume_s: float | None) -> tuple[ClientSession, list[Event]]:
    servers = ServerAddresses(["ws://a", "ws://b"])
    cache = CacheRequests(servers.url, None, 1.0)
    session = ClientSession(servers, cache, transport, resume_s, contextlib.nullcontext())
    completed(session.open())
    events: list[Event] = []
    owner: Any = session
    session.protocol.submit(owner, GRAPH, events.append, lambda: Answer(is_awaited=False))
    return session, events


@pytest.mark.parametrize(("end", "kind"), [(BROKEN, ConnectionLostError), (SLOW, SlowConsumerError)])
def test_a_graph_ends_once_with_the_reason_for_the_end_of_the_connection(end: Exception, kind: type) -> None:
    session, events = opened(Scripted(a=[end]), None)
    completed(session.read())
    (failed,) = events
    assert isinstance(failed, GraphFailed)
    assert type(failed.error) is kind
    assert isinstance(session.lost, ConnectionLostError)


def test_it_goes_on_with_the_other_server_and_closes_the_first_connection() -> None:
    transport = Scripted(a=[BROKEN], b=[{"t": "news"}, ConnectionClosedError(Close(4000, "over"), None)])
    session, events = opened(transport, 30.0)
    completed(session.read())
    assert transport.dialled == ["ws://a", "ws://a", "ws://b"]
    assert transport.closed == ["a"]
    assert [type(event) for event in events] == [GraphFailed]


def test_it_leaves_a_server_that_is_going_to_end_if_there_is_another_one() -> None:
    drain = {"t": "drain", "deadline_ms": 5}
    transport = Scripted(a=[drain], b=[drain, ConnectionClosedError(Close(4000, "over"), None)])
    session, _ = opened(transport, 30.0)
    completed(session.read())
    assert transport.dialled == ["ws://a", "ws://b", "ws://a"]


def test_nothing_is_sent_after_the_connection_is_lost() -> None:
    session, _ = opened(Scripted(a=[BROKEN]), None)
    acts: list[object] = []
    session.act(acts.append)
    assert acts == [session.protocol]
    completed(session.read())
    session.act(acts.append)
    assert acts == [session.protocol]


def test_a_transport_for_threads_has_to_block() -> None:
    with pytest.raises(AssertionError, match="has to block"):
        completed(asyncio.sleep(0))
