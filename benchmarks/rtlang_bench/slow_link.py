"""A relay on loopback that carries a bounded number of bytes per second, to measure what a slower network would give."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType

_CHUNK_BYTES = 64 << 10


class SlowLink:
    """Relays connections to `target` while it is open (`with`).

    Args:
        target: (host, port).
        bytes_per_s: in each direction; None for no bound. May be changed at any time.

    Attributes:
        address: (host, port) to connect to.
    """

    def __init__(self, target: tuple[str, int], bytes_per_s: float | None = None) -> None:
        self.bytes_per_s = bytes_per_s
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.address: tuple[str, int] = self._listener.getsockname()[:2]

    def __enter__(self) -> SlowLink:
        threading.Thread(target=self._accept, name="slow-link", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._relay, args=(source, sink), name="slow-link", daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        free_at = 0.0  # the time at which the link has carried all bytes so far
        with suppress(OSError):
            while num_bytes := source.recv_into(buffer):
                if self.bytes_per_s is not None:
                    free_at = max(free_at, time.monotonic()) + num_bytes / self.bytes_per_s
                    time.sleep(max(0.0, free_at - time.monotonic()))
                sink.sendall(buffer[:num_bytes])
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
