"""Frames between peers: a map in MessagePack with a short header, and raw bytes.

A frame is the length of its map and that of its body, both as 4 bytes in network order, then the two. Sizes are bounded before anything
is read into memory, and every frame has a deadline from its first byte on, so a peer that sends or reads slowly holds a thread for that
time only.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Any

import msgpack

_HEADER = struct.Struct("!II")
MAX_MAP_BYTES = 4096
FRAME_S = 10.0
"""Seconds in which a frame must be sent, or received after its first byte."""


class PeerError(Exception):
    """A peer did not keep to the protocol, refused this one, or took too long."""


class FrameStream:
    """Sends and receives frames on a connected socket. One thread may receive while others send.

    Args:
        max_body_bytes: of a frame that is received.
    """

    def __init__(self, connection: socket.socket, max_body_bytes: int) -> None:
        self.max_body_bytes = max_body_bytes
        with suppress(OSError):  # not every kind of socket has it
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._reading, self._writing = connection, connection.dup()  # timeouts belong to the object
        self._lock = threading.Lock()

    def send(self, fields: dict[str, Any], body: bytes | memoryview = b"", timeout_s: float = FRAME_S) -> None:
        """Send a frame.

        Raises:
            PeerError: the connection has ended, or the frame was not taken in time.
        """
        packed = msgpack.packb(fields)
        head = _HEADER.pack(len(packed), len(body)) + packed
        try:
            with self._lock:
                self._writing.settimeout(timeout_s)
                if len(body) <= MAX_MAP_BYTES:
                    self._writing.sendall(head + body)
                else:
                    self._writing.sendall(head)
                    self._writing.sendall(body)
        except (OSError, ValueError) as error:
            raise PeerError(f"sending failed: {error or 'timed out'}") from None

    def receive(self, first_s: float, rest_s: float = FRAME_S) -> tuple[dict[str, Any], memoryview]:
        """The next frame.

        Args:
            first_s, rest_s: seconds to wait for its first byte, and for the rest after that.
        Raises:
            PeerError: the connection has ended, the frame took too long, is too large or is none.
        """
        header = bytearray(_HEADER.size)
        self._fill(memoryview(header)[:1], time.monotonic() + first_s)
        deadline = time.monotonic() + rest_s
        self._fill(memoryview(header)[1:], deadline)
        map_bytes, body_bytes = _HEADER.unpack(header)
        if map_bytes > MAX_MAP_BYTES or body_bytes > self.max_body_bytes:
            raise PeerError(f"a frame of {map_bytes} and {body_bytes} bytes is too large")
        packed, body = bytearray(map_bytes), memoryview(bytearray(body_bytes))
        self._fill(memoryview(packed), deadline)
        self._fill(body, deadline)
        try:
            fields = msgpack.unpackb(packed)
        except (ValueError, msgpack.UnpackException, RecursionError):
            raise PeerError("a frame is not in MessagePack") from None
        if not isinstance(fields, dict):
            raise PeerError("a frame has no map")
        return fields, body.toreadonly()

    def close(self) -> None:
        """End the connection; wakes a thread that receives. Idempotent."""
        with suppress(OSError):
            self._reading.shutdown(socket.SHUT_RDWR)
        for each in (self._reading, self._writing):
            each.close()

    def _fill(self, view: memoryview, deadline: float) -> None:
        try:
            while view:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise PeerError("a frame took too long")
                self._reading.settimeout(left)
                num_bytes = self._reading.recv_into(view)
                if not num_bytes:
                    raise PeerError("the connection has ended")
                view = view[num_bytes:]
        except (OSError, ValueError) as error:
            raise PeerError(f"receiving failed: {error or 'timed out'}") from None
