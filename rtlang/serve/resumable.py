"""Streams that outlive their connection: a client whose socket broke comes back and reads on where it was.

A stream opened with a time to last keeps what it sent in a log of bounded size, whether or not anybody listens. When its connection ends
in any way but `bye`, its graph goes on for that time; a later connection that names it takes it over, and gets what follows its last
message out of the log. All of it happens on the server's event loop.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rtlang.contract.errors import GoneError, ProtocolError, RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.metrics import Metrics
from rtlang.contract.target import GraphRun
from rtlang.protocol.event_codec import Offsets, next_offset
from rtlang.protocol.messages import OpenKey
from rtlang.serve.event_bridge import EventSink
from rtlang.serve.idempotent_extends import ExtendLog

logger = logging.getLogger(__name__)

_SHARE_OF_ONE = 16  # one stream may fill this part of the memory of all logs
_EVENT_BYTES, _NUMBER_BYTES = 200, 32  # what an event and a number in it take in memory, about


class StreamReader(EventSink, Protocol):
    """A connection that reads a stream.

    Attributes:
        number: higher than those of earlier connections.
    """

    number: int

    def lose(self, stream: int, error: RtlangError) -> None:
        """Another connection has taken the stream over."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a connection that takes a stream over is told: pieces counted so far by node and choice, then what comes next."""

    offsets: Offsets
    events: tuple[Event, ...]


class ResumableStream:
    """One such stream. Made by `ResumeRegistry.begin`; `run` is set once its graph is accepted.

    Attributes:
        rid: its name, which only those know who were told.
        key: its client's name for it, if there is one, and what was opened: an open that is said again finds it by that.
        run: its graph, until that has ended.
        has_ended: its last event is in the log.
        extensions: what was answered to those of its graph.
    """

    def __init__(
        self, owner: ResumeRegistry, holder: StreamReader, stream: int, resume_timeout_s: float, key: OpenKey | None
    ) -> None:
        self.rid, self.key = secrets.token_hex(16), key
        self.run: GraphRun | None = None
        self.has_ended = self._is_forgotten = False
        self.extensions = ExtendLog()
        self._owner, self._lasts_s = owner, resume_timeout_s
        self._place: tuple[StreamReader, int] | None = (holder, stream)
        self._last_reader = holder.number
        self._log: deque[tuple[Event, int]] = deque()
        self._num_dropped = 0
        self._offsets_at_start: Offsets = {}
        self._num_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def take(self, event: Event) -> tuple[EventSink, int] | None:
        """Note an event; who is to have it, and as which stream, or None for nobody."""
        if self._is_forgotten:
            return None
        size = _size_of(event)
        self._log.append((event, size))
        self._count(size)
        self._owner.make_room()
        while len(self._log) > 1 and self._owner.is_too_much(self._num_bytes):
            dropped, size = self._log.popleft()
            next_offset(self._offsets_at_start, dropped)
            self._num_dropped += 1
            self._count(-size)
        if isinstance(event, (GraphFinished, GraphFailed)):
            self.has_ended, self.run = True, None
            self._owner.note_end(self)
            self._owner.note_reader(self)
            self._start_timer()  # whoever missed the end has this long to ask for it
        return self._place

    def attach(self, holder: StreamReader, stream: int, position: int) -> Replay:
        """Hand the stream to another connection, which has its first `position` messages.

        Raises:
            GoneError: a later connection had it, and what this one had said was heard late; or what follows them is no longer known
                (the stream ends then, unless somebody reads it), there are not that many, or nothing follows them.
        """
        if holder.number < self._last_reader:
            raise GoneError("a later connection has read the stream", param="s")
        skipped = position - self._num_dropped
        if not 0 <= skipped <= len(self._log):
            known = f"{self._num_dropped} to {self._num_dropped + len(self._log)}"
            if skipped < 0 and self._place is None:
                self.end()  # whoever asks for it can no longer use it, and nobody else reads it
            raise GoneError(f"message {position} of the stream is not kept; {known} can be asked for", param="from")
        if self.has_ended and skipped == len(self._log):
            raise GoneError("the stream has ended, and all of it has arrived", param="from")
        if not self.has_ended:
            self._stop_timer()
            if self._place is not None:
                before, old_stream = self._place
                before.lose(old_stream, GoneError("another connection has taken the stream over", param="s"))
        self._place, self._last_reader = (holder, stream), holder.number
        self._owner.note_reader(self)
        offsets = dict(self._offsets_at_start)
        events = [event for event, _ in self._log]
        for event in events[:skipped]:
            next_offset(offsets, event)
        return Replay(offsets, tuple(events[skipped:]))

    def detach(self, holder: StreamReader) -> None:
        """The connection has ended. The graph goes on for its time, unless another connection has it by now."""
        if not self._is_read_by(holder):
            return
        self._place = None
        self._owner.note_reader(self)
        if self._owner.is_closed:
            self.end()
        elif not self.has_ended:
            self._start_timer()

    def leave(self, holder: StreamReader) -> None:
        """The connection has said that it is done: the stream ends, unless another connection has it by now."""
        if self._is_read_by(holder):
            self.end()

    def end(self) -> None:
        """Cancel the graph, and forget the stream."""
        self._stop_timer()
        self._place, self._is_forgotten = None, True
        self._count(-self._num_bytes)
        self._log.clear()
        self._owner.forget(self.rid)
        if self.run is not None:
            cancel(self.run)

    @property
    def is_detached(self) -> bool:
        """Whether nobody reads it."""
        return self._place is None

    def _is_read_by(self, holder: StreamReader) -> bool:
        return self._place is not None and self._place[0] is holder

    def _count(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        self._owner.count(num_bytes)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self._owner.loop.call_later(self._lasts_s, self.end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ResumeRegistry:
    """All such streams of one server.

    Args:
        loop: of the server.
        epoch: of this start of the server; names of other starts are unknown.
        max_bytes: for all logs together, about.
        metrics: where streams without a connection, and the size of all logs, are told.

    Attributes:
        num_bytes: in all logs.
        is_closed: the server ends; nothing lasts any more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: str, max_bytes: int, metrics: Metrics) -> None:
        self.loop = loop
        self.num_bytes = 0
        self.is_closed = False
        self._epoch, self._max_bytes, self._metrics = epoch, max_bytes, metrics
        self._runs: dict[str, ResumableStream] = {}
        self._ended: dict[str, ResumableStream] = {}  # those of them, the first to end first
        self._keys: dict[str, str] = {}
        self._detached: set[str] = set()

    def begin(
        self, holder: StreamReader, stream: int, resume_timeout_s: float, key: OpenKey | None = None
    ) -> ResumableStream:
        """A stream of `holder` that outlives it by `resume_timeout_s` seconds."""
        run = ResumableStream(self, holder, stream, resume_timeout_s, key)
        self._runs[run.rid] = run
        if key is not None:
            self._keys[key.name] = run.rid
        return run

    def opened_as(self, key: OpenKey) -> ResumableStream | None:
        """The stream that was opened under this key, if it is still known.

        Raises:
            ProtocolError: something else was opened under it.
        """
        rid = self._keys.get(key.name)
        if rid is None:
            return None
        run = self._runs[rid]
        if run.key != key:
            raise ProtocolError("something else was opened under the same idem; a new one is needed", param="idem")
        return run

    def find(self, rid: str, epoch: str) -> ResumableStream:
        """The stream of that name.

        Raises:
            GoneError: there is none, or no longer.
        """
        run = self._runs.get(rid)
        if epoch != self._epoch:
            raise GoneError("the server was started anew since", param="epoch")
        if run is None:
            raise GoneError("no such stream, or its time is over", param="rid")
        return run

    def forget(self, rid: str) -> None:
        """`ResumableStream.end` calls it."""
        run = self._runs.pop(rid, None)
        self._ended.pop(rid, None)
        if run is not None:
            if run.key is not None:
                del self._keys[run.key.name]
            self._detached.discard(rid)
            self._metrics.ws_streams_detached.set(len(self._detached))

    def count(self, num_bytes: int) -> None:
        """A log has grown by so many bytes."""
        self.num_bytes += num_bytes
        self._metrics.ws_resume_buffer_bytes.set(self.num_bytes)

    def note_reader(self, run: ResumableStream) -> None:
        """`run` has won or lost its connection, or has ended."""
        if run.is_detached and not run.has_ended:
            self._detached.add(run.rid)
        else:
            self._detached.discard(run.rid)
        self._metrics.ws_streams_detached.set(len(self._detached))

    def note_end(self, run: ResumableStream) -> None:
        """The graph of `run` has ended: its log is the first to go where memory is short."""
        self._ended[run.rid] = run

    def make_room(self) -> None:
        """Forget streams that have ended while all logs together are too large."""
        while self.num_bytes > self._max_bytes and self._ended:
            next(iter(self._ended.values())).end()

    def is_too_much(self, num_bytes: int) -> bool:
        """Whether a log of so many bytes has to give up its beginning."""
        return num_bytes > self._max_bytes // _SHARE_OF_ONE or self.num_bytes > self._max_bytes

    def close(self) -> None:
        """The server ends: what nobody reads is cancelled, and nothing outlives its connection from now on."""
        self.is_closed = True
        for run in tuple(self._runs.values()):
            if run.is_detached:
                run.end()


def cancel(run: GraphRun) -> None:
    """Cancel a graph for which nobody waits."""
    try:
        run.cancel()
    except RtlangError as error:
        logger.warning("graph %d could not be cancelled: %s", run.graph_id, error)


def _size_of(event: Event) -> int:
    """Bytes that an event takes in memory, about."""
    size = _EVENT_BYTES
    match event:
        case TextDelta():
            size += 2 * len(event.text) + _NUMBER_BYTES * len(event.token_ids)
        case NodeFinished():
            size += _NUMBER_BYTES * len(event.scores or ()) + _size_of_logprobs(event.prompt_logprobs or ())
            for completion in event.completions:
                size += 2 * len(completion.text) + _NUMBER_BYTES * len(completion.token_ids)
                size += _size_of_logprobs(completion.logprobs or ())
        case GraphFinished():
            for value in event.values.values():
                texts = [value] if isinstance(value, str) else value
                size += sum(_EVENT_BYTES + 2 * len(text) for text in texts)
        case NodeFailed() | GraphFailed():
            size += 2 * len(event.error.message)
    return size


def _size_of_logprobs(logprobs: Sequence[TokenLogprob]) -> int:
    return sum(_EVENT_BYTES + 2 * _NUMBER_BYTES * len(item.top) for item in logprobs)
