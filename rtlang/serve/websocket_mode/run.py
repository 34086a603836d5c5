"""Runs one response of a connection of WebSocket mode: its events become frames, at the pace of the client.

The frames are the events of the stream over HTTP. A request that fails before its first event is answered with an `error` frame, one that
fails later with `response.failed`; the kept response that it was to continue is forgotten then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.events import Event
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.errors import described_error
from rtlang.serve.http.events.asked_events import asked_events
from rtlang.serve.http.events.direct_events import DirectEvents
from rtlang.serve.http.response_turn import ResponseTurn, open_turn
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai.shapes import Asked
from rtlang.serve.records.request_record import current_record
from rtlang.serve.responses.output_events import Chunk
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.service import StreamService
from rtlang.serve.websocket_mode.frames import Create, error_frame
from rtlang.serve.websocket_mode.handshake import DOOR
from rtlang.serve.websocket_mode.output import ModeOutput
from rtlang.work.work_account import request_work

_T = TypeVar("_T")
_FIRST_WAIT_S = 1.0  # an error that comes within this time is an `error` frame
_TRACE = ("ws_request_header_traceparent", "ws_request_header_tracestate")
"""Headers of one response, as Codex sends them in `client_metadata`."""


class ResponseRun:
    """Runs the responses of one connection, one call each.

    Args:
        trace: `traceparent` and `tracestate` of the upgrade request, for responses without their own.
    """

    def __init__(
        self,
        service: StreamService,
        principal: Principal,
        output: ModeOutput,
        trace: tuple[str | None, str | None],
    ) -> None:
        self._service, self._principal, self._output, self._trace = service, principal, output, trace
        self._kept: set[str] = set()  # ids in the store of connections

    def keep(self, done: StoredResponse) -> bool:
        """Keep a response for the connection unless the server stores it; returns whether the connection keeps it."""
        is_kept = not done.response["store"] and self._service.responses.connections.put(self._principal.name, done)
        if is_kept:
            self._kept.add(done.response["id"])
        return is_kept

    def forget(self, response_id: str) -> None:
        """Forget a kept response."""
        self._kept.discard(response_id)
        self._service.responses.connections.remove(self._principal.name, response_id)

    async def __call__(self, asked: Create) -> StoredResponse | None:
        """Run a response. Returns it, for the next one of its lane to continue; None if it failed."""
        record = self._service.records.begin(self._context(asked))
        record.identify(self._principal.name)
        tokens = current_record.set(record), request_work.set(record.work)
        running = _Running(self._service, self._principal, self._output, asked)
        status: int | None = None
        try:
            try:
                done = await running.run(self._found)
                status = 200
            except Exception as error:
                status, body = described_error(error)
                self._output.send(await running.failure(status, body))
                done = None
                self._forget_previous(asked)
        finally:
            current_record.reset(tokens[0])
            request_work.reset(tokens[1])
            record.answer(status)
        return done

    def refuse(self, error: Exception, lane: str | None) -> None:
        """Answer an invalid message with an `error` frame."""
        record = self._service.records.begin(RequestContext.of(None, DOOR))
        record.identify(self._principal.name)
        token = current_record.set(record)
        try:
            record.status, body = described_error(error)
            self._output.send([error_frame(record.status, body, lane)])
        finally:
            current_record.reset(token)
            record.release()

    def _found(self, response_id: str) -> StoredResponse | None:
        """A response that this connection keeps."""
        if response_id not in self._kept:
            return None
        return self._service.responses.connections.get(self._principal.name, response_id)

    def _forget_previous(self, asked: Create) -> None:
        previous = asked.body.get("previous_response_id")
        if isinstance(previous, str) and previous in self._kept:
            self.forget(previous)

    def _context(self, asked: Create) -> RequestContext:
        given = asked.body.get("client_metadata")
        parent, state = (given.get(name) for name in _TRACE) if isinstance(given, dict) else (None, None)
        if isinstance(parent, str):
            return RequestContext.of(None, DOOR, parent, state if isinstance(state, str) else None)
        return RequestContext.of(None, DOOR, *self._trace)


class _Running:
    """One response that runs."""

    def __init__(self, service: StreamService, principal: Principal, output: ModeOutput, asked: Create) -> None:
        self._service, self._principal, self._output, self._asked = service, principal, output, asked
        self._turn: ResponseTurn | None = None
        self._may_pass = False
        self._done: StoredResponse | None = None

    async def run(self, lookup: Callable[[str], StoredResponse | None]) -> StoredResponse | None:
        """Send the events of the response.

        Raises:
            HttpError, RtlangError: it failed; `failure` has the frames for it.
        """
        service, principal, asked = self._service, self._principal, self._asked
        turn = self._turn = await open_turn(
            service,
            asked.body,
            principal,
            self._work,
            asked.num_bytes,
            lookup=lookup,
            on_done=self._note_done,
        )
        graph = turn.asked if asked.generates else _prompt_only(turn.asked)
        batches = asked_events(service, graph, principal, DirectEvents(self, self._encoded))
        async with aclosing(batches):
            first = asyncio.ensure_future(anext(batches))
            try:
                await asyncio.wait((first,), timeout=_FIRST_WAIT_S)
                if not first.done():  # the first token takes long
                    begin = partial(self._frames, turn.writer.begin())
                    self._output.send(await service.encode(principal, (), begin, more_s=turn.given.heading_s))
                    self._may_pass = True
                await self._send(await first)
            finally:
                first.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await first
            self._may_pass = True
            async for events in batches:
                await self._send(events)
        return self._done

    async def failure(self, status: int, body: Chunk) -> list[bytes]:
        """The frames for an error. `body`: the body of the error response over HTTP."""
        turn = self._turn
        if turn is None or not turn.writer.has_begun:
            return [error_frame(status, body, self._asked.lane)]
        made = partial(self._failed, turn, body)
        return await self._service.encode(self._principal, (), made, more_s=turn.given.heading_s)

    def _failed(self, turn: ResponseTurn, body: Chunk) -> list[bytes]:
        return self._frames([turn.writer.failure(body)])

    @property
    def is_ready(self) -> bool:
        """Whether small events may go past the task: the response has begun, and the socket takes frames."""
        return self._may_pass and self._output.is_ready

    def write(self, frames: Sequence[bytes]) -> None:
        """Send the frames of small events."""
        self._output.send(frames)

    async def _send(self, events: Sequence[Event]) -> None:
        turn = self._turn
        assert turn is not None
        await turn.tokens.load(events)
        encode, more_s = partial(self._encoded, events), turn.heading_s(events)
        self._output.send(await self._service.encode(self._principal, events, encode, more_s=more_s))
        await self._output.drain()

    def _encoded(self, events: Sequence[Event]) -> list[bytes]:
        assert self._turn is not None
        writer = self._turn.writer
        shown = writer.chunks if self._asked.generates else writer.prepared
        return self._frames(chunk for event in events for chunk in shown(event))

    def _frames(self, chunks: Iterable[Chunk]) -> list[bytes]:
        lane = {} if self._asked.lane is None else {"stream_id": self._asked.lane}
        return [json_text(chunk | lane).encode(errors="replace") for chunk in chunks]

    def _note_done(self, done: StoredResponse) -> None:
        self._done = done

    def _work(self, price: float, fn: Callable[[], _T], *, kind: WorkKind, may_wait: bool = False) -> Awaitable[_T]:
        return self._service.run(self._principal, price, fn, kind=kind, may_wait=may_wait)


def _prompt_only(asked: Asked) -> Asked:
    """The request with a graph that computes its prompt, without output."""
    prompt = asked.graph.nodes[0]
    graph = RequestGraph((prompt, Generate(1, prompt.node_id, None, SamplingParams(max_tokens=0))), outputs=(1,))
    return replace(asked, graph=graph)
