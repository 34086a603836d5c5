"""The socket of one connection of WebSocket mode, from its upgrade to its end.

Messages are read in order, large ones on a thread; no more is received meanwhile. An invalid message is answered with an `error` frame and
the connection goes on; a message of more than twice `max_frame_bytes`, a violation of the WebSocket protocol, a client that reads too
slowly, a removed key and the age limit close it. When the connection ends, its responses are cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from websockets.http11 import Request
from websockets.protocol import State

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import AbortedError, ProtocolError
from rtlang.contract.runs.principal import Principal
from rtlang.protocol.messages import CloseCode
from rtlang.protocol.serialization import Encoding
from rtlang.serve.http.errors import HttpError, draining_error
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.network.socket_frames import Message, SocketFrames, TooManyFragments
from rtlang.serve.output_flow import OutputFlow
from rtlang.serve.service import StreamService
from rtlang.serve.websocket_mode.frames import CREATE, STEER, lane_of, read_create, steer_refusal, type_of
from rtlang.serve.websocket_mode.handshake import answer_upgrade
from rtlang.serve.websocket_mode.lanes import Lanes
from rtlang.serve.websocket_mode.output import ModeOutput
from rtlang.serve.websocket_mode.run import ResponseRun
from rtlang.work.prices import REPLY_S_PER_CHAR, json_price

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.server import ServerState

logger = logging.getLogger(__name__)

_TURN_MESSAGES = 32  # messages that one turn of the loop reads


class ModeSocket(asyncio.Protocol):
    """One connection. Created by uvicorn with the keyword arguments below."""

    def __init__(
        self,
        service: StreamService,
        *,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
    ) -> None:
        self._service, self._server_state = service, server_state
        limit = service.config.max_frame_bytes
        self._frames = SocketFrames(service.loop, 2 * limit, lambda: self._flow.flush())
        self._flow = OutputFlow(service, self._frames.websocket, lambda stream: None, self._end_lanes)
        self._transport: asyncio.Transport | None = None
        self._output: ModeOutput | None = None
        self._run: ResponseRun | None = None
        self._lanes: Lanes | None = None
        self._messages: deque[Message] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._when_lost: Callable[[], None] | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        self._ends_when_idle: tuple[Exception, int] | None = None  # the error of further requests, and the close code

    @property
    def num_running(self) -> int:
        """Number of responses of this connection that have not ended."""
        return 0 if self._lanes is None else self._lanes.num_running

    @property
    def principal(self) -> Principal | None:
        """The principal of the client; None before it is known."""
        return None if self._output is None else self._output.principal

    # Called by the service

    def drain(self, deadline_s: float) -> None:
        """Answer no more requests, and close the connection when its responses have ended."""
        self._end_when_idle(draining_error(deadline_s), CloseCode.DRAINED)

    def tell_engine(self, state: str) -> None:
        """Nothing to tell: clients of this door have no message for it."""

    def end(self, code: int, reason: str) -> None:
        """Close the connection with an error frame and a close code."""
        if self._output is None:
            self.abort()
            return
        draining = draining_error(self._service.config.drain_timeout_s)
        error = draining if self._service.is_draining else AbortedError(reason)
        self._output.close_with(error, code, reason)

    def abort(self) -> None:
        """Drop the connection without a close frame."""
        if self._transport is not None:
            self._transport.abort()

    def shutdown(self) -> None:
        """Close the connection; uvicorn calls this when it shuts down."""
        self.end(CloseCode.DRAINED, "the server is shutting down")

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call a function once the connection is lost."""
        if self._flow.is_lost:
            call()
        else:
            self._when_lost = call

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._flow.start(self._transport)
        self._service.add_socket(self, self._server_state.connections)
        self._frames.start(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._flow.lose()
        self._frames.end()
        self._end_lanes()
        if self._when_lost is not None:
            self._when_lost()
            self._when_lost = None
        if self._age_timer is not None:
            self._age_timer.cancel()
        if self._output is not None:
            self._output.close(CloseCode.NORMAL, "connection lost")
            self._service.connections.release(self._output.principal)
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
                self._open(event)
            elif isinstance(event, Message):
                self._messages.append(event)
            else:
                assert self._output is not None
                self._output.fail(CloseCode.PROTOCOL, event.reason)
        output = self._output
        if output is not None and self._frames.websocket.state is not State.OPEN:
            self._messages.clear()
            output.close(CloseCode.NORMAL, "closed by the client")
        if self._messages and self._reading is None and output is not None and output.close_code is None:
            self._reading = asyncio.create_task(self._read_messages())
        self._flow.check_backlog()
        self._flow.flush()

    def _open(self, request: Request) -> None:
        service, websocket = self._service, self._frames.websocket
        principal = answer_upgrade(service, websocket, request, next(service.numbers))
        if principal is None:
            return
        output = self._output = ModeOutput(principal, self._flow)
        trace = request.headers.get("traceparent"), request.headers.get("tracestate")
        self._run = ResponseRun(service, principal, output, trace)
        self._lanes = Lanes(self._run, service.config.max_frame_bytes, self._note_idle, self.abort)
        self._flow.open(output)
        minutes = service.config.responses_connection_s / 60
        message = (
            f"Responses websocket connection limit reached ({minutes:g} minutes). "
            "Create a new websocket connection to continue."
        )
        error = HttpError(400, message, code="websocket_connection_limit_reached")
        self._age_timer = service.loop.call_later(
            service.config.responses_connection_s, partial(self._end_when_idle, error, CloseCode.NORMAL)
        )

    async def _read_messages(self) -> None:
        """Take the messages that have come, in order."""
        assert self._transport is not None
        assert self._output is not None
        assert self._run is not None
        num_taken = 0
        self._transport.pause_reading()
        try:
            while self._messages and self._output.close_code is None:
                received = self._messages.popleft()
                message: Any = None
                try:
                    message = await self._parsed(received)
                    await self._take(message, len(received.data))
                except Exception as error:
                    self._run.refuse(error, lane_of(message))
                num_taken += 1
                if num_taken % _TURN_MESSAGES == 0:
                    await asyncio.sleep(0)
        except Exception:
            logger.exception("reading the messages of a connection failed")
            self.abort()
        finally:
            self._reading = None
            if not self._flow.is_lost:
                self._transport.resume_reading()

    async def _parsed(self, received: Message) -> Any:
        limit, data = self._service.config.max_frame_bytes, received.data
        if len(data) > limit:
            raise HttpError(413, f"the message is longer than {limit} bytes", code="body_too_large")
        if not received.is_text:
            raise ProtocolError("messages must be text frames of JSON")
        parse = partial(Encoding.JSON.unpack, data, self._service.server_info.decode_limits)
        return await self._service.run(self.principal, json_price(data), parse, kind=WorkKind.PARSE)

    async def _take(self, message: Any, num_bytes: int) -> None:
        """Take a message.

        Raises:
            HttpError, RtlangError: it is refused.
        """
        assert self._output is not None
        assert self._lanes is not None
        kind = type_of(message)
        if kind == STEER:
            write, price = partial(json_bytes, steer_refusal(message)), num_bytes * REPLY_S_PER_CHAR
            self._output.send([await self._service.run(self.principal, price, write, kind=WorkKind.REPLY)])
        elif kind == CREATE:
            if self._ends_when_idle is not None:
                raise self._ends_when_idle[0]
            self._lanes.add(read_create(message, num_bytes))

    # The end

    def _end_when_idle(self, error: Exception, code: int) -> None:
        """Refuse requests with an error, and close the connection with it once no response runs."""
        if self._ends_when_idle is None:
            self._ends_when_idle = error, code
        self._note_idle()

    def _note_idle(self) -> None:
        if self._ends_when_idle is not None and self._output is not None and not self.num_running:
            self._output.close_with(*self._ends_when_idle)
        if self._service.is_draining:
            self._service.check_idle()

    def _end_lanes(self) -> None:
        self._messages.clear()
        if self._lanes is not None:
            self._lanes.end()
