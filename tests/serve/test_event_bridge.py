"""Events reach the loop in order, grouped by connection, with one wake-up for a burst."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from rtlang.contract.events import Event, TextDelta
from rtlang.serve.event_bridge import EventBridge


class RecordingSink:
    def __init__(self, error: Exception | None = None) -> None:
        self.deliveries: list[list[tuple[int, Event]]] = []
        self.error, self.was_aborted = error, False
        self.done = asyncio.Event()
        self.expected = 0

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        self.deliveries.append(events)
        if sum(map(len, self.deliveries)) == self.expected:
            self.done.set()
        if self.error is not None:
            raise self.error

    def abort(self) -> None:
        self.was_aborted = True


def delta(number: int) -> TextDelta:
    return TextDelta(number, 0, 0, "x")


def test_a_burst_is_delivered_once_per_connection() -> None:
    async def body() -> None:
        event_bridge = EventBridge(asyncio.get_running_loop())
        one, other = RecordingSink(), RecordingSink()
        listeners = [event_bridge.listener(one, 1), event_bridge.listener(other, 1), event_bridge.listener(one, 2)]
        for number in range(10):  # the loop does not run in between: as when an engine tells a step
            for listener in listeners:
                listener(delta(number))
        one.expected = 20
        await one.done.wait()
        assert one.deliveries == [[(stream, delta(number)) for number in range(10) for stream in (1, 2)]]
        assert other.deliveries == [[(1, delta(number)) for number in range(10)]]

    asyncio.run(body())


def test_events_of_other_threads_arrive_all_and_in_their_order() -> None:
    async def body() -> None:
        event_bridge = EventBridge(asyncio.get_running_loop())
        sink = RecordingSink()
        sink.expected = 4 * 2000

        def tell(stream: int) -> None:
            listener = event_bridge.listener(sink, stream)
            for number in range(2000):
                listener(delta(number))

        threads = [threading.Thread(target=tell, args=(stream,)) for stream in range(4)]
        for thread in threads:
            thread.start()
        await asyncio.wait_for(sink.done.wait(), 20)
        for thread in threads:
            thread.join()
        arrived = [pair for events in sink.deliveries for pair in events]
        for stream in range(4):
            assert [event for of, event in arrived if of == stream] == [delta(number) for number in range(2000)]

    asyncio.run(body())


def test_a_failing_connection_does_not_affect_the_events_of_others(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        event_bridge = EventBridge(asyncio.get_running_loop())
        bad, good = RecordingSink(ValueError("bug")), RecordingSink()
        good.expected = 1
        event_bridge.listener(bad, 1)(delta(0))
        event_bridge.listener(good, 1)(delta(0))
        await good.done.wait()
        assert bad.was_aborted
        assert not good.was_aborted

    with caplog.at_level(logging.ERROR):
        asyncio.run(body())
    assert "delivering 1 events to a connection failed" in caplog.text


def test_a_listener_ignores_events_after_its_loop_closed() -> None:
    async def body() -> EventBridge:
        return EventBridge(asyncio.get_running_loop())

    event_bridge = asyncio.run(body())
    sink = RecordingSink()
    for number in range(3):
        event_bridge.listener(sink, 1)(delta(number))
    assert sink.deliveries == []
