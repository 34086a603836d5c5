"""The output of one WebSocket connection, sent at the pace of its client.

Events are packed and large messages are sent in fragments, each over several turns of the event loop. Output that the client has not
read is buffered up to `send_buffer_bytes`, not counting the largest message; beyond that, or after `slow_timeout_s` without progress, the
connection is closed with 4503. The close frame follows the last message, and a socket that does not end in time is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from websockets.exceptions import InvalidState
from websockets.protocol import State
from websockets.server import ServerProtocol

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.runs.principal import Principal
from rtlang.protocol.messages import CloseCode
from rtlang.serve.connection import Delivery
from rtlang.serve.service import StreamService
from rtlang.work.fair_queue import owner_of
from rtlang.work.prices import VALUE_S

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0  # from our close frame to the end of the socket
_FRAGMENT_BYTES = 128 << 10  # of a message; larger ones are divided
_TURN_BYTES = 256 << 10  # of fragments that are framed in one turn of the loop; less than 1 ms
_MAX_REASON_BYTES = 120  # a close frame has 125, two of them the code


class OutputSource(Protocol):
    """The state of a connection, as its output is sent.

    Attributes:
        close_code, close_reason: of the close frame that follows the last message; None while the connection goes on.
    """

    close_code: CloseCode | int | None
    close_reason: str
    principal: Principal

    @property
    def sends_text(self) -> bool:
        """Whether messages are text frames."""

    def take_output(self) -> list[bytes]:
        """Remove and return the messages to send, in order."""

    def fail(self, code: int, reason: str) -> None:
        """Close the connection with an error message and a close code."""


class OutputFlow:
    """Sends the output of one socket. Used on the server's event loop.

    Args:
        websocket: frames the messages. Its own answers, for example to a ping, are sent by the next `flush`.
        note_end: called with the stream of each graph whose last event was packed.
        end_streams: ends the graphs of a closed connection; may be called more than once.
    """

    def __init__(
        self,
        service: StreamService,
        websocket: ServerProtocol,
        note_end: Callable[[int], None],
        end_streams: Callable[[], None],
    ) -> None:
        self._service, self._websocket = service, websocket
        self._note_end, self._end_streams = note_end, end_streams
        self._transport: asyncio.Transport | None = None
        self._connection: OutputSource | None = None
        self._deliveries: Callable[[list[tuple[int, Event]]], Delivery] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self.is_lost = False
        self._undelivered: list[tuple[int, Event]] = []
        self._delivering: list[tuple[int, Event]] = []
        self._delivery: Delivery | None = None  # packs `_delivering`
        # Fragments that wait for their turn or for the socket, each with whether it begins and whether it ends a message.
        self._unsent: deque[tuple[memoryview, bool, bool]] = deque()
        self._num_unsent_bytes = 0
        self._sends_later = False  # a later turn of the loop goes on with `_unsent`
        self._num_written = 0
        self._num_flushed = 0
        # For each large pending message: the total bytes written including it, and its size.
        self._large: deque[tuple[int, int]] = deque()
        self._stall_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    def start(self, transport: asyncio.Transport) -> None:
        """Use the transport of the new socket."""
        self._transport = transport
        # With a limit of 0 the transport pauses us whenever the socket did not accept everything, so stalls can be timed.
        transport.set_write_buffer_limits(high=0)

    def open(
        self, connection: OutputSource, deliveries: Callable[[list[tuple[int, Event]]], Delivery] | None = None
    ) -> None:
        """Use the connection that the opening handshake made.

        Args:
            deliveries: packs the events that `deliver` gets.
        """
        self._connection, self._deliveries = connection, deliveries

    def lose(self) -> None:
        """Stop writing: the socket is lost."""
        self.is_lost = True
        self._drained.set()
        for timer in (self._stall_timer, self._close_timer):
            if timer is not None:
                timer.cancel()

    def pause(self) -> None:
        """Start the stall timer: the socket accepts no more output."""
        self._num_flushed = self._count_flushed()
        if self._stall_timer is None:
            self._stall_timer = self._service.loop.call_later(self._service.config.slow_timeout_s, self._check_stall)

    def resume(self) -> None:
        """Stop the stall timer and send the rest: the socket has accepted everything written."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        if self._unsent:
            self.flush()
        self._note_drained()

    @property
    def is_drained(self) -> bool:
        """Whether the socket has accepted all output."""
        return self._drained.is_set()

    async def drain(self) -> None:
        """Wait until the socket has accepted all output, or is lost."""
        await self._drained.wait()

    def check_backlog(self) -> bool:
        """Close the connection if too much output is buffered. Returns whether that is so."""
        is_backlogged = self._is_backlogged()
        if is_backlogged:
            self._close_slow()
        return is_backlogged

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        """Send events of this connection's graphs; events after the end of the connection are dropped."""
        connection = self._connection
        if connection is None or connection.close_code is not None or self.check_backlog():
            return
        self._undelivered.extend(events)
        if self._delivery is None:
            self._go_on()

    def flush(self) -> None:
        """Frame and write all pending output, and start closing once the state machine is done."""
        connection, websocket = self._connection, self._websocket
        if connection is not None:
            is_text = connection.sends_text
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

    def _go_on(self, packed: bytes | None = None) -> None:
        """Pack events for one turn of the loop: a large result takes several. `packed`: what was packed on a thread."""
        connection = self._connection
        assert connection is not None
        if connection.close_code is not None:
            self._undelivered, self._delivery = [], None
            return
        while self._undelivered or self._delivery is not None:
            if self._delivery is None:
                self._delivering, self._undelivered = self._undelivered, []
                assert self._deliveries is not None
                self._delivery = self._deliveries(self._delivering)
            try:
                work = self._delivery.send(packed)
            except StopIteration:
                self._delivery, packed = None, None
                for stream, event in self._delivering:
                    if isinstance(event, (GraphFinished, GraphFailed)):
                        self._note_end(stream)
                continue
            if work is None:
                self._service.loop.call_soon(self._go_on_later)
            else:
                packing = self._service.work.start(owner_of(connection.principal), VALUE_S, work, kind=WorkKind.REPLY)
                packing.add_done_callback(self._note_packed)
            break
        self.flush()
        if self._service.is_draining:
            self._service.check_idle()

    def _note_packed(self, packing: asyncio.Future[bytes]) -> None:
        """A large value was packed on a thread; a server that has stopped packs no more."""
        if not packing.cancelled():
            error = packing.exception()
            if error is None:
                self._go_on_later(packing.result())
            else:
                logger.error("packing an event failed", exc_info=error)
                self._abort()

    def _go_on_later(self, packed: bytes | None = None) -> None:
        try:
            self._go_on(packed)
        except Exception:
            logger.exception("delivering events to a connection failed")
            self._abort()

    def _divide(self, payload: bytes) -> None:
        """Queue a message after others that wait."""
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
        while self._unsent and num_bytes < _TURN_BYTES and not self._num_buffered() and not self.is_lost:
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
        # If the socket does not take more, `resume` goes on.
        if self._unsent and not self._num_buffered() and not self._sends_later and not self.is_lost:
            self._sends_later = True
            self._service.loop.call_soon(self._send_later)

    def _send_later(self) -> None:
        self._sends_later = False
        try:
            self.flush()
        except Exception:
            logger.exception("sending to a connection failed")
            self._abort()

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
        if self.is_lost:
            return
        for data in self._websocket.data_to_send():
            if data:
                transport.write(data)
                self._num_written += len(data)
            elif transport.can_write_eof() and not transport.is_closing():
                transport.write_eof()
            else:
                transport.close()
        self._note_drained()

    def _note_drained(self) -> None:
        if self.is_lost or not self._num_pending():
            self._drained.set()
        else:
            self._drained.clear()

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
            self.flush()

    def _abort(self) -> None:
        assert self._transport is not None
        self._transport.abort()
