"""uvicorn's HTTP connection with limits: open sockets are counted, and each part of a request has to arrive in time.

The header of every request, also of later ones on the same connection, must be complete within `hello_timeout_s` of the connection or of
its first byte, and its body within `request_timeout_s`. Between requests the connection stays open for `keep_alive_s`. A client that takes
no byte of a response for `slow_timeout_s` is dropped with what is still to be sent.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rtlang.contract.config import ServeConfig
from rtlang.serve.network.body_writer import BODY_WRITER, BodyWriter, body_writer_of
from rtlang.serve.network.socket_counts import SocketCounts

if sys.platform == "linux":
    import fcntl
    import termios


class HttpConnection(H11Protocol):
    """One connection, until it is closed or upgraded. Created by uvicorn with keyword arguments of its own."""

    def __init__(self, limits: ServeConfig, counts: SocketCounts, **kwargs: Any) -> None:
        # uvicorn copies this state into the scope of each request.
        kwargs["app_state"] = {**kwargs["app_state"], BODY_WRITER: self._body_writer}
        super().__init__(**kwargs)
        self._limits, self._counts = limits, counts
        self._timer: asyncio.TimerHandle | None = None
        self._phase: str | None = None
        self._slow_timer: asyncio.TimerHandle | None = None
        self._address: str | None = None  # while it is counted

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not self._counts.admit(address):
            transport.abort()
            return
        self._address = address
        self._enter("header")

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(None)
        self._stop_slow_timer()
        self._release()
        self.app_state.pop(BODY_WRITER, None)  # a cycle of references
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._address is None:
            return  # refused
        if self._phase is None and self._is_between_requests():
            self._enter("header")
        super().data_received(data)
        self._settle()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._enter(None)
        # The socket is counted until its new protocol, which is told here, has lost it.
        release, self._address = self._released_by_upgrade(), None
        try:
            super().handle_websocket_upgrade(event)
        finally:
            protocol = self.transport.get_protocol()
            if protocol is self or not hasattr(protocol, "when_lost"):
                release()
            else:
                cast(Any, protocol).when_lost(release)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._settle()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_slow_timer()

    def _body_writer(self) -> BodyWriter | None:
        return body_writer_of(self.cycle, self.flow, self.transport)

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
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            self._enter(None)
        elif self._is_between_requests():
            if cast(object, self.cycle) is not None and not self.conn.trailing_data[0]:
                self._enter(None)  # uvicorn's keep-alive timer runs
            else:
                self._enter("header")
        else:
            self._enter("body" if self.cycle.more_body and not self.cycle.response_complete else None)

    def _is_between_requests(self) -> bool:
        return self.conn.their_state is h11.IDLE

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
        if self.transport.get_protocol() is self:
            self.transport.close()

    def _released_by_upgrade(self) -> Callable[[], None]:
        address = self._address
        assert address is not None
        return lambda: self._counts.release(address)

    def _release(self) -> None:
        if self._address is not None:
            address, self._address = self._address, None
            self._counts.release(address)
