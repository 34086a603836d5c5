"""Serves the pages of this process's tiers to peers, over TCP.

Pages are read from the tiers, never from the pool: a copy in a tier was compared with the epoch of its page, so it is whole, and serving
needs no step boundary and nothing of the engine thread. New pages reach the tiers soon after the step that computed them; a peer that asks
for pages while others are on their way there waits a moment for them (`settle`).

A peer asks by digest, which covers the namespace and all tokens up to the end of the page. So a page is given only to who knows both, and
nothing lists what is stored.

Each connection has a thread and memory for one frame. Connections are bounded, those that have not proved to know the secret more tightly.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rtlang.cache.tiers.digest import DIGEST_BYTES
from rtlang.cache.tiers.peers.frames import FrameStream, PeerError
from rtlang.cache.tiers.peers.handshake import SealKey, welcome
from rtlang.cache.tiers.tier import CacheTier

logger = logging.getLogger(__name__)

MAX_ASKED = 4096
"""Digests in one question."""
MAX_CONNECTIONS = 128
MAX_STRANGERS = 16
"""Connections that have not proved to know the secret."""
IDLE_S = 3600.0
"""Seconds after which a connection without a request is closed."""
_MAX_WARNINGS = 5


@dataclass(slots=True)
class ServerStats:
    """Counters of a server. Owned by it.

    Attributes:
        num_pages, num_bytes: served since the start.
        num_refused: connections without the secret, of another model, or beyond the limits.
        num_connections: peers connected now.
    """

    num_pages: int = 0
    num_bytes: int = 0
    num_refused: int = 0
    num_connections: int = 0


class PageServer:
    """Serves pages from `start` to `close`.

    Args:
        listener: bound and listening; owned by the server from now on.
        tiers: where pages are read, from the fastest to the slowest.
        identity: of the pages; see `greet`.
        settle: waits a moment until pages that are being stored are there; called on the thread of a connection.
    """

    def __init__(
        self,
        listener: socket.socket,
        tiers: Sequence[CacheTier],
        secret: bytes,
        identity: bytes,
        instance: bytes,
        settle: Callable[[], object] = lambda: None,
    ) -> None:
        self.stats = ServerStats()
        self.address: tuple[str, int] = listener.getsockname()[:2]
        self.settle = settle
        self._listener, self._tiers = listener, tuple(tiers)
        self._secret, self._identity, self._instance = secret, identity, instance
        self._lock = threading.Lock()
        self._streams: set[FrameStream] = set()
        self._num_strangers = self._num_warnings = 0
        self._is_closed = False

    def start(self) -> None:
        """Accept connections, on a thread."""
        threading.Thread(target=self._accept, name="cache-listen", daemon=True).start()

    def close(self) -> None:
        """End all connections. Idempotent."""
        with self._lock:
            self._is_closed = True
            streams = list(self._streams)
        with suppress(OSError):  # wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for stream in streams:
            stream.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._is_closed:
                    return
                logger.exception("accepting a peer of the cache failed")
                threading.Event().wait(1.0)  # out of file descriptors, most likely
                continue
            try:
                self._begin(connection)
            except (OSError, RuntimeError):  # out of file descriptors, or of threads
                logger.exception("a peer of the cache cannot be served")
                connection.close()

    def _begin(self, connection: socket.socket) -> None:
        """Serve a connection on a thread of its own, or close it if there are too many."""
        with self._lock:
            is_taken = (
                not self._is_closed and len(self._streams) < MAX_CONNECTIONS and self._num_strangers < MAX_STRANGERS
            )
            if not is_taken:
                self.stats.num_refused += 1
                connection.close()
                return
            stream = FrameStream(connection, 0)
            self._streams.add(stream)
            self._num_strangers += 1
        try:
            threading.Thread(target=self._serve, args=(stream,), name="cache-serve", daemon=True).start()
        except RuntimeError:
            stream.close()
            with self._lock:
                self._streams.discard(stream)
                self._num_strangers -= 1
            raise

    def _serve(self, stream: FrameStream) -> None:
        is_stranger = True
        try:
            try:
                key = welcome(stream, self._secret, self._identity, self._instance)
            except PeerError as error:
                self._refuse(str(error))
                return
            finally:
                with self._lock:
                    self._num_strangers -= 1
            is_stranger = False
            with self._lock:
                self.stats.num_connections += 1
            stream.max_body_bytes = MAX_ASKED * DIGEST_BYTES
            with suppress(PeerError):
                while True:
                    self._answer(stream, key)
        except Exception:
            logger.exception("serving pages of the cache failed")
        finally:
            stream.close()
            with self._lock:
                self._streams.discard(stream)
                self.stats.num_connections -= not is_stranger

    def _answer(self, stream: FrameStream, key: SealKey) -> None:
        """Answer one request."""
        fields, body = stream.receive(IDLE_S)
        number = fields.get("n")
        if len(body) % DIGEST_BYTES or not isinstance(number, int):
            raise PeerError("a request is malformed")
        digests = [bytes(body[start : start + DIGEST_BYTES]) for start in range(0, len(body), DIGEST_BYTES)]
        match fields.get("t"):
            case "ask":
                found = [self._has(digest) for digest in digests]
                if not all(found):
                    self.settle()
                    found = [is_there or self._has(digest) for is_there, digest in zip(found, digests, strict=True)]
                stream.send({"t": "has", "n": number}, bytes(found))
            case "get" if len(digests) == 1:
                page = self._read(digests[0])
                if page is None:
                    stream.send({"t": "none", "n": number})
                    return
                with self._lock:
                    self.stats.num_pages += 1
                    self.stats.num_bytes += page.nbytes
                stream.send({"t": "page", "n": number, "seal": key.seal(digests[0], page)}, page)
            case _:
                raise PeerError("a request is unknown")

    def _has(self, digest: bytes) -> bool:
        return any(tier.has(digest) for tier in self._tiers)

    def _read(self, digest: bytes) -> memoryview | None:
        for tier in self._tiers:
            page = tier.get(digest)
            if page is not None:
                return page
        return None

    def _refuse(self, reason: str) -> None:
        with self._lock:
            self.stats.num_refused += 1
            if self._is_closed:
                return
        self._num_warnings += 1
        if self._num_warnings <= _MAX_WARNINGS:
            logger.warning("a peer of the cache was refused: %s", reason)
