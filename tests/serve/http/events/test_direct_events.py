"""Events that are written where they are delivered: in order beside those of the task, and only while the connection takes them."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.events import Event, GraphFinished, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import Usage
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.connection import ServerInfo
from rtlang.serve.http.events.direct_events import MAX_EVENTS, DirectEvents, DirectWriter
from rtlang.serve.http.events.graph_stream import EventBuffer
from rtlang.serve.network.body_writer import BODY_WRITER, BodyWriter
from rtlang.serve.service import StreamService
from tests.support.long_tests import sized
from tests.support.programs.scripted_target import ScriptedTarget

END = GraphFinished(1, {}, Usage())


class Connection:
    """The connection of a response."""

    def __init__(self) -> None:
        self.is_ready = True
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        assert self.is_ready
        assert data
        self.written.append(data)

    @property
    def scope(self) -> dict[str, object]:
        return {"state": {BODY_WRITER: lambda: cast(BodyWriter, self)}}


def text(number: int, size: int = 1) -> TextDelta:
    return TextDelta(1, 1, 0, f"{number}," * size, (number,))


def encode(events: list[Event]) -> bytes:
    return b"".join(event.text.encode() for event in events if isinstance(event, TextDelta))


def a_buffer(direct: DirectEvents) -> EventBuffer:
    loop = asyncio.get_running_loop()
    return EventBuffer(StreamService(ScriptedTarget(), ServeConfig(port=0), ServerInfo("e"), Metrics(), loop), direct)


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(sized(200)))
def test_the_bytes_are_those_of_the_events_in_order(seed: int) -> None:
    """Any mix of groups, readers that are late, and connections that take nothing for a while."""
    dice = random.Random(seed)

    async def run() -> None:
        connection = Connection()
        direct = DirectWriter()
        buffer = a_buffer(DirectEvents(direct, lambda events: encode(list(events))))

        async def respond() -> None:
            async for events in buffer.batches():
                await turns(dice.randrange(3))  # the connection takes nothing meanwhile, or the encoder is on a thread
                connection.written.append(encode(events))
                direct.open(connection.scope)

        task = asyncio.ensure_future(respond())
        sent: list[Event] = []
        for number in range(60):
            size = dice.choice((1, 1, 1, 5000))
            group: list[Event] = [text(number, size) for _ in range(dice.choice((1, 1, 2, MAX_EVENTS + 1)))]
            connection.is_ready = dice.random() < 0.8
            buffer.deliver([(0, event) for event in group])
            sent += group
            await turns(dice.randrange(4))
        buffer.deliver([(0, END)])
        await task
        assert b"".join(connection.written) == encode(sent)

    asyncio.run(run())


def test_the_task_sleeps_while_text_is_written() -> None:
    async def run() -> None:
        connection, direct = Connection(), DirectWriter()
        buffer = a_buffer(DirectEvents(direct, lambda events: encode(list(events))))
        groups: list[list[Event]] = []

        async def respond() -> None:
            async for events in buffer.batches():
                groups.append(events)
                direct.open(connection.scope)

        task = asyncio.ensure_future(respond())
        for number in range(100):
            buffer.deliver([(0, text(number))])
            await turns(3)
        assert groups == [[text(0)]]
        assert connection.written == [f"{number},".encode() for number in range(1, 100)]
        buffer.deliver([(0, text(100)), (0, END)])
        await task
        assert groups[1:] == [[text(100), END]]

    asyncio.run(run())


@pytest.mark.parametrize(
    "event",
    [
        text(1, 4000),
        TextDelta(1, 1, 0, "a", (1,), (TokenLogprob(1, -1.0),)),
        NodeFinished(1, 1, None, (), Usage(), Timing()),
        END,
    ],
)
def test_what_takes_long_or_ends_the_response_is_left_to_the_task(event: Event) -> None:
    connection, direct = Connection(), DirectWriter()
    events = DirectEvents(direct, lambda events: b"x")
    direct.open(connection.scope)
    assert events.take([(0, text(1))])
    assert not events.take([(0, event)])
    assert not events.take([(0, text(1))] * (MAX_EVENTS + 1))
    connection.is_ready = False
    assert not events.take([(0, text(1))])
    connection.is_ready = True
    direct.close()
    assert not events.take([(0, text(1))])
    assert connection.written == [b"x"]


def test_a_connection_without_a_writer_leaves_all_to_the_task() -> None:
    direct = DirectWriter()
    events = DirectEvents(direct, lambda events: b"x")
    for scope in ({}, {"state": {}}, {"state": {BODY_WRITER: lambda: None}}):
        direct.open(scope)
        assert not events.take([(0, text(1))])


def test_text_that_shows_nothing_writes_nothing() -> None:
    connection, direct = Connection(), DirectWriter()
    events = DirectEvents(direct, lambda events: b"")
    direct.open(connection.scope)
    assert events.take([(0, text(1))])
    assert not connection.written
