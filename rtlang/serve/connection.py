"""One server-side connection of `rtlang.v1` as a state machine: messages in, actions and messages out, no I/O, no clock.

Whoever owns the transport feeds it whole messages and carries out the actions it returns: submit a graph, extend it, close it,
cancel it. The outcome is told back (`opened`, `refused`, `deliver`, ...), and `take_output` hands over what is to be sent. Errors
of one stream leave the others alone; a fatal one sets `close_code`, after which nothing more is read and every graph of the
connection that is not to last is to be cancelled. No input raises.

What a client may open: kind `program` with body {graph: a RequestGraph in plain form, inputs: {name: text}, open: more nodes may
follow, priority}, and kind `generate` or `chat` with body {prompt or messages, params, constraint, name, priority}. A stream that
is opened with a time to last can be attached by a later connection (see lasting.py).
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.errors import GraphError, OverloadError, ProtocolError, RtlangError, SlowConsumerError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.graph import RequestGraph
from rtlang.contract.params import MAX_PRIORITY
from rtlang.protocol.event_codec import Offsets, error_to_wire, event_to_wire, next_offset
from rtlang.protocol.field_checks import check_int, check_map, optional
from rtlang.protocol.generation import generation_graph_from_plain
from rtlang.protocol.messages import (
    MAX_DETACH_MS,
    VERSION,
    AttachStream,
    Bye,
    CancelStream,
    ClientMessage,
    CloseCode,
    CloseStream,
    ExtendNodes,
    Hello,
    Open,
    OpenKey,
    Ping,
    parse_client_message,
    stream_of,
)
from rtlang.protocol.serialization import DecodeLimits, Encoding

logger = logging.getLogger(__name__)

KINDS = ("program", "generate", "chat")
# Large enough that joining costs nothing per event, small enough that a browser shows the first event of a burst at once.
_BATCH_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit `graph`, then tell `opened` or `refused`."""

    stream: int
    graph: RequestGraph
    inputs: Mapping[str, str]
    is_open: bool
    priority: int
    deadline_s: float | None
    resume_timeout_s: float | None = None
    key: OpenKey | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """The stream's graph gets no more nodes."""

    stream: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the stream's graph."""

    stream: int


Action = Submit | AttachStream | ExtendNodes | Close | Cancel
"""What the owner of a connection is to do. For an AttachStream: take the stream over, tell `attached`, and deliver what follows the
messages that have arrived; or tell `refused`. For ExtendNodes: add what its nodes say to the stream's graph, close it if `closes`, then
tell `extended` or `extend_refused` with `request`."""


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What a server says of itself in `welcome`.

    `epoch` is new at every start. `models` and `limits` are plain maps.
    """

    epoch: str
    models: tuple[Mapping[str, Any], ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    max_streams: int = 256
    decode_limits: DecodeLimits = field(default_factory=DecodeLimits)


class Connection:
    """One connection's state. Owned by its transport's thread; not thread-safe.

    Args:
        encoding: negotiated.
        facts: of the server.
        api_key: the key that hello must present; None where there is none, or the handshake presented it already.
    """

    def __init__(self, encoding: Encoding, facts: ConnectionFacts, api_key: str | None = None) -> None:
        self.encoding = encoding
        self.close_code: CloseCode | int | None = None
        self.close_reason = ""
        self.has_said_hello = self.has_said_bye = False
        self._facts, self._api_key = facts, api_key
        self._output: list[bytes] = []
        self._num_output_bytes = 0
        self._offsets: dict[int, Offsets] = {}  # by stream
        self._last_stream = 0
        self._drain_retry_s: float | None = None

    @property
    def streams(self) -> tuple[int, ...]:
        """The streams that have not ended."""
        return tuple(self._offsets)

    @property
    def num_output_bytes(self) -> int:
        """Of the messages to send."""
        return self._num_output_bytes

    def take_output(self) -> list[bytes]:
        """The messages to send, in order. They are handed over once."""
        output, self._output, self._num_output_bytes = self._output, [], 0
        return output

    def receive(self, data: bytes, *, is_text: bool) -> list[Action]:
        """One whole message from the client. Never raises; what is wrong with it becomes an error message."""
        if self.close_code is not None:
            return []
        message: Any = None
        try:
            if is_text is not self.encoding.is_text:
                expected = "text" if self.encoding.is_text else "binary"
                raise ProtocolError(
                    f"{self.encoding.value} travels in {expected} frames", close_code=CloseCode.PROTOCOL
                )
            message = self.encoding.unpack(data, self._facts.decode_limits)
            if not isinstance(message, dict):
                raise ProtocolError("a message is one map", close_code=CloseCode.PROTOCOL)
            parsed = parse_client_message(message)
            if not self.has_said_hello:
                self._greet(parsed)
                return []
            return self._act(parsed)
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

    def opened(self, stream: int, rid: str) -> None:
        """The graph of `stream` was accepted under the server's name `rid`."""
        self._send({"t": "ack", "s": stream, "rid": rid, "epoch": self._facts.epoch})

    def attached(
        self, action: AttachStream, offsets: Offsets, last_answered: int, missed: Mapping[int, RtlangError]
    ) -> None:
        """The stream is taken over, with these pieces before it.

        `last_answered` is the last extension of it that was answered; those of `missed` were refused, and it is said again.
        """
        self._offsets[action.stream] = offsets
        ack = {"t": "ack", "s": action.stream, "rid": action.rid, "epoch": self._facts.epoch, "from": action.position}
        self._send(ack | {"last_q": last_answered, "refused": list(missed)})
        for request, error in missed.items():
            self.extend_refused(action.stream, request, error)

    def refused(self, stream: int, error: RtlangError) -> None:
        """The graph of `stream` was not accepted, or is another connection's now: the stream is over."""
        self._offsets.pop(stream, None)
        self._send(error_to_wire(error, stream=stream))

    def extended(self, stream: int, request: int | None) -> None:
        """The nodes of an extension were accepted."""
        self._send({"t": "ack", "s": stream} | ({} if request is None else {"q": request}))

    def extend_refused(self, stream: int, request: int | None, error: RtlangError) -> None:
        """The nodes of an extension were not accepted; the graph goes on as it was."""
        self._send(error_to_wire(error, stream=stream, request=request))

    def deliver(self, events: Iterable[tuple[int, Event]]) -> None:
        """Events of streams, in order: as few messages as their size allows. Those of ended streams are dropped."""
        if self.close_code is not None:
            return
        packed: list[bytes] = []
        num_bytes = 0
        for stream, event in events:
            offsets = self._offsets.get(stream)
            if offsets is None:
                continue
            packed.append(self.encoding.pack(event_to_wire(stream, event, next_offset(offsets, event))))
            if isinstance(event, (GraphFinished, GraphFailed)):
                del self._offsets[stream]
            num_bytes += len(packed[-1])
            if num_bytes > _BATCH_BYTES:
                self._put(self.encoding.combine(packed))
                packed, num_bytes = [], 0
        if packed:
            self._put(self.encoding.combine(packed))

    def drain(self, deadline_s: float) -> None:
        """The server ends in `deadline_s`: say so, and refuse what is opened from now on."""
        self._drain_retry_s = deadline_s
        if self.has_said_hello:
            self._send({"t": "drain", "deadline_ms": int(deadline_s * 1000)})

    def fail(self, code: int, reason: str) -> None:
        """End the connection: a fatal error message, then the close code."""
        if self.close_code is None:
            self._fail(SlowConsumerError(reason) if code == CloseCode.SLOW else ProtocolError(reason), code)

    def end(self, code: int, reason: str) -> None:
        """End the connection in good order."""
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
        """An error that concerns one message; one stream where the message names one."""
        assert isinstance(message, dict)
        request = message.get("q") if type(message.get("q")) is int else None
        stream = stream_of(message)
        # An open that cannot be read still uses up its id, so that a later message on it is not taken for another's.
        if message.get("t") in ("open", "attach") and stream is not None and stream not in self._offsets:
            self._last_stream = max(self._last_stream, stream)
        status = 503 if isinstance(error, OverloadError) and self._drain_retry_s is not None else None
        self._send(error_to_wire(error, stream=stream, request=request, status=status))

    def _greet(self, message: ClientMessage) -> None:
        if not isinstance(message, Hello):
            raise ProtocolError("the first message is hello", close_code=CloseCode.BAD_FIRST_FRAME, param="t")
        if message.version != VERSION:
            raise ProtocolError(
                f"v = {message.version}: version {VERSION} is served here", CloseCode.BAD_FIRST_FRAME, param="v"
            )
        if self._api_key is not None and not hmac.compare_digest((message.auth or "").encode(), self._api_key.encode()):
            raise ProtocolError("the key is missing or wrong", close_code=CloseCode.KEY, param="auth")
        self.has_said_hello = True
        logger.debug("hello from client %r", (message.client or "")[:80])
        facts = self._facts
        self._send(
            {
                "t": "welcome",
                "v": VERSION,
                "epoch": facts.epoch,
                "limits": dict(facts.limits) | {"max_detach_ms": MAX_DETACH_MS},
                "models": [dict(model) for model in facts.models],
                "caps": [*KINDS, "attach"],
            }
        )
        if self._drain_retry_s is not None:
            self.drain(self._drain_retry_s)

    def _act(self, message: ClientMessage) -> list[Action]:
        match message:
            case Open():
                return [self._open(message)]
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
            case Ping():
                self._send({"t": "pong", "n": message.number})
                return []
            case Bye():
                self.has_said_bye = True
                self.end(CloseCode.NORMAL, "bye")
                return []
            case Hello():
                raise ProtocolError("hello is said once", param="t")

    def _check_known(self, stream: int) -> None:
        # A stream that has ended is no error: the client's word and the server's end may cross on the way.
        if stream > self._last_stream:
            raise ProtocolError(f"stream {stream} was never opened", param="s")

    def _take_id(self, stream: int) -> None:
        """Use up the id of a stream that begins here."""
        if stream <= self._last_stream:
            raise ProtocolError(
                f"stream ids rise and are never reused; {stream} came after {self._last_stream}",
                close_code=CloseCode.STREAM_REUSED,
                param="s",
            )
        self._last_stream = stream
        if self._drain_retry_s is not None:
            raise OverloadError("the server is shutting down", self._drain_retry_s)
        if len(self._offsets) >= self._facts.max_streams:
            raise OverloadError(f"{self._facts.max_streams} streams are open on this connection", 1.0)

    def _open(self, message: Open) -> Submit:
        self._take_id(message.stream)
        body = message.body
        if message.kind not in KINDS:
            raise ProtocolError(f"kind = {message.kind[:40]!r}: allowed are {', '.join(KINDS)}", param="kind")
        inputs: dict[str, str] = {}
        if message.kind == "program":
            graph = RequestGraph.from_plain(check_map(body, "graph"))
            inputs = optional(check_map, body, "inputs") or {}
            for name, text in inputs.items():
                if not isinstance(text, str):
                    raise GraphError(None, "inputs", f"{name[:80]!r} is {type(text).__name__}; text is allowed")
        else:
            if message.kind == "chat" and "messages" not in body:
                raise GraphError(None, "messages", "a chat needs messages")
            graph = generation_graph_from_plain(body)
        priority = optional(check_int, body, "priority", -MAX_PRIORITY, MAX_PRIORITY) or 0
        is_open = message.kind == "program" and body.get("open") is True
        self._offsets[message.stream] = {}
        return Submit(
            message.stream, graph, inputs, is_open, priority, message.deadline_s, message.resume_timeout_s, message.key
        )
