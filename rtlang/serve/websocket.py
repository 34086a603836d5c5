"""The WebSocket transport of connection.py: socket, timers and graphs of one connection.

uvicorn hands an upgraded socket to `StreamSocket`, which frames it with the sans-I/O `ServerProtocol` of the `websockets` library
(without compression) and carries out the actions of the state machine. It consists of event-loop callbacks only: a connection owns no
task, so it cannot leak one. A large message is sent in fragments, over several turns of the event loop. Output that the client has not
read is buffered up to `send_buffer_bytes`, not counting the largest message; beyond that, or after `slow_timeout_s` without progress, the
connection is closed with 4503. When a connection ends, its graphs are cancelled at once, except resumable ones (resumable.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.protocol.limits import MAX_FRAGMENTS, PING_INTERVAL_S
from rtlang.protocol.messages import CloseCode
from rtlang.protocol.serialization import Encoding
from rtlang.serve.client_messages import ReadMessage
from rtlang.serve.connection import Connection
from rtlang.serve.network.access import bearer_key, host_is_allowed, is_own_page, origin_is_allowed
from rtlang.serve.service import StreamService
from rtlang.serve.streams import Streams

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.server import ServerState

logger = logging.getLogger(__name__)

PATH = "/v1/stream"
CLOSE_TIMEOUT_S = 5.0  # from our close frame to the end of the socket
_THREAD_BYTES = 16 << 10  # of a message; reading so much takes about 2 ms
_TURN_MESSAGES, _TURN_S = 32, 0.002  # messages and time of one turn of the loop
_FRAGMENT_BYTES = 128 << 10  # of a message; larger ones are divided
_TURN_BYTES = 256 << 10  # of fragments that are framed in one turn of the loop; less than 1 ms
_MAX_REASON_BYTES = 120  # a close frame has 125, two of them the code


class StreamSocket(asyncio.Protocol):
    """One WebSocket connection, from the upgrade to its end. Created by uvicorn with the keyword arguments below."""

    def __init__(
        self,
        service: StreamService,
        *,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
    ) -> None:
        self._service, self._server_state = service, server_state
        self._websocket = ServerProtocol(
            max_size=service.config.max_frame_bytes, logger=logging.getLogger("rtlang.serve.frames")
        )
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self.number = next(service.numbers)
        self._streams = Streams(service, self)
        self._undelivered: list[tuple[int, Event]] = []
        self._delivering: list[tuple[int, Event]] = []
        self._delivery: Iterator[None] | None = None  # packs `_delivering`
        self._fragments: list[bytes] = []
        self._fragments_are_text = False
        self._messages: deque[tuple[bytes, bool]] = deque()  # whole messages, and whether each is text
        self._is_taking = False  # a later turn of the loop, or a thread, goes on with `_messages`
        self._hello_timer: asyncio.TimerHandle | None = None
        self._ping_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        # Fragments that wait for their turn or for the socket, each with whether it begins and whether it ends a message.
        self._unsent: deque[tuple[memoryview, bool, bool]] = deque()
        self._num_unsent_bytes = 0
        self._sends_later = False  # a later turn of the loop goes on with `_unsent`
        self._num_written = 0
        self._num_flushed = 0
        # For each large pending message: the total bytes written including it, and its size.
        self._large: deque[tuple[int, int]] = deque()
        self._has_received_since_ping = True
        self._is_lost = False
        self._counted: Principal | None = None  # while this connection counts among those of the principal
        self._when_lost: Callable[[], None] | None = None

    @property
    def num_running(self) -> int:
        """Number of graphs of this connection that have not ended."""
        return self._streams.num_running

    @property
    def principal(self) -> Principal | None:
        """The principal of the client; None before it is known."""
        connection = self._connection
        return None if connection is None or not connection.has_said_hello else connection.principal

    # Called by the service

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        """Send events of this connection's graphs; events after the end of the connection are dropped."""
        connection = self._connection
        if connection is None or connection.close_code is not None:
            return
        if self._is_backlogged():
            self._close_slow()
            return
        self._undelivered.extend(events)
        if self._delivery is None:
            self._go_on()

    def _go_on(self) -> None:
        """Pack events for one turn of the loop: a large result takes several."""
        connection = self._connection
        assert connection is not None
        if connection.close_code is not None:
            self._undelivered, self._delivery = [], None
            return
        while self._undelivered or self._delivery is not None:
            if self._delivery is None:
                self._delivering, self._undelivered = self._undelivered, []
                self._delivery = connection.delivery(self._delivering)
            if next(self._delivery, self) is not self:
                self._service.loop.call_soon(self._go_on_later)
                break
            self._delivery = None
            for stream, event in self._delivering:
                if isinstance(event, (GraphFinished, GraphFailed)):
                    self._streams.note_end(stream)
        self._flush()
        if self._service.is_draining:
            self._service.check_idle()

    def _go_on_later(self) -> None:
        try:
            self._go_on()
        except Exception:
            logger.exception("delivering events to a connection failed")
            self.abort()

    def lose_stream(self, stream: int, error: RtlangError) -> None:
        """Handle the takeover of the stream by another connection."""
        self._streams.release(stream)
        if self._connection is not None:
            self._connection.refused(stream, error)
            self._flush()

    def drain(self, deadline_s: float) -> None:
        """Tell the client that the server shuts down in `deadline_s` seconds."""
        if self._connection is not None:
            self._connection.drain(deadline_s)
            self._flush()

    def tell_engine(self, state: str) -> None:
        """Tell the client the new state of the engine."""
        if self._connection is not None:
            self._connection.tell_engine(state)
            self._flush()

    def end(self, code: int, reason: str) -> None:
        """Close the connection with a close frame."""
        if self._connection is not None:
            self._connection.end(code, reason)
            self._flush()
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection without a close frame; its graphs are cancelled, except resumable ones."""
        if self._transport is not None:
            self._transport.abort()

    def shutdown(self) -> None:
        """Close the connection; uvicorn calls this when it shuts down."""
        self.end(CloseCode.DRAINED, "the server is shutting down")

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # With a limit of 0 the transport pauses us whenever the socket did not accept everything, so stalls can be timed.
        self._transport.set_write_buffer_limits(high=0)
        self._service.sockets.add(self)
        # uvicorn's set names its own protocol classes; it only ever calls shutdown() on what is inside.
        cast(set[Any], self._server_state.connections).add(self)
        self._service.metrics.ws_connections.inc()
        self._hello_timer = self._service.loop.call_later(self._service.config.hello_timeout_s, self._hello_late)
        self._ping_timer = self._service.loop.call_later(PING_INTERVAL_S, self._ping)

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call a function once the connection is lost."""
        if self._is_lost:
            call()
        else:
            self._when_lost = call

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if self._counted is not None:
            self._service.connections.release(self._counted)
            self._counted = None
        if self._when_lost is not None:
            self._when_lost()
            self._when_lost = None
        if not self._is_taking:
            self._end_streams()
        for timer in (self._hello_timer, self._ping_timer, self._stall_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        if self._connection is not None and not self._is_taking:
            self._connection.end(CloseCode.NORMAL, "connection lost")
        if self in self._service.sockets:
            self._service.sockets.discard(self)
            self._service.metrics.ws_connections.dec()
        cast(set[Any], self._server_state.connections).discard(self)
        self._service.check_idle()

    def data_received(self, data: bytes) -> None:
        self._has_received_since_ping = True
        self._websocket.receive_data(data)
        self._process()

    def eof_received(self) -> None:
        self._websocket.receive_eof()
        self._process()

    def pause_writing(self) -> None:
        self._num_flushed = self._count_flushed()
        if self._stall_timer is None:
            self._stall_timer = self._service.loop.call_later(self._service.config.slow_timeout_s, self._check_stall)

    def resume_writing(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        if self._unsent:
            self._flush()

    # Input

    def _process(self) -> None:
        for event in self._websocket.events_received():
            if isinstance(event, Request):
                self._handshake(event)
            elif isinstance(event, Frame):
                self._receive_frame(event)
        if self._is_taking:
            self._flush()
        else:
            self._take_messages()

    def _take_messages(self) -> None:
        """Take messages in order for one turn of the loop. A thread reads a large one, while the rest waits and no more is received."""
        started, num_taken = time.thread_time(), 0
        while self._messages and (connection := self._connection) is not None and connection.close_code is None:
            data, is_text = self._messages[0]
            if len(data) > _THREAD_BYTES:
                reading = self._service.loop.run_in_executor(None, partial(connection.read, data, is_text=is_text))
                reading.add_done_callback(self._take_read)
                self._wait_for_turn()
                break
            if num_taken == _TURN_MESSAGES or time.thread_time() - started > _TURN_S:
                self._service.loop.call_soon(self._take_later)
                self._wait_for_turn()
                break
            num_taken += 1
            self._messages.popleft()
            self._take(connection, connection.read(data, is_text=is_text))
        else:
            self._end_taking()
        if self._is_backlogged():
            self._close_slow()
        self._flush()

    def _wait_for_turn(self) -> None:
        self._is_taking = True
        if self._transport is not None and not self._is_lost:
            self._transport.pause_reading()

    def _end_taking(self) -> None:
        """All messages that have been received are taken, or the connection has ended."""
        self._messages.clear()
        was_taking, self._is_taking = self._is_taking, False
        if self._connection is not None:
            if self._is_lost:
                self._end_streams()
                self._connection.end(CloseCode.NORMAL, "connection lost")
                self._service.check_idle()
            elif self._websocket.state is not State.OPEN:
                self._connection.end(CloseCode.NORMAL, "closed by the client")
        if was_taking and self._transport is not None and not self._is_lost:
            self._transport.resume_reading()

    def _take_later(self) -> None:
        try:
            self._take_messages()
        except Exception:
            logger.exception("taking the messages of a connection failed")
            self._give_up()

    def _take_read(self, reading: asyncio.Future[ReadMessage]) -> None:
        """Take the message that a thread has read, and go on with the next one."""
        connection = self._connection
        assert connection is not None
        try:
            self._messages.popleft()
            actions = connection.take(reading.result())
            if actions:
                assert len(actions) == 1
                self._streams.perform_beside(connection, actions[0], self._take_later)
            else:
                self._take_messages()
        except Exception:
            logger.exception("reading a message failed")
            self._give_up()

    def _give_up(self) -> None:
        self._messages.clear()
        self._is_taking = False
        if self._is_lost:
            self._end_streams()
        self.abort()

    def _take(self, connection: Connection, message: ReadMessage) -> None:
        for action in connection.take(message):
            self._streams.perform(connection, action)
        if connection.num_output_bytes > self._service.config.send_buffer_bytes:
            # Many short messages in one read may each cause a long answer.
            self._flush()
            if self._is_backlogged():
                self._close_slow()
        if connection.has_said_hello and self._hello_timer is not None:
            self._hello_timer.cancel()
            self._hello_timer = None

    def _handshake(self, request: Request) -> None:
        service, headers = self._service, request.headers
        refusal = None
        if not host_is_allowed(service.config, ", ".join(headers.get_all("Host"))):
            refusal = (HTTPStatus.FORBIDDEN, "This Host header is not allowed.\n")
        elif request.path.partition("?")[0] != PATH:
            refusal = (HTTPStatus.NOT_FOUND, f"WebSockets are served at {PATH}.\n")
        elif service.is_draining:
            refusal = (HTTPStatus.SERVICE_UNAVAILABLE, "The server is shutting down.\n")
        offered = [name.strip() for value in headers.get_all("Sec-WebSocket-Protocol") for name in value.split(",")]
        encoding = next((encoding for encoding in Encoding if encoding.value in offered), None)
        if refusal is not None:
            response = self._websocket.reject(*refusal)
        else:
            response = self._websocket.accept(request)
            if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS and encoding is not None:
                response.headers["Sec-WebSocket-Protocol"] = encoding.value
        self._websocket.send_response(response)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            return
        key = bearer_key(", ".join(headers.get_all("Authorization")) or None)
        authenticate = partial(service.keys.principal_of, client=f"connection {self.number}")
        principal = LOCAL if key is None else authenticate(key)
        # Refuse after the handshake: browsers hide the status of a failed handshake, but show a close code.
        connection = Connection(
            encoding or Encoding.JSON,
            service.server_info,
            principal or LOCAL,
            authenticate if key is None else None,
            self._admit,
        )
        self._connection = connection
        origin, host = (", ".join(headers.get_all(name)) or None for name in ("Origin", "Host"))
        if not (is_own_page(origin, host) or origin_is_allowed(service.config, origin)):
            connection.fail(CloseCode.ORIGIN, "this origin is not allowed")
        elif encoding is None:
            names = " or ".join(encoding.value for encoding in Encoding)
            connection.end(CloseCode.SUBPROTOCOL, f"no supported subprotocol was offered; offer {names}")
        elif principal is None:
            connection.fail(CloseCode.KEY, "the API key is wrong")
        elif len(service.sockets) > service.config.max_connections:
            connection.fail(
                CloseCode.TOO_MANY,
                f"the server already has its maximum of {service.config.max_connections} connections",
            )

    def _admit(self, principal: Principal) -> str | None:
        limit = self._service.connections.admit(principal, is_shared=self._service.keys.is_shared)
        if limit is not None:
            return f"{principal.name} already has {limit} connections, which is its maximum"
        self._counted = principal
        return None

    def _receive_frame(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._fragments = [bytes(frame.data)]
            self._fragments_are_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is Opcode.CONT:
            self._fragments.append(bytes(frame.data))
        else:
            return  # ping is answered by the library, close shows in its state
        connection = self._connection
        assert connection is not None
        if frame.fin:
            self._messages.append((b"".join(self._fragments), self._fragments_are_text))
            self._fragments = []
        elif len(self._fragments) > MAX_FRAGMENTS:
            connection.fail(CloseCode.PROTOCOL, f"a message may have at most {MAX_FRAGMENTS} fragments")

    # Output

    def _num_buffered(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _num_pending(self) -> int:
        return self._num_buffered() + self._num_unsent_bytes

    def _count_flushed(self) -> int:
        return self._num_written - self._num_buffered()

    def _is_backlogged(self) -> bool:
        """Whether too much output is buffered. The largest message does not count: one result may exceed the whole buffer limit."""
        num_pending, limit = self._num_pending(), self._service.config.send_buffer_bytes
        if num_pending <= limit:
            return False
        taken = self._count_flushed()
        return num_pending - max((min(size, end - taken) for end, size in self._large), default=0) > limit

    def _flush(self) -> None:
        """Frame and write all pending output, and start closing once the state machine is done."""
        connection, websocket = self._connection, self._websocket
        if connection is not None:
            is_text = connection.encoding.is_text
            try:
                for payload in connection.take_output():
                    if self._unsent or len(payload) > _FRAGMENT_BYTES:
                        self._divide(payload)
                    else:
                        websocket.send_text(payload) if is_text else websocket.send_binary(payload)
                        self._write()
                    self._note_large(len(payload))
                self._send_fragments(is_text=is_text)
                if connection.close_code is not None and websocket.state is State.OPEN and not self._unsent:
                    reason = connection.close_reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
                    websocket.send_close(connection.close_code, reason)
            except InvalidState:  # the client closed first; the remaining output is dropped
                self._unsent.clear()
                self._num_unsent_bytes = 0
        self._write()
        ends = connection is not None and connection.close_code is not None
        if ends:
            self._end_streams()
        if self._close_timer is None and (websocket.close_expected() or (ends and self._unsent)):
            assert self._transport is not None
            self._close_timer = self._service.loop.call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def _divide(self, payload: bytes) -> None:
        """Queue a message behind others that wait."""
        view, size = memoryview(payload), len(payload)
        for start in range(0, size, _FRAGMENT_BYTES):
            end = start + _FRAGMENT_BYTES
            self._unsent.append((view[start:end], start == 0, end >= size))
        self._num_unsent_bytes += size

    def _send_fragments(self, *, is_text: bool) -> None:
        """Send fragments for one turn of the loop, while the socket takes them.

        Raises:
            InvalidState: the client has closed.
        """
        websocket, num_bytes = self._websocket, 0
        while self._unsent and num_bytes < _TURN_BYTES and not self._num_buffered() and not self._is_lost:
            data, is_first, is_last = self._unsent.popleft()
            num_bytes += len(data)
            self._num_unsent_bytes -= len(data)
            if not is_first:
                websocket.send_continuation(data, is_last)
            elif is_text:
                websocket.send_text(data, is_last)
            else:
                websocket.send_binary(data, is_last)
            self._write()
        # If the socket does not take more, `resume_writing` goes on.
        if self._unsent and not self._num_buffered() and not self._sends_later and not self._is_lost:
            self._sends_later = True
            self._service.loop.call_soon(self._send_later)

    def _send_later(self) -> None:
        self._sends_later = False
        try:
            self._flush()
        except Exception:
            logger.exception("sending to a connection failed")
            self.abort()

    def _note_large(self, size: int) -> None:
        """Remember a large message that was just written or queued until the socket has accepted it."""
        taken = self._count_flushed()
        while self._large and self._large[0][0] <= taken:
            self._large.popleft()
        if size > self._service.config.send_buffer_bytes // 4:
            self._large.append((self._num_written + self._num_unsent_bytes, size))

    def _write(self) -> None:
        """Pass framed data to the transport."""
        transport = self._transport
        assert transport is not None
        if self._is_lost:
            return
        for data in self._websocket.data_to_send():
            if data:
                transport.write(data)
                self._num_written += len(data)
            elif transport.can_write_eof() and not transport.is_closing():
                transport.write_eof()
            else:
                transport.close()

    def _end_streams(self) -> None:
        self._streams.end(may_resume=self._connection is not None and not self._connection.has_said_bye)

    # Timers

    def _hello_late(self) -> None:
        self._hello_timer = None
        if self._connection is not None and not self._connection.has_said_hello:
            self._connection.fail(CloseCode.HELLO_LATE, "no hello within the time limit")
            self._flush()

    def _check_stall(self) -> None:
        self._stall_timer = None
        num_taken = self._count_flushed()
        if num_taken <= self._num_flushed:
            self._close_slow()
        else:
            self._num_flushed = num_taken
            self._stall_timer = self._service.loop.call_later(self._service.config.slow_timeout_s, self._check_stall)

    def _close_slow(self) -> None:
        if self._connection is not None and self._connection.close_code is None:
            logger.warning("closing a slow connection: %d bytes of output are waiting", self._num_pending())
            self._service.metrics.ws_slow_closed.inc()
            self._connection.fail(CloseCode.SLOW, "the client reads too slowly")
            self._flush()

    def _ping(self) -> None:
        assert self._transport is not None
        if not self._has_received_since_ping:
            self._transport.abort()
            return
        self._has_received_since_ping = False
        if self._websocket.state is State.OPEN:
            self._websocket.send_ping(b"")
            self._flush()
        self._ping_timer = self._service.loop.call_later(PING_INTERVAL_S, self._ping)
