"""Runs one graph for one HTTP request.

The events come through the EventBridge into a bounded buffer. The graph is cancelled when the client leaves, when it does not take its
output, and when the reader of the events stops early. While the reader waits for events, small ones go past it to the connection
(direct_events.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from rtlang.contract.errors import AbortedError, RtlangError, SlowConsumerError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFinished, TextDelta
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, RunOptions
from rtlang.contract.service.target import GraphRun
from rtlang.serve.http.errors import HttpError, draining_error
from rtlang.serve.http.events.direct_events import DirectEvents
from rtlang.serve.resumable import cancel
from rtlang.serve.service import StreamService

_EVENT_BYTES = 200  # of an event without its text, approximately


class EventBuffer:
    """The events of one graph between the event bridge and the response that reads them. Owned by the server's event loop.

    Args:
        direct: writes small events while the reader waits for events.

    Attributes:
        error: the reason why the server ended the response before the graph ended.
    """

    def __init__(self, service: StreamService, direct: DirectEvents[Any] | None = None) -> None:
        self._service, self._direct = service, direct
        self._is_read_up = False  # the reader has done all that it was given, and waits
        self._events: list[Event] = []
        self._arrived = asyncio.Event()
        self._num_bytes = self._largest = 0
        self._has_ended = False
        self.error: RtlangError | HttpError | None = None

    @property
    def num_running(self) -> int:
        """1 until the graph has ended."""
        return 0 if self._has_ended else 1

    def drain(self, deadline_s: float) -> None:
        """Nothing to tell: the response goes on."""

    def end(self, code: int, reason: str) -> None:
        """Cancel the graph, because the server stops, or the key was removed."""
        is_draining, config = self._service.is_draining, self._service.config
        self._stop(draining_error(config.drain_timeout_s) if is_draining else AbortedError(reason))

    def abort(self) -> None:
        """Cancel the graph, because events were lost."""
        self._stop(RtlangError("events of the graph were lost"))

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        """Buffer events for the reader."""
        if self.error is not None:
            return
        if self._is_read_up and not self._events and self._direct is not None and self._direct.take(events):
            return
        for _, event in events:
            size = _size(event)
            self._events.append(event)
            self._num_bytes += size
            self._largest = max(self._largest, size)
            if isinstance(event, (GraphFinished, GraphFailed)):
                self._has_ended = True
        self._arrived.set()
        if self._num_bytes - self._largest > self._service.config.send_buffer_bytes:
            self._overflow(SlowConsumerError("the client did not take its output in time"))

    async def batches(self) -> AsyncGenerator[list[Event], None]:
        """The events in groups of those that have arrived together, without those that were written directly. Ends with the final event.

        Ask for the next group only when the last one is written.


        Raises:
            RtlangError, HttpError: the server ended the response.
        """
        while True:
            self._is_read_up = True
            try:
                await self._arrived.wait()
            finally:
                self._is_read_up = False
            self._arrived.clear()
            if self.error is not None:
                raise self.error
            events, self._events = self._events, []
            self._num_bytes = self._largest = 0
            if events:
                yield events
            if events and isinstance(events[-1], (GraphFinished, GraphFailed)):
                return

    def _overflow(self, error: SlowConsumerError) -> None:
        """Handle more unread output than the server holds for one client."""
        self._stop(error)

    def _stop(self, error: RtlangError | HttpError) -> None:
        """Cancel the graph; the reader gets the error."""
        raise NotImplementedError


class GraphStream(EventBuffer):
    """Runs one graph. Use as an asynchronous context manager, which submits the graph, and cancels one that has not ended.

    Args:
        options: the options of the run, with its principal.
        direct: see `EventBuffer`.
    Raises:
        HttpError: on entry: the server is shutting down (503).
        OverloadError: on entry: the queue is full.
        RtlangError: on entry: the target refuses the graph.
    """

    def __init__(
        self,
        service: StreamService,
        graph: RequestGraph,
        options: RunOptions = DEFAULT_OPTIONS,
        direct: DirectEvents[Any] | None = None,
    ) -> None:
        super().__init__(service, direct)
        self._graph, self._options = graph, options
        self.principal: Principal | None = options.principal
        self._run: GraphRun | None = None

    async def __aenter__(self) -> GraphStream:
        service = self._service
        if service.is_draining:
            raise draining_error(service.config.drain_timeout_s)
        service.http_streams.add(self)
        try:
            listener = service.event_bridge.listener(self, 0)
            self._run = await service.submit(self._graph, listener, self._options)
        except BaseException:
            self._has_ended = True
            self._close()
            raise
        if self.error is not None:  # the server has ended the response meanwhile
            cancel(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    def _stop(self, error: RtlangError | HttpError) -> None:
        if self.error is None and not self._has_ended:
            self.error = error
            self._close()
            self._arrived.set()

    def _close(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            if self._run is not None:
                cancel(self._run)
        self._service.http_streams.discard(self)
        if self._service.is_draining:
            self._service.check_idle()


async def events_of(
    service: StreamService, graph: RequestGraph, options: RunOptions = DEFAULT_OPTIONS
) -> AsyncIterator[Event]:
    """The events of a graph, one by one, up to and with its final event. Closing the iterator cancels the graph.

    Raises:
        RtlangError: the target refuses the graph (before the first event), or the server ends the stream.
    """
    async with GraphStream(service, graph, options) as stream:
        async for events in stream.batches():
            for event in events:
                yield event


def _size(event: Event) -> int:
    if isinstance(event, TextDelta):
        return _EVENT_BYTES + 4 * len(event.text)
    if isinstance(event, NodeFinished):
        return _EVENT_BYTES + sum(
            4 * len(each.text) + 8 * len(each.token_ids) + 100 * len(each.logprobs or ()) for each in event.completions
        )
    return _EVENT_BYTES
