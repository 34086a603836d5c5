"""The server side of one `rtlang.v1` connection as a state machine without I/O or clock.

The transport feeds in whole messages and carries out the returned actions: submit, attach, extend, close or cancel a graph. It reports
outcomes back (`opened`, `refused`, `deliver`, ...) and sends the messages from `take_output`. An error in one stream does not affect the
other streams. A fatal error sets `close_code`; nothing is read after that, and the transport must cancel the connection's graphs except
resumable ones. No input raises an exception.

Kinds that `open` accepts: `program` with body {graph: a RequestGraph in plain form, inputs: {name: text}, open: whether more nodes may
follow, priority}; `generate` and `chat` with body {prompt or messages, params, constraint, name, priority}. A stream opened with a
resume timeout can be attached by a later connection (resumable.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from rtlang.contract.accounts.request_context import request_id_of
from rtlang.contract.errors import OverloadError, ProtocolError, RtlangError, SlowConsumerError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.protocol.event_codec import Offsets, error_to_wire, event_slices, next_offset
from rtlang.protocol.messages import (
    VERSION,
    AttachStream,
    Bye,
    CancelStream,
    ClientMessage,
    CloseCode,
    CloseStream,
    ExtendNodes,
    GrantCredit,
    Hello,
    Open,
    Ping,
    RejectCall,
    ResolveCall,
    stream_of,
)
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.serve.client_messages import KINDS, ReadMessage, SubmitMessage, read_message
from rtlang.work.prices import has_large_value

logger = logging.getLogger(__name__)

# Large enough to make the cost per event negligible, small enough for a browser to show the first event of a burst at once.
_BATCH_BYTES = 256 << 10
_SLICE_BYTES = 16 << 10  # of a large event; about 1 ms


@dataclass(frozen=True, slots=True)
class Close:
    """Close the stream's graph: it gets no more nodes."""

    stream: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the stream's graph."""

    stream: int


Delivery = Generator[Callable[[], bytes] | None, bytes | None, None]
"""Packs events in slices; see `Connection.delivery`."""

Action = SubmitMessage | AttachStream | ExtendNodes | Close | Cancel | GrantCredit | ResolveCall | RejectCall
"""A task for the transport. `AttachStream`: attach to the stream, call `attached` and deliver the events after `position`, or call
`refused`. `ExtendNodes`: add the nodes to the stream's graph, close it if `closes`, then call `extended` or `extend_refused` with
`request`."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server's description of itself, sent in `welcome`.

    `epoch` is a random id of this server process. `models` and `limits` are plain maps; `caps` are the names of optional abilities.
    """

    epoch: str
    models: tuple[Mapping[str, Any], ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    caps: tuple[str, ...] = ()
    max_streams: int = 256
    decode_limits: DecodeLimits = field(default_factory=DecodeLimits)


def _unnoted(message: Mapping[str, Any], error: RtlangError, status: int) -> str:
    return request_id_of(None)


class Connection:
    """The protocol state of one connection. Owned by its transport's thread; not thread-safe.

    Args:
        encoding: the negotiated encoding.
        server_info: sent in `welcome`.
        principal: the client's, if the handshake presented its key.
        authenticate: returns the principal of the key that `hello` presents, or None if it is missing or wrong; None if no key is needed
            any more.
        admit: counts a connection of the principal; returns why there can be no more, and else None.

    Attributes:
        note_refused: called with an `open` that is refused before it asks for anything, the error and its status; returns its request id.
    """

    def __init__(
        self,
        encoding: Encoding,
        server_info: ServerInfo,
        principal: Principal = LOCAL,
        authenticate: Callable[[str | None], Principal | None] | None = None,
        admit: Callable[[Principal], str | None] = lambda principal: None,
    ) -> None:
        self.encoding = encoding
        self.close_code: CloseCode | int | None = None
        self.close_reason = ""
        self.has_said_hello = self.has_said_bye = False
        self.principal = principal
        self.note_refused: Callable[[Mapping[str, Any], RtlangError, int], str] = _unnoted
        self._server_info, self._authenticate, self._admit = server_info, authenticate, admit
        self._output: list[bytes] = []
        self._num_output_bytes = 0
        self._offsets: dict[int, Offsets] = {}  # by stream
        self._last_stream = 0
        self._drain_retry_s: float | None = None

    @property
    def streams(self) -> tuple[int, ...]:
        """Ids of the streams that have not ended."""
        return tuple(self._offsets)

    @property
    def sends_text(self) -> bool:
        """Whether messages are text frames."""
        return self.encoding.is_text

    @property
    def num_output_bytes(self) -> int:
        """Size in bytes of the messages waiting in `take_output`."""
        return self._num_output_bytes

    def take_output(self) -> list[bytes]:
        """Remove and return the messages to send, in order."""
        output, self._output, self._num_output_bytes = self._output, [], 0
        return output

    def receive(self, data: bytes, *, is_text: bool) -> list[Action]:
        """Process one whole message from the client. Never raises; an invalid message is answered with an error message."""
        return [] if self.close_code is not None else self.take(self.read(data, is_text=is_text))

    def read(self, data: bytes, *, is_text: bool) -> ReadMessage:
        """Decode and check one whole message. Changes nothing, so that another thread may do it while no other message is taken."""
        if is_text is not self.encoding.is_text:
            expected = "text" if self.encoding.is_text else "binary"
            error = ProtocolError(f"{self.encoding.value} uses {expected} frames", close_code=CloseCode.PROTOCOL)
            return ReadMessage(None, error)
        return read_message(data, self.encoding, self._server_info.decode_limits, reads_body=self.has_said_hello)

    def take(self, read: ReadMessage) -> list[Action]:
        """Process what `read` has given, as `receive`."""
        if self.close_code is not None:
            return []
        message = read.plain
        try:
            if isinstance(read.parsed, RtlangError):
                raise read.parsed
            if not self.has_said_hello:
                self._greet(read.parsed)
                return []
            return self._act(read)
        except ProtocolError as error:
            if error.close_code is not None:
                self._fail(error, error.close_code)
            elif not self.has_said_hello:
                self._fail(error, CloseCode.BAD_FIRST_FRAME)
            else:
                self._answer(error, message)
        except RtlangError as error:
            self._answer(error, message)
        return []

    def opened(self, stream: int, rid: str, num_granted: int | None = None, *, request_id: str | None = None) -> None:
        """Acknowledge `stream`: its graph was accepted, with the server-side id `rid`.

        Args:
            num_granted: its credit so far.
            request_id: of the request that opened it.
        """
        ack: dict[str, Any] = {"t": "ack", "s": stream, "rid": rid, "epoch": self._server_info.epoch}
        for name, value in (("granted", num_granted), ("request_id", request_id)):
            if value is not None:
                ack[name] = value
        self._send(ack)

    def attached(
        self,
        action: AttachStream,
        offsets: Offsets,
        last_acknowledged: int,
        missed: Mapping[int, RtlangError],
        num_granted: int = 0,
    ) -> None:
        """Acknowledge an attach.

        Args:
            offsets: chunk counts before the first event to deliver.
            last_acknowledged: the last `extend` request of the stream that was answered.
            missed: refusals of `extend` requests that the client has not received; they are sent again.
            num_granted: all credit of the stream so far.
        """
        self._offsets[action.stream] = offsets
        ack = {
            "t": "ack",
            "s": action.stream,
            "rid": action.rid,
            "epoch": self._server_info.epoch,
            "from": action.position,
        }
        self._send(ack | {"last_q": last_acknowledged, "refused": list(missed), "granted": num_granted})
        for request, error in missed.items():
            self.extend_refused(action.stream, request, error)

    def refused(self, stream: int, error: RtlangError, *, request_id: str | None = None) -> None:
        """End `stream` with an error: its graph was not accepted, or another connection has attached to it."""
        self._offsets.pop(stream, None)
        named = {} if request_id is None else {"request_id": request_id}
        self._send(error_to_wire(error, stream=stream) | named)

    def extended(self, stream: int, request: int | None) -> None:
        """Acknowledge an `extend`."""
        self._send({"t": "ack", "s": stream} | ({} if request is None else {"q": request}))

    def extend_refused(self, stream: int, request: int | None, error: RtlangError) -> None:
        """Refuse an `extend`; the graph continues without the nodes."""
        self._send(error_to_wire(error, stream=stream, request=request))

    def deliver(self, events: Iterable[tuple[int, Event]]) -> None:
        """Queue events in order, combined into as few messages as their size allows. Events of ended streams are dropped."""
        steps = self.delivery(events)
        with suppress(StopIteration):
            work = next(steps)
            while True:
                work = steps.send(None if work is None else work())

    def delivery(self, events: Iterable[tuple[int, Event]]) -> Delivery:
        """`deliver` in slices: yields where the caller may do other work, but deliver nothing else, for a few milliseconds of packing.

        A function that is yielded packs a large value; it may run on another thread, and its result is sent.
        """
        if self.close_code is not None:
            return
        packed: list[bytes] = []
        num_bytes = 0
        for stream, event in events:
            offsets = self._offsets.get(stream)
            if offsets is None:
                continue
            parts: list[bytes] = []
            num_parts_bytes = 0
            slices: Iterable[bytes] = event_slices(self.encoding, stream, event, next_offset(offsets, event))
            if has_large_value(event):
                found = yield partial(b"".join, slices)
                assert found is not None
                slices = (found,)
            for part in slices:
                parts.append(part)
                num_parts_bytes += len(part)
                if num_parts_bytes > _SLICE_BYTES:
                    num_parts_bytes = 0
                    yield None
                    if self.close_code is not None or stream not in self._offsets:
                        break
            else:
                whole = b"".join(parts)
                if packed and len(whole) > _BATCH_BYTES:  # a message of its own, which is not copied again
                    self._put(self.encoding.combine(packed))
                    packed, num_bytes = [], 0
                packed.append(whole)
            if stream not in self._offsets or self.close_code is not None:
                continue
            if isinstance(event, (GraphFinished, GraphFailed)):
                del self._offsets[stream]
            num_bytes += len(packed[-1]) if packed else 0
            if num_bytes > _BATCH_BYTES:
                self._put(self.encoding.combine(packed))
                packed, num_bytes = [], 0
                yield None
        if packed:
            self._put(self.encoding.combine(packed))

    def drain(self, deadline_s: float) -> None:
        """Announce the shutdown in `deadline_s` seconds and refuse new streams from now on."""
        self._drain_retry_s = deadline_s
        if self.has_said_hello:
            self._send({"t": "drain", "deadline_ms": int(deadline_s * 1000)})

    def tell_engine(self, state: str) -> None:
        """Announce the new state of the engine: ready, restarting or dead."""
        if self.has_said_hello:
            self._send({"t": "engine", "state": state})

    def fail(self, code: int, reason: str) -> None:
        """Close the connection with a fatal error message and a close code."""
        if self.close_code is None:
            self._fail(SlowConsumerError(reason) if code == CloseCode.SLOW else ProtocolError(reason), code)

    def end(self, code: int, reason: str) -> None:
        """Close the connection without an error message."""
        if self.close_code is None:
            self.close_code, self.close_reason = code, reason

    def _send(self, message: Mapping[str, Any]) -> None:
        if self.close_code is None:
            self._put(self.encoding.pack(message))

    def _put(self, payload: bytes) -> None:
        self._output.append(payload)
        self._num_output_bytes += len(payload)

    def _fail(self, error: RtlangError, code: int) -> None:
        self._send(error_to_wire(error, is_fatal=True))
        self.close_code, self.close_reason = code, error.message

    def _answer(self, error: RtlangError, message: Any) -> None:
        """Answer one message with an error, addressed to its stream if the message names one."""
        assert isinstance(message, dict)
        request = message.get("q") if type(message.get("q")) is int else None
        stream = stream_of(message)
        # An invalid open still uses up its stream id, so that later messages with that id are not attributed to another stream.
        if message.get("t") in ("open", "attach") and stream is not None and stream not in self._offsets:
            self._last_stream = max(self._last_stream, stream)
        status = 503 if isinstance(error, OverloadError) and self._drain_retry_s is not None else None
        wire = error_to_wire(error, stream=stream, request=request, status=status)
        if message.get("t") == "open":
            wire["request_id"] = self.note_refused(message, error, wire["status"])
        self._send(wire)

    def _greet(self, message: ClientMessage) -> None:
        if not isinstance(message, Hello):
            raise ProtocolError("the first message must be hello", close_code=CloseCode.BAD_FIRST_FRAME, param="t")
        if message.version != VERSION:
            raise ProtocolError(
                f"v = {message.version}: expected version {VERSION}", CloseCode.BAD_FIRST_FRAME, param="v"
            )
        if self._authenticate is not None:
            principal = self._authenticate(message.auth)
            if principal is None:
                raise ProtocolError("the API key is missing or wrong", close_code=CloseCode.KEY, param="auth")
            self.principal = principal
        if (refusal := self._admit(self.principal)) is not None:
            raise ProtocolError(refusal, close_code=CloseCode.TOO_MANY)
        self.has_said_hello = True
        logger.debug("hello from client %r", (message.client or "")[:80])
        server_info = self._server_info
        quota = {name: value for name, value in asdict(self.principal.limits).items() if value is not None}
        self._send(
            {
                "t": "welcome",
                "v": VERSION,
                "epoch": server_info.epoch,
                "limits": dict(server_info.limits),
                "models": [dict(model) for model in server_info.models],
                "caps": [*KINDS, "attach", *server_info.caps],
            }
            | ({"quota": quota} if quota else {})
        )
        if self._drain_retry_s is not None:
            self.drain(self._drain_retry_s)

    def _act(self, read: ReadMessage) -> list[Action]:
        message = read.parsed
        match message:
            case Open():
                self._take_id(message.stream)
                if isinstance(read.submit, RtlangError):
                    raise read.submit
                assert read.submit is not None
                self._offsets[message.stream] = {}
                return [read.submit]
            case AttachStream():
                self._take_id(message.stream)
                return [message]
            case ExtendNodes():
                self._check_known(message.stream)
                return [message]
            case CloseStream():
                self._check_known(message.stream)
                return [Close(message.stream)] if message.stream in self._offsets else []
            case CancelStream():
                self._check_known(message.stream)
                return [Cancel(message.stream)] if message.stream in self._offsets else []
            case GrantCredit() | ResolveCall() | RejectCall():
                self._check_known(message.stream)
                return [message] if message.stream in self._offsets else []
            case Ping():
                self._send({"t": "pong", "n": message.number})
                return []
            case Bye():
                self.has_said_bye = True
                self.end(CloseCode.NORMAL, "bye")
                return []
            case _:
                raise ProtocolError("hello was already received", param="t")

    def _check_known(self, stream: int) -> None:
        # An ended stream is not an error: the client's message and the server's end may cross on the network.
        if stream > self._last_stream:
            raise ProtocolError(f"s = {stream}: this stream was never opened", param="s")

    def _take_id(self, stream: int) -> None:
        """Use up the id of a new stream."""
        if stream <= self._last_stream:
            raise ProtocolError(
                f"s = {stream}: stream ids must increase and are never reused; the last was {self._last_stream}",
                close_code=CloseCode.STREAM_REUSED,
                param="s",
            )
        self._last_stream = stream
        if self._drain_retry_s is not None:
            raise OverloadError("the server is shutting down", self._drain_retry_s)
        if len(self._offsets) >= self._server_info.max_streams:
            raise OverloadError(f"{self._server_info.max_streams} streams are open on this connection", 1.0)
