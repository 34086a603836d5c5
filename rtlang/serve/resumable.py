"""Resumable streams: a client that reconnects continues reading where its previous connection broke.

A stream opened with a resume timeout logs the events it sends, in bounded memory, whether or not a client is connected. When its
connection ends without `bye`, its graph keeps running until the timeout; a later connection can attach to the stream and receives the
logged events after the last message it has. Everything here runs on the server's event loop.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rtlang.contract.errors import GoneError, ProtocolError, RtlangError
from rtlang.contract.events import (
    CallRequested,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
    TokenLogprob,
)
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.target import GraphRun
from rtlang.protocol.event_codec import Offsets, next_offset
from rtlang.protocol.messages import OpenKey
from rtlang.serve.event_bridge import EventSink
from rtlang.serve.idempotent_extends import ExtendLog

logger = logging.getLogger(__name__)

_MAX_SHARE = 16  # one log may use at most 1/16 of the memory of all logs
_EVENT_BYTES, _NUMBER_BYTES = 200, 32  # approximate size in memory of an event, and of a number in it


class StreamReader(EventSink, Protocol):
    """A connection that reads a stream.

    Attributes:
        number: increases with each new connection.
    """

    number: int

    def lose_stream(self, stream: int, error: RtlangError) -> None:
        """Handle the takeover of the stream by another connection."""


@dataclass(frozen=True, slots=True)
class StreamReplay:
    """The starting state for a newly attached connection: chunk counts by node and choice, then the events to resend."""

    offsets: Offsets
    events: tuple[Event, ...]


class ResumableStream:
    """One resumable stream. Created by `ResumeRegistry.begin`; `run` is set once its graph is accepted.

    Attributes:
        rid: random, unguessable id of the stream.
        key: the client's idempotency key and a digest of the opened body, by which a repeated `open` finds the stream; or None.
        principal: the party that the stream belongs to; no other may attach.
        run: the running graph; None after it has ended.
        has_ended: whether the final event is in the log.
        num_granted: all credit that the client has granted.
        request_id: of the request that opened it.
        decision: done once the target has accepted or refused the graph.
        extends: the outcomes of the stream's `extend` messages.
    """

    def __init__(
        self,
        owner: ResumeRegistry,
        reader: StreamReader,
        stream: int,
        resume_timeout_s: float,
        key: OpenKey | None,
        principal: Principal,
    ) -> None:
        self.rid, self.key, self.principal = secrets.token_hex(16), key, principal
        self.run: GraphRun | None = None
        self.has_ended = self._is_forgotten = False
        self.extends = ExtendLog()
        self.num_granted = 0
        self.request_id: str | None = None
        self._owner, self._resume_timeout_s = owner, resume_timeout_s
        self._place: tuple[StreamReader, int] | None = (reader, stream)
        self._last_reader = reader.number
        self._log: deque[tuple[Event, int]] = deque()
        self._num_dropped = 0
        self._offsets_at_start: Offsets = {}
        self._num_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.decision: asyncio.Future[None] = owner.loop.create_future()

    def begin(self, run: GraphRun) -> None:
        """Take the running graph, once it is accepted; it is cancelled if the stream was forgotten meanwhile."""
        if self._is_forgotten:
            cancel(run)
        elif not self.has_ended:
            self.run = run
        self._decide()

    @property
    def is_pending(self) -> bool:
        """Whether the target has neither accepted nor refused the graph yet."""
        return not self.decision.done()

    def take(self, event: Event) -> tuple[EventSink, int] | None:
        """Log an event; returns the connection and stream id to send it to, or None while detached."""
        if self._is_forgotten:
            return None
        size = _size_of(event)
        self._log.append((event, size))
        self._count(size)
        self._owner.make_room()
        while len(self._log) > 1 and self._owner.exceeds_budget(self._num_bytes):
            dropped, size = self._log.popleft()
            next_offset(self._offsets_at_start, dropped)
            self._num_dropped += 1
            self._count(-size)
        if isinstance(event, (GraphFinished, GraphFailed)):
            self.has_ended, self.run = True, None
            self._owner.note_end(self)
            self._owner.note_reader(self)
            self._start_timer()  # a client that missed the end has this long to attach
        return self._place

    def attach(self, reader: StreamReader, stream: int, position: int) -> StreamReplay:
        """Attach a connection that has received the first `position` messages of the stream.

        Raises:
            GoneError: a newer connection has attached since (this request arrived late); or the log no longer holds the message
                after `position` (the stream then ends, unless a connection is reading it); or `position` is beyond the last
                message; or the stream has ended and nothing follows.
        """
        if reader.number < self._last_reader:
            raise GoneError("a newer connection has attached to the stream", param="s")
        skipped = position - self._num_dropped
        if not 0 <= skipped <= len(self._log):
            known = f"{self._num_dropped} to {self._num_dropped + len(self._log)}"
            if skipped < 0 and self._place is None:
                self.end()  # the client has lost messages for good, and no other connection reads the stream
            raise GoneError(f"from = {position}: the log holds messages {known}", param="from")
        if self.has_ended and skipped == len(self._log):
            raise GoneError(f"from = {position}: the stream has ended and has no further messages", param="from")
        if not self.has_ended:
            self._stop_timer()
            if self._place is not None:
                before, old_stream = self._place
                before.lose_stream(old_stream, GoneError("another connection has attached to the stream", param="s"))
        self._place, self._last_reader = (reader, stream), reader.number
        self._owner.note_reader(self)
        offsets = dict(self._offsets_at_start)
        events = [event for event, _ in self._log]
        for event in events[:skipped]:
            next_offset(offsets, event)
        return StreamReplay(offsets, tuple(events[skipped:]))

    def detach(self, reader: StreamReader) -> None:
        """Handle the end of a connection: start the resume timeout, unless another connection has attached."""
        if not self.is_read_by(reader):
            return
        self._place = None
        if not self.has_ended and not self._owner.may_detach(self.principal):
            logger.info("ending a stream of %s, which has its maximum of detached streams", self.principal.name)
            self.end()
            return
        self._owner.note_reader(self)
        if self._owner.is_closed:
            self.end()
        elif not self.has_ended:
            self._start_timer()

    def _decide(self) -> None:
        if not self.decision.done():
            self.decision.set_result(None)

    def leave(self, reader: StreamReader) -> None:
        """End the stream because its client said `bye`, unless another connection has attached."""
        if self.is_read_by(reader):
            self.end()

    def end(self) -> None:
        """Cancel the graph and forget the stream."""
        self._stop_timer()
        self._place, self._is_forgotten = None, True
        self._decide()
        self._count(-self._num_bytes)
        self._log.clear()
        self._owner.forget(self.rid)
        if self.run is not None:
            cancel(self.run)

    @property
    def num_logged(self) -> int:
        """Number of events in the log."""
        return len(self._log)

    @property
    def is_detached(self) -> bool:
        """Whether no connection reads the stream."""
        return self._place is None

    def is_read_by(self, reader: StreamReader) -> bool:
        """Whether this connection reads the stream."""
        return self._place is not None and self._place[0] is reader

    def _count(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        self._owner.count(num_bytes)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self._owner.loop.call_later(self._resume_timeout_s, self.end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ResumeRegistry:
    """All resumable streams of one server.

    Args:
        loop: the server's event loop.
        epoch: random id of this server process; streams of another epoch are unknown.
        max_bytes: approximate limit on the memory of all logs together.
        metrics: receives the number of detached streams and the size of all logs.
        max_detached: maximum number of detached streams of a principal without a limit of its own.

    Attributes:
        num_bytes: approximate memory of all logs.
        is_closed: whether the server is shutting down; no stream survives its connection then.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        epoch: str,
        max_bytes: int,
        metrics: Metrics,
        max_detached: int = 1024,
    ) -> None:
        self.loop = loop
        self.num_bytes = 0
        self.is_closed = False
        self._epoch, self._max_bytes, self._metrics = epoch, max_bytes, metrics
        self._runs: dict[str, ResumableStream] = {}
        self._ended: dict[str, ResumableStream] = {}  # ended streams, oldest end first
        self._keys: dict[tuple[str, str], str] = {}  # by name of the principal and key
        self._detached: dict[str, str] = {}  # name of the principal by stream
        self._num_detached: Counter[str] = Counter()
        self._max_detached = max_detached

    def begin(
        self,
        reader: StreamReader,
        stream: int,
        resume_timeout_s: float,
        key: OpenKey | None = None,
        principal: Principal = LOCAL,
    ) -> ResumableStream:
        """Create a stream of `reader` that survives its connection for `resume_timeout_s` seconds."""
        run = ResumableStream(self, reader, stream, resume_timeout_s, key, principal)
        self._runs[run.rid] = run
        if key is not None:
            self._keys[principal.name, key.name] = run.rid
        return run

    def may_detach(self, principal: Principal) -> bool:
        """Whether one more stream of the principal may be detached."""
        limit = principal.limits.max_detached
        return self._num_detached[principal.name] < (self._max_detached if limit is None else limit)

    def opened_as(self, key: OpenKey, principal: Principal = LOCAL) -> ResumableStream | None:
        """The stream that the principal opened with this idempotency key, or None if there is none.

        Raises:
            ProtocolError: the key was used with a different kind or body.
        """
        rid = self._keys.get((principal.name, key.name))
        if rid is None:
            return None
        run = self._runs[rid]
        if run.key != key:
            raise ProtocolError("idem was already used with a different kind or body; use a new key", param="idem")
        return run

    def find(self, rid: str, epoch: str, principal: Principal = LOCAL) -> ResumableStream:
        """The stream of the principal with this id.

        Raises:
            GoneError: the stream is unknown or has expired, belongs to another principal, or the server has restarted.
        """
        run = self._runs.get(rid)
        if epoch != self._epoch:
            raise GoneError("the server has restarted", param="epoch")
        if run is None or run.principal.name != principal.name:
            raise GoneError("unknown or expired stream", param="rid")
        return run

    def forget(self, rid: str) -> None:
        """Remove a stream; called by `ResumableStream.end`."""
        run = self._runs.pop(rid, None)
        self._ended.pop(rid, None)
        if run is not None:
            if run.key is not None:
                del self._keys[run.principal.name, run.key.name]
            self._set_detached(run, False)

    def count(self, num_bytes: int) -> None:
        """Account for a log that grew by `num_bytes` (negative: shrank)."""
        self.num_bytes += num_bytes
        self._metrics.ws_resume_buffer_bytes.set(self.num_bytes)

    def note_reader(self, run: ResumableStream) -> None:
        """Update the metrics after `run` was attached, was detached or has ended."""
        self._set_detached(run, run.is_detached and not run.has_ended)

    def _set_detached(self, run: ResumableStream, is_detached: bool) -> None:
        name = run.principal.name
        if is_detached and run.rid not in self._detached:
            self._detached[run.rid] = name
            self._num_detached[name] += 1
        elif not is_detached and self._detached.pop(run.rid, None) is not None:
            self._num_detached[name] -= 1
            if not self._num_detached[name]:
                del self._num_detached[name]
        self._metrics.ws_streams_detached.set(len(self._detached))

    def note_end(self, run: ResumableStream) -> None:
        """Mark `run` as ended: its log is dropped first when memory runs short."""
        self._ended[run.rid] = run

    def make_room(self) -> None:
        """Forget ended streams while all logs together exceed `max_bytes`."""
        while self.num_bytes > self._max_bytes and self._ended:
            next(iter(self._ended.values())).end()

    def exceeds_budget(self, num_bytes: int) -> bool:
        """Whether a log of `num_bytes` must drop its oldest events."""
        return num_bytes > self._max_bytes // _MAX_SHARE or self.num_bytes > self._max_bytes

    def end_streams(self, is_gone: Callable[[Principal], bool]) -> None:
        """Cancel the streams of principals that are gone."""
        for run in tuple(self._runs.values()):
            if is_gone(run.principal):
                run.end()

    def close(self) -> None:
        """Cancel all detached streams; from now on streams end with their connection."""
        self.is_closed = True
        for run in tuple(self._runs.values()):
            if run.is_detached:
                run.end()


def cancel(run: GraphRun) -> None:
    """Cancel a graph that has no reader."""
    try:
        run.cancel()
    except RtlangError as error:
        logger.warning("graph %d could not be cancelled: %s", run.graph_id, error)


def _size_of(event: Event) -> int:
    """Approximate size of an event in memory, in bytes."""
    size = _EVENT_BYTES
    match event:
        case TextDelta():
            size += 2 * len(event.text) + _NUMBER_BYTES * len(event.token_ids)
        case NodeFinished():
            size += (
                _size_of_value(event.value)
                + _NUMBER_BYTES * len(event.scores or ())
                + _size_of_logprobs(event.prompt_logprobs or ())
                + sum(map(_size_of_logprobs, event.choice_logprobs or ()))
                + sum(map(_size_of_logprobs, event.unconditional_logprobs or ()))
            )
            for completion in event.completions:
                size += 2 * len(completion.text) + _NUMBER_BYTES * len(completion.token_ids)
                size += _size_of_logprobs(completion.logprobs or ())
        case GraphFinished():
            size += _size_of_value(event.values)
        case CallRequested():
            size += _size_of_value(event.args)
        case NodeFailed() | GraphFailed():
            size += 2 * len(event.error.message)
    return size


def _size_of_value(value: object) -> int:
    """Approximate size of a plain value in memory, in bytes."""
    if isinstance(value, str):
        return _EVENT_BYTES + 2 * len(value)
    if isinstance(value, dict):
        return _NUMBER_BYTES + sum(_size_of_value(key) + _size_of_value(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return _NUMBER_BYTES + sum(map(_size_of_value, value))
    return _NUMBER_BYTES


def _size_of_logprobs(logprobs: Sequence[TokenLogprob]) -> int:
    """All tokens of a list have as many alternatives, but for the first ones of a prompt."""
    return len(logprobs) * (_EVENT_BYTES + 2 * _NUMBER_BYTES * len(logprobs[-1].top)) if logprobs else 0
