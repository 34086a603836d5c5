"""The body that both clients share: it reads a connection, and goes on with another one when the first breaks.

It is written once, as coroutines over a `Transport`. The client for asyncio awaits them on its loop. The client for threads has a
transport that blocks instead of suspending, and runs them with `completed` on its reader thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from websockets.exceptions import ConnectionClosed

from rtlang.client.address import Attempts, ServerAddresses, may_connect_again
from rtlang.client.client_protocol import ClientProtocol, Notices
from rtlang.client.reconnect_backoff import ReconnectBackoff
from rtlang.client.remote_cache import CacheRequests
from rtlang.contract.errors import AbortedError, ConnectionLostError, ProtocolError, RtlangError, SlowConsumerError
from rtlang.protocol.event_codec import describe_close, read_messages
from rtlang.protocol.messages import CloseCode

logger = logging.getLogger(__name__)

_Found = TypeVar("_Found")


class Link(NamedTuple):
    """A socket of the `websockets` library after the handshake, and the first message of the server."""

    websocket: Any
    welcome: Mapping[str, Any]


class Transport(Protocol):
    """The I/O of a client; `is_closing` once the client has begun to close."""

    @property
    def is_closing(self) -> bool: ...

    async def dial(self, url: str) -> Link:
        """Connect to the server at a URL; raises ConnectionLostError."""

    async def receive(self, link: Link) -> str | bytes:
        """The next message; raises ConnectionClosed."""

    async def close(self, link: Link) -> None:
        """Close a socket."""

    async def pause(self, seconds: float) -> None:
        """Wait, at most until the client begins to close."""

    def flush(self, session: ClientSession) -> None:
        """Send the output of the protocol, now or soon. If the connection is broken, the reader sends it again, or fails all graphs."""

    def later(self, seconds: float, act: Callable[[], None]) -> threading.Timer | asyncio.TimerHandle:
        """Plan a call."""


class ClientSession:
    """All graphs of one client, over one connection at a time.

    Args:
        resume_s: how long to reconnect after a connection breaks, in seconds; None disables it.
        guard: held while the protocol changes and its output is put in order.

    Attributes:
        link: the present connection.
        lost: the reason for the end of the last connection; None before.
    """

    def __init__(
        self,
        servers: ServerAddresses,
        cache_requests: CacheRequests,
        transport: Transport,
        resume_s: float | None,
        guard: AbstractContextManager[Any],
    ) -> None:
        self._servers, self._cache_requests, self._transport = servers, cache_requests, transport
        self._resume_s, self._guard = resume_s, guard
        self.backoff = ReconnectBackoff(resume_s or 0.0)
        self.lost: RtlangError | None = None
        self.link: Link | None = None
        self._protocol: ClientProtocol | None = None
        self._retry: threading.Timer | asyncio.TimerHandle | None = None

    @property
    def protocol(self) -> ClientProtocol:
        """The state of all graphs; only after `open`."""
        assert self._protocol is not None
        return self._protocol

    @property
    def is_open(self) -> bool:
        """Whether `open` has succeeded."""
        return self._protocol is not None

    async def open(self) -> None:
        """Connect.

        Raises:
            ConnectionLostError: no server can be reached.
        """
        attempts = Attempts()
        self.link = await self._dialled(self._servers.in_turn(), attempts)
        if self.link is None:
            raise attempts.error()
        self._protocol = ClientProtocol(self.link.welcome, self._resume_s)

    def act(self, act: Callable[[ClientProtocol], None]) -> None:
        """Let the protocol send something, unless the connection is lost."""
        with self._guard:
            if self.lost is None and self._protocol is not None:
                act(self._protocol)
                self._transport.flush(self)

    async def read(self) -> None:
        """Take messages until the connection is lost for good; then every graph gets its final event."""
        reason, is_slow = "the connection broke", False
        try:
            while True:
                try:
                    assert self.link is not None
                    await self._take(await self._transport.receive(self.link))
                except ConnectionClosed as error:
                    reason = describe_close(error)
                    is_slow = error.rcvd is not None and error.rcvd.code == CloseCode.SLOW
                    if not may_connect_again(error.rcvd):
                        return
                    failed = await self._connect_again()
                    if failed is not None:
                        reason = f"{reason}; {failed}" if failed else reason
                        return
                    reason, is_slow = "the connection broke", False
        except ProtocolError as error:
            reason, is_slow = f"protocol violation by the server: {error.message}", False
        except asyncio.CancelledError:
            reason = "closed"
            raise
        except Exception as error:
            reason, is_slow = f"internal error in the reader: {type(error).__name__}", False
            logger.exception("the reader of %s failed", self._servers.url)
        finally:
            self.lose(reason, is_slow=is_slow)

    def lose(self, reason: str, *, is_slow: bool = False) -> None:
        """End all graphs with the reason for the end of the connection."""
        lost = ConnectionLostError(f"{self._servers.url}: {reason}")
        error: RtlangError = SlowConsumerError(lost.message) if is_slow else lost
        with self._guard:
            self.lost = lost
            if self._transport.is_closing:
                error = AbortedError("the connection was closed by this client")
            if self._retry is not None:
                self._retry.cancel()
            notices = self.protocol.lose(lost, error)
            self.protocol.take_output()
        _notify(notices)

    async def _take(self, data: str | bytes) -> None:
        is_draining = False
        for message in read_messages(data):
            if message.get("t") in ("delta", "event", "end"):
                self.backoff.end()
            is_draining = is_draining or message.get("t") == "drain"
            with self._guard:
                notices = self.protocol.take(message)
                self._transport.flush(self)
                self._plan_retry()
            _notify(notices)
        if is_draining and self._resume_s is not None and not self._transport.is_closing:
            # This server is going to end: go on at another one, or stay if there is none.
            link = await self._dialled(self._servers.in_turn(others_only=True), Attempts())
            if link is not None:
                await self._use(link)

    async def _connect_again(self) -> str | None:
        """Replace a broken connection within `resume_s`. Returns None if that succeeded, else why it failed, as far as that is known."""
        reason = ""
        while self._resume_s is not None:
            pause_s = self.backoff.next_pause()
            if pause_s is None:
                break
            await self._transport.pause(pause_s)
            if self._transport.is_closing:
                break
            attempts = Attempts()
            link = await self._dialled(self._servers.in_turn(), attempts)
            if link is not None:
                await self._use(link)
                return None
            reason = attempts.error().message
            logger.info("reconnecting failed: %s", reason)
            if attempts.are_all_useless:
                break
        return reason

    async def _dialled(self, urls: Iterable[str], attempts: Attempts) -> Link | None:
        """A connection to the first of these servers that answers and serves the model; None if there is none."""
        for url in urls:
            try:
                link = await self._transport.dial(url)
            except ConnectionLostError as error:
                attempts.note(error)
                continue
            reason = None if self._protocol is None else self._protocol.other_model(link.welcome)
            if reason is None:
                self._servers.url = url
                self._cache_requests.move_to(url)
                return link
            attempts.note_useless(url, reason)
            await self._transport.close(link)
        return None

    async def _use(self, link: Link) -> None:
        """Continue all graphs on this connection, in place of the present one."""
        with self._guard:
            before, self.link = self.link, link
            if not self.protocol.runs:
                self.backoff.end()
            notices = self.protocol.reconnected(link.welcome)
            if self._transport.is_closing:
                self.protocol.bye()
            self._transport.flush(self)
            self._plan_retry()
        _notify(notices)
        assert before is not None
        await self._transport.close(before)

    def _plan_retry(self) -> None:
        """Set the timer for graphs that a busy server refused to go on with. Under the guard."""
        pause_s = self.protocol.retry_pause()
        if pause_s is not None and self._retry is None:
            self._retry = self._transport.later(pause_s, self._open_again)

    def _open_again(self) -> None:
        with self._guard:
            self._retry = None
            notices = self.protocol.retry()  # none after `lose`, which may cancel a timer too late
            self._transport.flush(self)
            self._plan_retry()
        _notify(notices)


def completed(coroutine: Coroutine[Any, Any, _Found]) -> _Found:
    """The result of a coroutine that never suspends, because its transport blocks."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("the transport of a client for threads has to block")


def _notify(notices: Notices) -> None:
    for run, event in notices:
        run.notify(event)
