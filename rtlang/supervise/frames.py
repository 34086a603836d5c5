"""Messages between the server's process and that of the engine: length-prefixed arrays of maps in MessagePack, over a socket pair.

Both ends are of one installation and trust each other; messages of clients were checked before. Writing never blocks the caller: a thread
sends all messages since its last write in one frame.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgpack

_LENGTH = struct.Struct("!Q")
Message = dict[str, Any]
_BULK_ITEMS = 2  # of one frame


class FrameWriter:
    """Sends messages on a thread of its own. Thread-safe. Messages after a failure of the socket are dropped.

    Items that are put as bulk follow one after the other, but let other items pass; see `put_bulk`.

    Args:
        pack: makes a message of each item, on the writer's thread.
    """

    def __init__(self, connection: socket.socket, pack: Callable[[Any], Message] = lambda item: item) -> None:
        self._connection, self._pack = connection, pack
        self._queue: list[Any] = []
        self._bulk: deque[tuple[int, Any]] = deque()
        self._num_bulk: dict[int, int] = {}  # by owner
        self._condition = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="rtlang-frames", daemon=True)
        self._thread.start()

    def put(self, *items: Any) -> None:
        """Send items after those before."""
        with self._condition:
            self._queue.extend(items)
            self._condition.notify()

    def put_bulk(self, owner: int, items: Iterable[Any]) -> None:
        """Send the items of an owner after its items before. One alone goes with other items, unless bulk of this owner is waiting."""
        found = list(items)
        with self._condition:
            if len(found) > 1 or owner in self._num_bulk:
                self._bulk.extend((owner, item) for item in found)
                self._num_bulk[owner] = self._num_bulk.get(owner, 0) + len(found)
            else:
                self._queue.extend(found)
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
        while True:
            with self._condition:
                while not self._queue and not self._bulk and not self._is_closed:
                    self._condition.wait()
                items, self._queue = self._queue, []
                for _ in range(min(_BULK_ITEMS, len(self._bulk))):
                    owner, item = self._bulk.popleft()
                    items.append(item)
                    self._num_bulk[owner] -= 1
                    if not self._num_bulk[owner]:
                        del self._num_bulk[owner]
            if not items:
                return
            data = bytes(msgpack.packb([self._pack(item) for item in items], unicode_errors="replace"))
            try:
                self._connection.sendall(_LENGTH.pack(len(data)) + data)
            except OSError:  # the reader of the socket sees its end
                return


def read_frame(connection: socket.socket) -> list[Message] | None:
    """The messages of the next frame; None at the end of the socket."""
    head = _read(connection, _LENGTH.size)
    data = None if head is None else _read(connection, _LENGTH.unpack(head)[0])
    return None if data is None else list(msgpack.unpackb(data, strict_map_key=False))


def _read(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            piece = connection.recv(min(size - len(data), 1 << 20))
        except OSError:
            return None
        if not piece:
            return None
        data += piece
    return bytes(data)
