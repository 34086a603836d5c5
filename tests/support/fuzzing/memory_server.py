"""A server without sockets: its WebSocket protocol and HTTP routes on one event loop of this thread, fed with bytes.

All of the server's code runs but uvicorn and the kernel, so that a million inputs take minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from types import SimpleNamespace
from typing import Any, cast

from websockets.frames import Frame, Opcode

from rtlang.contract.config import ServeConfig
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.target import Target
from rtlang.protocol.messages import CloseCode
from rtlang.serve.connection import ServerInfo
from rtlang.serve.http.app import create_app
from rtlang.serve.service import StreamService
from rtlang.serve.websocket import StreamSocket
from rtlang.serve.websocket_mode.socket import ModeSocket

HANG_S = 60.0
"""An input without an answer for so long is a hang."""

_HEAD = (
    "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {'A' * 22}==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n\r\n"
)


_MODE_HEAD = _HEAD.replace("/v1/stream", "/v1/responses").replace("Sec-WebSocket-Protocol: %s\r\n", "")
_FAULTS = (b'"code":"fault"', b"\xa4code\xa5fault", b'"code":"internal"', b"\xa4code\xa8internal")


class Hang(AssertionError):
    """The server said nothing for `HANG_S`."""


class MemoryTransport(asyncio.Transport):
    """The end of a connection whose other end is this process.

    Attributes:
        output: all bytes that were written.
        has_written: set by each write, and when the connection is closed.
        is_closed: by the server.
    """

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._protocol = protocol
        self.output = bytearray()
        self.has_written = asyncio.Event()
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.output += data
        self.has_written.set()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.has_written.set()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def write_eof(self) -> None:
        self.has_written.set()

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class MemoryServer:
    """The routes and the WebSocket of a server around a target. Make and use it on a running loop.

    Args:
        hang_s: in place of `HANG_S`.
    """

    def __init__(self, target: Target, hang_s: float | None = None) -> None:
        self._hang_s = hang_s
        loop = asyncio.get_running_loop()
        info = ServerInfo("epoch", max_streams=256)
        self._service = StreamService(target, ServeConfig(port=0), info, Metrics(), loop)
        self._app = create_app(self._service)

    async def converse(self, subprotocol: str, messages: list[bytes], *, is_text: bool) -> int:
        """Send messages on one WebSocket until the pong that follows them, or the end of the connection.

        Returns:
            The bytes that the server wrote after the handshake.
        Raises:
            Hang: neither came.
        """
        state = SimpleNamespace(connections=set())
        socket = StreamSocket(self._service, config=cast(Any, None), server_state=cast(Any, state), app_state={})
        transport = MemoryTransport(socket)
        socket.connection_made(transport)
        socket.data_received((_HEAD % subprotocol).encode())
        size = len(transport.output)
        opcode = Opcode.TEXT if is_text else Opcode.BINARY
        ping = b'{"t":"ping","n":4711}' if is_text else b"\x82\xa1t\xa4ping\xa1n\xcd\x12\x67"
        pong = b'"n":4711' if is_text else b"\xa1n\xcd\x12\x67"
        data = b"".join(Frame(opcode, each, True).serialize(mask=True) for each in (*messages, ping))
        for start in range(0, len(data), 65_536):
            if not transport.is_closed:
                socket.data_received(data[start : start + 65_536])
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(self._hang_s or HANG_S):
                at = size
                while not transport.is_closed:
                    transport.has_written.clear()
                    at, has_answered = _walked(transport.output, at, pong)
                    if has_answered:
                        break
                    await transport.has_written.wait()
        except TimeoutError:
            raise Hang(f"no pong after {len(messages)} messages") from None
        finally:
            transport.close()
            await asyncio.sleep(0)
        for fault in _FAULTS:
            assert fault not in transport.output, bytes(transport.output)[-2_000:]
        return len(transport.output) - size

    async def turns(self, messages: list[tuple[Opcode, bytes]], num_before_leaving: int | None = None) -> list[bytes]:
        """Send messages on one connection of WebSocket mode.

        Args:
            num_before_leaving: the client leaves after so many bytes; by default, when all responses have ended.
        Returns:
            The frames that the server sent.
        Raises:
            Hang: the responses did not end.
        """
        state = SimpleNamespace(connections=set())
        socket = ModeSocket(self._service, config=cast(Any, None), server_state=cast(Any, state), app_state={})
        transport = MemoryTransport(socket)
        socket.connection_made(transport)
        socket.data_received(_MODE_HEAD.encode())
        size, last = len(transport.output), b'{"type":"the last one"}'
        frames = [*messages, (Opcode.TEXT, last)]
        data = b"".join(Frame(opcode, each, True).serialize(mask=True) for opcode, each in frames)[:num_before_leaving]
        for start in range(0, len(data), 65_536):
            if not transport.is_closed:
                socket.data_received(data[start : start + 65_536])
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(self._hang_s or HANG_S):
                at, has_answered = size, num_before_leaving is not None
                while not (transport.is_closed or (has_answered and not socket.num_running)):
                    transport.has_written.clear()
                    if not has_answered:
                        at, has_answered = _walked(transport.output, at, b"the last one")
                    if num_before_leaving is not None:
                        break
                    if not (has_answered and not socket.num_running):
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(transport.has_written.wait(), 0.1)
        except TimeoutError:
            raise Hang(f"responses did not end after {len(messages)} messages") from None
        finally:
            transport.close()
            for _ in range(3):
                await asyncio.sleep(0)
        async with asyncio.timeout(self._hang_s or HANG_S):
            while socket.num_running:
                await asyncio.sleep(0.001)
        assert not state.connections
        assert self._service.connections.num_principals == 0 or self._service.sockets
        for fault in _FAULTS:
            assert fault not in transport.output, bytes(transport.output)[-2_000:]
        return _frames(transport.output, size)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Post a body; the status and the answer.

        Raises:
            Hang: the answer did not end.
        """
        status = 0
        answer = bytearray()
        left = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if left:
                return left.pop()
            await asyncio.Event().wait()  # the client stays
            raise AssertionError

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            answer.extend(message.get("body", b""))

        headers = [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }
        try:
            async with asyncio.timeout(self._hang_s or HANG_S):
                await self._app(scope, receive, send)
        except TimeoutError:
            raise Hang(f"no answer to {path} {body[:200]!r}") from None
        return status, bytes(answer)

    async def check(self) -> None:
        """The server is healthy and answers a known request."""
        asked = {"prompt": "known", "max_tokens": 4, "temperature": 0}
        status, answer = await self.post("/v1/completions", json.dumps(asked).encode())
        assert status == 200, answer
        assert json.loads(answer)["choices"][0]["text"] is not None

    def close(self) -> None:
        """End all connections."""
        self._service.close_all(CloseCode.DRAINED, "the end")


def _walked(output: bytearray, at: int, pong: bytes) -> tuple[int, bool]:
    """Walk the whole frames from a position on: the position after them, and whether one has the pong or closes the connection."""
    while at + 2 <= len(output):
        opcode, length, start = output[at] & 15, output[at + 1] & 127, at + 2
        if length >= 126:
            size = 2 if length == 126 else 8
            length, start = int.from_bytes(output[start : start + size], "big"), start + size
        if start + length > len(output):
            break
        if opcode == Opcode.CLOSE or output.find(pong, start, start + length) >= 0:
            return start + length, True
        at = start + length
    return at, False


def _frames(output: bytearray, at: int) -> list[bytes]:
    """The data of the text frames from a position on."""
    found = []
    while at + 2 <= len(output):
        opcode, length, start = output[at] & 15, output[at + 1] & 127, at + 2
        if length >= 126:
            size = 2 if length == 126 else 8
            length, start = int.from_bytes(output[start : start + size], "big"), start + size
        if opcode == Opcode.TEXT and output[at] & 128:
            found.append(bytes(output[start : start + length]))
        at = start + length
    return found
