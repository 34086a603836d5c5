"""A server around a scripted target, and a TCP connection that speaks whatever it is told."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode

from rtlang.contract.config import ServeConfig
from rtlang.contract.service.metrics import PREFIX, Metrics
from rtlang.serve.server import running_server
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.wire_client import JSON


@dataclass
class Serving:
    """A server with its target and counters."""

    url: str
    target: ScriptedTarget
    metrics: Metrics

    def count(self, name: str) -> float:
        return self.metrics.snapshot()[PREFIX + name]


@contextlib.contextmanager
def serving(target: ScriptedTarget | None = None, **settings: Any) -> Iterator[Serving]:
    target, metrics = target or ScriptedTarget(), Metrics()
    with running_server(target, ServeConfig(port=0, **settings), metrics=metrics) as url:
        yield Serving(url, target, metrics)


class RawSocket:
    """A TCP connection that speaks whatever it is told."""

    def __init__(self, url: str, receive_buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        assert parts.hostname
        self.socket.connect((parts.hostname, parts.port))
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> RawSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def upgrade(
        self, path: str = "/v1/stream", host: str | None = None, extra: str = "", subprotocol: str = JSON
    ) -> None:
        name = host or "localhost"
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {name}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {'A' * 22}==\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {subprotocol}\r\n{extra}\r\n".encode()
        )

    def status(self) -> int:
        status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass
        return status

    def send(self, opcode: Opcode, data: bytes, *, fin: bool = True) -> None:
        self.socket.sendall(Frame(opcode, data, fin).serialize(mask=True))

    def receive(self) -> tuple[int, bytes]:
        """The next message or control frame: opcode and payload."""
        opcode, data, is_last = self.frame()
        parts = [data]
        while not is_last:
            _, data, is_last = self.frame()
            parts.append(data)
        return opcode, b"".join(parts)

    def frame(self) -> tuple[int, bytes, bool]:
        """The next frame: opcode, payload, and whether it ends its message."""
        head = self.file.read(2)
        assert len(head) == 2, "the connection ended without a close frame"
        length = head[1]
        if length >= 126:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
        return head[0] & 15, self.file.read(length), head[0] >= 128

    def close_code(self) -> int:
        while True:
            opcode, data = self.receive()
            if opcode == Opcode.CLOSE:
                return int.from_bytes(data[:2], "big")

    def greet(self) -> None:
        self.upgrade()
        assert self.status() == 101
        self.send(Opcode.TEXT, b'{"t": "hello", "v": 1}')
        assert json.loads(self.receive()[1])["t"] == "welcome"
