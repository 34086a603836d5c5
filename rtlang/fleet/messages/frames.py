"""Messages between the server's process and the engine's process: maps in MessagePack, over a socket pair.

Both ends are of one installation and trust each other; messages of clients were checked before. Messages travel on channels, one for
each graph: messages of one channel arrive in order. A long message is divided into frames, and clients take turns with their frames, so
that neither thousands of messages nor a long one of one client delay another client. Writing never blocks the caller: a thread packs
and sends.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import msgpack

from rtlang.fleet.messages.turn_queue import TurnQueue

_HEADER = struct.Struct(
    "!QI?"
)  # channel, number of bytes, whether the message goes on in the next frame of the channel
Message = dict[str, Any]
CONTROL = 0
"""The channel of messages that belong to no graph, and their client."""
_FIRST_CALL = 1 << 63
_FRAME_BYTES = 32 << 10
_SEND_BYTES = 64 << 10  # of one call of the socket
_SOCKET_BYTES = 64 << 10  # in the socket, where clients cannot take turns any more
_RECEIVE_BYTES = 256 << 10
_GROUP = 32  # elements of a long list that are packed at once; 0.1 ms for nodes


def call_channel(number: int) -> int:
    """The channel of a call and its answer, apart from all graphs, so that a long call delays no other message."""
    return _FIRST_CALL + number


class FrameWriter:
    """Sends messages on a thread of its own. Thread-safe. Messages after a failure of the socket are dropped.

    Args:
        pack: makes a message of each item, on the writer's thread.
    """

    def __init__(self, connection: socket.socket, pack: Callable[[Any], Message] = lambda item: item) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        self._connection, self._pack = connection, pack
        self._packer = msgpack.Packer(unicode_errors="replace")
        self._queue: TurnQueue[Any] = TurnQueue()
        self._condition = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="rtlang-frames", daemon=True)
        self._thread.start()

    def put(self, *items: Any, channel: int = CONTROL, client: Hashable = CONTROL) -> None:
        """Send items, in the order of their channel, when it is the client's turn."""
        with self._condition:
            self._queue.put(client, channel, items)
            self._condition.notify()

    def close(self) -> None:
        """Stop after the items so far. Does not wait."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    def flush(self, timeout_s: float) -> None:
        """Close, and wait until everything is sent."""
        self.close()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while data := self._next_frames():
            try:
                self._connection.sendall(data)
            except OSError:  # the reader of the socket sees its end
                return

    def _next_frames(self) -> bytes:
        """Frames for one call of the socket; waits for the first one. Empty if there will be none."""
        frames: list[bytes] = []
        size = 0
        while size < _SEND_BYTES:
            with self._condition:
                while not self._queue and not self._is_closed and not frames:
                    self._condition.wait()
                if not self._queue:
                    break
                client, channel, item = self._queue.take()
            pieces = item if isinstance(item, _Pieces) else _Pieces(_packed(self._pack(item), self._packer))
            data = pieces.next_piece()
            if not pieces.is_over:
                with self._condition:
                    self._queue.put_back(client, channel, pieces)
            frames += (_HEADER.pack(channel, len(data), not pieces.is_over), data)
            size += _HEADER.size + len(data)
        return b"".join(frames)


class _Pieces:
    """The bytes of one message, packed as they are needed.

    Attributes:
        is_over: whether all have been given.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting = bytearray()
        self.is_over = False

    def next_piece(self) -> bytes:
        """The next bytes, for one frame."""
        while len(self._waiting) <= _FRAME_BYTES:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.is_over = True
                return bytes(self._waiting)
            self._waiting += chunk
        piece = bytes(self._waiting[:_FRAME_BYTES])
        del self._waiting[:_FRAME_BYTES]
        return piece


def _packed(value: Any, packer: msgpack.Packer, depth: int = 0) -> Iterator[bytes]:
    """A value in MessagePack. Long lists in the outer maps are packed in parts: one call would hold all threads of the process."""
    if isinstance(value, dict) and depth < 2:
        yield packer.pack_map_header(len(value))
        for key, item in value.items():
            yield packer.pack(key)
            yield from _packed(item, packer, depth + 1)
    elif isinstance(value, (list, tuple)) and len(value) > _GROUP:
        yield packer.pack_array_header(len(value))
        for start in range(0, len(value), _GROUP):
            yield b"".join(map(packer.pack, value[start : start + _GROUP]))
    else:
        yield packer.pack(value)


def read_messages(connection: socket.socket) -> Iterator[Message]:
    """The messages of the other end, until the socket ends."""
    received = bytearray()
    unfinished: dict[int, msgpack.Unpacker] = {}  # by channel
    while True:
        start = 0
        while len(received) >= start + _HEADER.size:
            channel, size, goes_on = _HEADER.unpack_from(received, start)
            end = start + _HEADER.size + size
            if len(received) < end:
                break
            data = bytes(received[start + _HEADER.size : end])
            start = end
            unpacker = unfinished.get(channel)
            if unpacker is None and not goes_on:
                yield msgpack.unpackb(data, strict_map_key=False)
                continue
            if unpacker is None:
                unpacker = unfinished[channel] = msgpack.Unpacker(
                    strict_map_key=False, max_buffer_size=0, read_size=_FRAME_BYTES
                )
            message = _fed(
                unpacker, data
            )  # decodes the bytes received: all at once would hold all threads of the process
            if not goes_on:
                assert message is not None
                del unfinished[channel]
                yield message
        del received[:start]
        try:
            data = connection.recv(_RECEIVE_BYTES)
        except OSError:
            return
        if not data:
            return
        received += data


def _fed(unpacker: msgpack.Unpacker, data: bytes) -> Message | None:
    """Decode more of a message; None if it goes on."""
    unpacker.feed(data)
    try:
        message: Message = unpacker.unpack()
    except msgpack.OutOfData:
        return None
    return message
