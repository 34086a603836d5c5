"""uvicorn's HTTP connection with limits: open sockets are counted, and each part of a request has to arrive in time.

The header of every request, also of later ones on the same connection, must be complete within `hello_timeout_s` of the connection or of
its first byte, and its body within `request_timeout_s`; a client whose request is late or not valid HTTP gets an answer (408, 400, 431).
Between requests the connection stays open for `keep_alive_s`. A client that takes no byte of a response for `slow_timeout_s` is dropped
with what is still to be sent.

A client may be sending when it is answered: a body that is too long, or that nobody reads. A socket that is closed with unread input is
reset, and the client loses the answer. So its rest is read and dropped: the connection is only half closed, or goes on with its next
request if it need not close. This ends after `request_timeout_s`, and at `MAX_DROPPED_BYTES`, with a reset.

A client that closes its own side after a whole request may have left, or may wait for the answer: only a write would tell. The answer has
`HALF_CLOSED_S` to end; then the client counts as gone. One that does so within its answer has left.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import contextvars
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from rtlang.contract.config import ServeConfig
from rtlang.serve.network.body_writer import BODY_WRITER, BodyWriter, body_writer_of
from rtlang.serve.network.socket_counts import SocketCounts

if sys.platform == "linux":
    import fcntl
    import termios

MAX_DROPPED_BYTES = 64 << 20
"""Bytes of one connection that are read and dropped after its answer."""
HALF_CLOSED_S = 1.0
"""Seconds within which an answer must end after its client has closed its own side of the connection."""
Refusal = Callable[[Mapping[str, Any] | None, int, str, str], tuple[bytes, str]]
"""Notes a refused request; takes its scope, if the application has it, and the status, message and code of the refusal. Returns the body of
the response and the id of the request."""
_REFUSALS = {
    400: ("the request is not valid HTTP/1.1", "bad_request"),
    408: ("the request did not arrive in time", "timeout"),
    431: ("the header of the request is too long", "header_too_large"),
    501: ("this transfer encoding is not supported", "not_supported"),
}


class HttpConnection(H11Protocol):
    """One connection, until it is closed or upgraded. Created by uvicorn with keyword arguments of its own."""

    def __init__(self, limits: ServeConfig, counts: SocketCounts, refusal: Refusal, **kwargs: Any) -> None:
        # uvicorn copies this state into the scope of each request.
        kwargs["app_state"] = {**kwargs["app_state"], BODY_WRITER: self._body_writer}
        super().__init__(**kwargs)
        self._limits, self._counts, self._refusal = limits, counts, refusal
        self._socket: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._phase: str | None = None
        self._slow_timer: asyncio.TimerHandle | None = None
        self._address: str | None = None  # while it is counted
        self._num_dropped = 0
        self._leave_timer: asyncio.TimerHandle | None = None  # since the client closed its side
        self._context = contextvars.copy_context()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._socket = transport
        super().connection_made(cast(asyncio.Transport, _LingeringTransport(transport, self)))
        address = self.client[0] if self.client else ""
        if not self._counts.admit(address):
            transport.abort()
            return
        self._address = address
        self._enter("header")

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(None)
        self._stop_slow_timer()
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        self._release()
        super().connection_lost(exc)
        self.app_state.pop(BODY_WRITER, None)  # this and the next are cycles of references
        if isinstance(self.transport, _LingeringTransport):
            self.transport.forget()

    def data_received(self, data: bytes) -> None:
        if self._address is None:
            return  # refused
        if self.is_lingering:
            self._drop(data)
            return
        if self._phase is None and self._is_between_requests():
            self._enter("header")
        if self._is_answered():
            self._drop(data)  # uvicorn passes over it, up to the next request
        super().data_received(data)
        self._settle()

    def handle_events(self) -> None:
        """Begin the next request, in a context of its own.

        A request that resumed reading, or that was answered, would else hand its context to all later ones of the connection.
        """
        self._context.copy().run(super().handle_events)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for the answer to a whole request."""
        assert self._socket is not None
        is_waiting = not self.is_lingering and self._is_working() and not self.cycle.response_started
        if not is_waiting or not self._socket.can_write_eof():  # TLS has no half
            return False
        if self._leave_timer is None:
            self._leave_timer = self.loop.call_later(HALF_CLOSED_S, self._socket.close)
        return True

    def _should_upgrade(self) -> bool:
        """Whether a request asks for a WebSocket. Other upgrades, as many clients offer to HTTP/2, are passed over (RFC 9110, 7.8)."""
        return self.scope["method"] == "GET" and self._get_upgrade() == b"websocket"

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._enter(None)
        assert self._socket is not None
        self.transport = self._socket
        # The socket is counted until its new protocol, which is told here, has lost it.
        release, self._address = self._released_by_upgrade(), None
        # uvicorn makes the protocol without telling the path, on which ours depends.
        make = cast(Any, self.ws_protocol_class)
        self.ws_protocol_class = cast(Any, functools.partial(make, path=self.scope["path"]))
        try:
            super().handle_websocket_upgrade(event)
        finally:
            protocol = self.transport.get_protocol()
            if protocol is self or not hasattr(protocol, "when_lost"):
                release()
            else:
                cast(Any, protocol).when_lost(release)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP; called by uvicorn as it handles the error."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        is_in_body = self.conn.our_state is h11.SEND_RESPONSE  # a chunk whose length does not end is no long header
        self._refuse(400 if is_in_body and status == 431 else status)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._settle()

    def shutdown(self) -> None:
        if self.is_lingering:
            self.transport.abort()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_slow_timer()

    def _body_writer(self) -> BodyWriter | None:
        return body_writer_of(self.cycle, self.flow, self.transport)

    @property
    def is_lingering(self) -> bool:
        """Whether the connection is closed but for reading the rest of the client's input."""
        return self._phase == "linger"

    def close(self) -> None:
        """Close the connection when what was written is sent, and after the rest of the client's input if it is sending."""
        assert self._socket is not None
        if self.is_lingering or self._socket.is_closing():
            return
        is_sending = self.conn.their_state in (h11.SEND_BODY, h11.ERROR) or bool(self.conn.trailing_data[0])
        if not is_sending:
            self._socket.close()
            return
        self._enter("linger")
        self.flow.resume_reading()
        if self._socket.can_write_eof():  # not with TLS
            try:
                self._socket.write_eof()
            except OSError:  # the client has left
                self._socket.abort()

    def _drop(self, data: bytes) -> None:
        """Count input that nobody reads."""
        self._num_dropped += len(data)
        if self._num_dropped > MAX_DROPPED_BYTES:
            self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer instead of the application, if it has not begun to, and close."""
        scope: Mapping[str, Any] | None = None
        if cast(object, self.cycle) is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application has nobody to answer
            self.cycle.message_event.set()
            scope = self.cycle.scope
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            message, code = _REFUSALS.get(status, _REFUSALS[400])
            body, request_id = self._refusal(scope, status, message, code)
            headers = [
                ("content-type", "application/json"),
                ("x-request-id", request_id),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            for event in (
                h11.Response(status_code=status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_reader(self) -> None:
        self._stop_slow_timer()
        unsent = self._num_unsent_bytes()
        self._slow_timer = self.loop.call_later(self._limits.slow_timeout_s, self._check_reader, unsent)

    def _check_reader(self, unsent: int) -> None:
        """Drop the connection if as much is unsent as `slow_timeout_s` ago."""
        if self._num_unsent_bytes() < unsent:
            self._watch_reader()
        else:
            self.transport.abort()

    def _num_unsent_bytes(self) -> int:
        """Bytes that wait here, and on Linux also those in the kernel, which hold megabytes: a slow reader takes them first."""
        waiting = self.transport.get_write_buffer_size()
        peer = self.transport.get_extra_info("socket")
        if peer is None or sys.platform != "linux":
            return waiting
        in_kernel = array.array("i", [0])
        with contextlib.suppress(OSError):
            fcntl.ioctl(peer.fileno(), termios.TIOCOUTQ, in_kernel)
        return waiting + in_kernel[0]

    def _stop_slow_timer(self) -> None:
        if self._slow_timer is not None:
            self._slow_timer.cancel()
            self._slow_timer = None

    def _settle(self) -> None:
        """Start or stop the timer for the next part of the connection: a header, a body, or neither."""
        if self.is_lingering:
            return
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            self._enter(None)
        elif self._leave_timer is not None and not self._is_working():
            self.transport.close()  # nothing more can come
        elif self._is_between_requests():
            self._num_dropped = 0
            if cast(object, self.cycle) is not None and not self.conn.trailing_data[0]:
                self._enter(None)  # uvicorn's keep-alive timer runs
                if self.timeout_keep_alive_task is None:  # the body of an answered request has stopped it
                    self.timeout_keep_alive_task = self.loop.call_later(
                        self.timeout_keep_alive, self.timeout_keep_alive_handler
                    )
            else:
                self._enter("header")
        else:
            self._enter("body" if self.cycle.more_body else None)

    def _is_between_requests(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _is_working(self) -> bool:
        """Whether a whole request has arrived whose answer has not ended."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _is_answered(self) -> bool:
        """Whether the client is sending the body of a request that has its answer."""
        return self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE

    def _enter(self, phase: str | None) -> None:
        if phase == self._phase:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._phase = phase
        if phase is not None:
            limits = self._limits
            seconds = limits.hello_timeout_s if phase == "header" else limits.request_timeout_s
            self._timer = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._timer = None
        if self.transport.get_protocol() is not self:
            return
        if self.is_lingering or self._is_answered():
            self.transport.abort()
        elif self._is_between_requests() and not self.conn.trailing_data[0]:
            self.transport.close()  # it has sent nothing
        else:
            self._refuse(408)

    def _released_by_upgrade(self) -> Callable[[], None]:
        address = self._address
        assert address is not None
        return lambda: self._counts.release(address)

    def _release(self) -> None:
        if self._address is not None:
            address, self._address = self._address, None
            self._counts.release(address)


class _LingeringTransport:
    """The transport as uvicorn sees it: closed by the connection, which first lets the client finish."""

    def __init__(self, transport: asyncio.Transport, connection: HttpConnection) -> None:
        self._transport = transport
        self._connection: HttpConnection | None = connection
        self.write = transport.write  # called for each token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing() or (self._connection is not None and self._connection.is_lingering)

    def forget(self) -> None:
        """Let go of the connection, which is lost."""
        self._connection = None
