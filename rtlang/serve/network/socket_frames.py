"""The frames of one upgraded socket as whole messages, and its pings.

Wraps the sans-I/O `ServerProtocol` of the `websockets` library, without compression: it joins fragments, and drops a socket from which
nothing has come since the last ping. Used on the event loop of the socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from rtlang.protocol.limits import MAX_FRAGMENTS, PING_INTERVAL_S


@dataclass(frozen=True, slots=True)
class Message:
    """One whole message of the client."""

    data: bytes
    is_text: bool


@dataclass(frozen=True, slots=True)
class TooManyFragments:
    """The client sends a message in more fragments than are taken."""

    reason = f"a message may have at most {MAX_FRAGMENTS} fragments"


class SocketFrames:
    """Reads the frames of one socket.

    Args:
        max_bytes: longest message; a longer one closes the socket with 1009.
        flush: sends the output that was left in `websocket`.

    Attributes:
        websocket: frames the output, and takes the answer to the upgrade.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_bytes: int, flush: Callable[[], None]) -> None:
        self.websocket = ServerProtocol(max_size=max_bytes, logger=logging.getLogger("rtlang.serve.frames"))
        self._loop, self._flush = loop, flush
        self._transport: asyncio.Transport | None = None
        self._fragments: list[bytes] = []
        self._is_text = False
        self._ping_timer: asyncio.TimerHandle | None = None
        self._has_received = True  # since the last ping

    def start(self, transport: asyncio.Transport) -> None:
        """Begin to send pings."""
        self._transport = transport
        self._ping_timer = self._loop.call_later(PING_INTERVAL_S, self._ping)

    def end(self) -> None:
        """Stop the pings of a socket that is lost."""
        if self._ping_timer is not None:
            self._ping_timer.cancel()

    def receive(self, data: bytes) -> Iterator[Request | Message | TooManyFragments]:
        """What the bytes have completed: the upgrade request, or messages."""
        self._has_received = True
        self.websocket.receive_data(data)
        yield from self._events()

    def receive_eof(self) -> Iterator[Request | Message | TooManyFragments]:
        """`receive` for the end of the client's side."""
        self.websocket.receive_eof()
        yield from self._events()

    def _events(self) -> Iterator[Request | Message | TooManyFragments]:
        for event in self.websocket.events_received():
            if isinstance(event, Request):
                yield event
            elif isinstance(event, Frame):
                yield from self._frame(event)

    def _frame(self, frame: Frame) -> Iterator[Message | TooManyFragments]:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._fragments = [bytes(frame.data)]
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is Opcode.CONT:
            self._fragments.append(bytes(frame.data))
        else:
            return  # ping is answered by the library, close shows in its state
        if frame.fin:
            yield Message(b"".join(self._fragments), self._is_text)
            self._fragments = []
        elif len(self._fragments) > MAX_FRAGMENTS:
            yield TooManyFragments()

    def _ping(self) -> None:
        assert self._transport is not None
        if not self._has_received:
            self._transport.abort()
            return
        self._has_received = False
        if self.websocket.state is State.OPEN:
            self.websocket.send_ping(b"")
            self._flush()
        self._ping_timer = self._loop.call_later(PING_INTERVAL_S, self._ping)
