"""A TCP relay between a client and a server, which a test can cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class CutProxy:
    """Attributes: url; is_open, whether new connections are let through; num_connections so far.

    With `swallows`, a connection carries the greeting alone: of what the server sends, the first kilobyte.
    """

    def __init__(self, url: str) -> None:
        self.lead_to(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}"
        self.is_open, self.swallows, self.num_connections = True, False, 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._ends: list[socket.socket] = []
        self._relays: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def lead_to(self, url: str) -> None:
        """The server of connections from now on."""
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._server = parts.hostname, parts.port

    def cut(self) -> None:
        """Break every connection, in the midst of whatever it carries."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End for good."""
        self.is_open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self.cut()
        for relay in self._relays:
            relay.join()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_open:
                near.close()
                continue
            far = socket.create_connection(self._server)
            self.num_connections += 1
            self._pairs.append((near, far))
            self._ends += [near, far]
            for source, target in ((near, far), (far, near)):
                limit = 1024 if self.swallows and source is far else None
                relay = threading.Thread(target=_relay, args=(source, target, limit), daemon=True)
                relay.start()
                self._relays.append(relay)


def _relay(source: socket.socket, target: socket.socket, limit: int | None) -> None:
    left = 1 << 62 if limit is None else limit
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data[:left])
            left = max(0, left - len(data))
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def cut_proxy(url: str) -> Iterator[CutProxy]:
    proxy = CutProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
