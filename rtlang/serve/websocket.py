"""The WebSocket transport of connection.py: socket, timers and graphs of one connection.

uvicorn hands an upgraded socket to `StreamSocket`, which frames it with the sans-I/O `ServerProtocol` of the `websockets` library
(without compression) and carries out the actions of the state machine. It consists of event-loop callbacks only: a connection owns no
task, so it cannot leak one. This file takes the messages of the client; opening_handshake.py opens the connection, and output_flow.py
sends its output. When a connection ends, its graphs are cancelled at once, except resumable ones (resumable.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from websockets.http11 import Request
from websockets.protocol import State

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event
from rtlang.contract.runs.principal import Principal
from rtlang.protocol.messages import CloseCode
from rtlang.serve.client_messages import ReadMessage
from rtlang.serve.connection import Connection
from rtlang.serve.network.socket_frames import Message, SocketFrames, TooManyFragments
from rtlang.serve.opening_handshake import OpeningHandshake
from rtlang.serve.output_flow import OutputFlow
from rtlang.serve.service import StreamService
from rtlang.serve.streams import Streams
from rtlang.work.fair_queue import owner_of
from rtlang.work.loop_work import INLINE_S
from rtlang.work.prices import message_price

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.server import ServerState

logger = logging.getLogger(__name__)

_MAX_HELLO_BYTES = 4 << 10  # of a message of a client that is unknown yet
_TURN_MESSAGES = 32  # of one connection in one turn of the loop


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
        self._frames = SocketFrames(service.loop, service.config.max_frame_bytes, lambda: self._flow.flush())
        self._websocket = self._frames.websocket
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self.number = next(service.numbers)
        self._streams = Streams(service, self)
        self._flow = OutputFlow(service, self._websocket, self._streams.note_end, self._end_streams)
        self._opening = OpeningHandshake(service, self._websocket, self.number, self._flow.flush)
        self._messages: deque[Message] = deque()
        self._is_taking = False  # a later turn of the loop, or a thread, goes on with `_messages`
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
        self._flow.deliver(events)

    def lose_stream(self, stream: int, error: RtlangError) -> None:
        """Handle the takeover of the stream by another connection."""
        self._streams.release(stream)
        if self._connection is not None:
            self._connection.refused(stream, error)
            self._flow.flush()

    def drain(self, deadline_s: float) -> None:
        """Tell the client that the server shuts down in `deadline_s` seconds."""
        if self._connection is not None:
            self._connection.drain(deadline_s)
            self._flow.flush()

    def tell_engine(self, state: str) -> None:
        """Tell the client the new state of the engine."""
        if self._connection is not None:
            self._connection.tell_engine(state)
            self._flow.flush()

    def end(self, code: int, reason: str) -> None:
        """Close the connection with a close frame."""
        if self._connection is not None:
            self._connection.end(code, reason)
            self._flow.flush()
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
        self._flow.start(self._transport)
        self._service.add_socket(self, self._server_state.connections)
        self._opening.start()
        self._frames.start(self._transport)

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call a function once the connection is lost."""
        if self._flow.is_lost:
            call()
        else:
            self._when_lost = call

    def connection_lost(self, exc: Exception | None) -> None:
        self._flow.lose()
        self._opening.end()
        if self._when_lost is not None:
            self._when_lost()
            self._when_lost = None
        if not self._is_taking:
            self._end_streams()
        self._frames.end()
        if self._connection is not None and not self._is_taking:
            self._connection.end(CloseCode.NORMAL, "connection lost")
        self._service.remove_socket(self, self._server_state.connections)

    def data_received(self, data: bytes) -> None:
        self._process(self._frames.receive(data))

    def eof_received(self) -> None:
        self._process(self._frames.receive_eof())

    def pause_writing(self) -> None:
        self._flow.pause()

    def resume_writing(self) -> None:
        self._flow.resume()

    # Input

    def _process(self, received: Iterable[Request | Message | TooManyFragments]) -> None:
        for event in received:
            if isinstance(event, Request):
                self._connection = self._opening.answer(event)
                if self._connection is not None:
                    self._connection.note_refused = self._note_refused
                    self._flow.open(self._connection, self._connection.delivery)
            elif isinstance(event, Message):
                self._messages.append(event)
            else:
                assert self._connection is not None
                self._connection.fail(CloseCode.PROTOCOL, event.reason)
        if self._is_taking:
            self._flow.flush()
        else:
            self._take_messages()

    def _take_messages(self) -> None:
        """Take messages in order for one turn of the loop. A thread reads a large one, while the rest waits and no more is received."""
        work, num_taken = self._service.work, 0
        while self._messages and (connection := self._connection) is not None and connection.close_code is None:
            data, is_text = self._messages[0].data, self._messages[0].is_text
            if not connection.has_said_hello and len(data) > _MAX_HELLO_BYTES:
                connection.fail(CloseCode.BAD_FIRST_FRAME, f"hello may have at most {_MAX_HELLO_BYTES} bytes")
                continue
            price, owner = message_price(data, is_text=is_text), owner_of(connection.principal)
            if price > INLINE_S:
                reading = work.start(owner, price, partial(connection.read, data, is_text=is_text), kind=WorkKind.PARSE)
                reading.add_done_callback(partial(self._take_read, price))
                self._wait_for_turn()
                break
            if num_taken == _TURN_MESSAGES or not work.turns.has_room(price):
                self._service.loop.call_soon(self._take_later)
                self._wait_for_turn()
                break
            num_taken += 1
            self._messages.popleft()
            work.run_here(owner, price, partial(self._read_and_take, connection, data, is_text), kind=WorkKind.PARSE)
        else:
            self._end_taking()
        self._flow.check_backlog()
        self._flow.flush()

    def _note_refused(self, message: Mapping[str, Any], error: RtlangError, status: int) -> str:
        assert self._connection is not None
        return self._service.records.refuse(message, self._connection.principal.name, error, status)

    def _wait_for_turn(self) -> None:
        self._is_taking = True
        if self._transport is not None and not self._flow.is_lost:
            self._transport.pause_reading()

    def _end_taking(self) -> None:
        """All messages that have been received are taken, or the connection has ended."""
        self._messages.clear()
        was_taking, self._is_taking = self._is_taking, False
        if self._connection is not None:
            if self._flow.is_lost:
                self._end_streams()
                self._connection.end(CloseCode.NORMAL, "connection lost")
                self._service.check_idle()
            elif self._websocket.state is not State.OPEN:
                self._connection.end(CloseCode.NORMAL, "closed by the client")
        if was_taking and self._transport is not None and not self._flow.is_lost:
            self._transport.resume_reading()

    def _take_later(self) -> None:
        try:
            self._take_messages()
        except Exception:
            logger.exception("taking the messages of a connection failed")
            self._give_up()

    def _take_read(self, price: float, reading: asyncio.Future[ReadMessage]) -> None:
        """Take the message that a thread has read, and go on with the next one."""
        connection = self._connection
        assert connection is not None
        if reading.cancelled():  # the server has stopped
            self._give_up()
            return
        try:
            self._messages.popleft()
            actions = connection.take(reading.result())
            if actions:
                assert len(actions) == 1
                self._streams.perform_beside(connection, actions[0], price, self._take_later)
            else:
                self._take_messages()
        except Exception:
            logger.exception("reading a message failed")
            self._give_up()

    def _give_up(self) -> None:
        self._messages.clear()
        self._is_taking = False
        if self._flow.is_lost:
            self._end_streams()
        self.abort()

    def _read_and_take(self, connection: Connection, data: bytes, is_text: bool) -> None:
        for action in connection.take(connection.read(data, is_text=is_text)):
            self._streams.perform(connection, action)
        if connection.num_output_bytes > self._service.config.send_buffer_bytes:
            # Many short messages in one read may each cause a long answer.
            self._flow.flush()
            self._flow.check_backlog()
        self._opening.note_message()

    def _end_streams(self) -> None:
        self._streams.end(may_resume=self._connection is not None and not self._connection.has_said_bye)
