"""One peer: the connection to its page server, and when it is tried again after a failure.

A thread receives the answers, checks their seals and completes the futures of the requests; so several requests may be under way at once. A
peer that fails in any way is disconnected: all its requests end without an answer, and it rests, twice as long each time until it has
answered again.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any

from rtlang.cache.tiers.peers.frames import FrameStream, PeerError
from rtlang.cache.tiers.peers.handshake import OtherModelError, SealKey, greet
from rtlang.cache.tiers.peers.page_server import MAX_ASKED

logger = logging.getLogger(__name__)

CONNECT_S = 2.0
FIRST_REST_S = 1.0
MAX_REST_S = 60.0
IDLE_S = 1e6
"""Seconds that an answer may be waited for by the thread that receives; requests have limits of their own."""


class Peer:
    """The client of one page server. Thread-safe.

    Args:
        address: (host, port), resolved.
        secret, identity, instance: see `greet`.
        sizes: bytes of every page, and of every state of recurrent layers if the model has them.
        clock: seconds, monotonic.
        on_bad: called when a page had a wrong seal or size.
        on_change: called after it was connected or disconnected.

    Attributes:
        instance: the name of the process at the other end, while connected.
        next_try: the time of `clock` before which it rests.
    """

    def __init__(
        self,
        address: tuple[str, int],
        secret: bytes,
        identity: bytes,
        instance: bytes,
        sizes: Collection[int],
        clock: Callable[[], float],
        on_bad: Callable[[], None] = lambda: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.address = address
        self.instance: bytes | None = None
        self.next_try = 0.0
        self._secret, self._identity, self._own = secret, identity, instance
        self._sizes, self._clock = sizes, clock
        self._on_bad, self._on_change = on_bad, on_change
        self._lock = threading.Lock()
        self._stream: FrameStream | None = None
        self._key = SealKey(b"")
        self._next_number = 0
        self._waiting: dict[int, tuple[bytes | None, Future[Any]]] = {}  # by number: the digest, if a page is awaited
        self._rest_s = FIRST_REST_S
        self._reported = ""

    def __repr__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def is_connected(self) -> bool:
        """Whether it can be asked now."""
        return self._stream is not None

    def connect(self) -> bytes | None:
        """Connect, unless connected; takes CONNECT_S and the time of the handshake at most. A failure is logged and followed by a rest.

        Returns:
            The instance at the other end; None if the peer is not connected.
        """
        if self.is_connected:
            return self.instance
        stream: FrameStream | None = None
        try:
            stream = FrameStream(socket.create_connection(self.address, CONNECT_S), 0)
            key, instance = greet(stream, self._secret, self._identity, self._own)
        except (OSError, PeerError) as error:
            if stream is not None:
                stream.close()
            if isinstance(error, OtherModelError):
                self._rest_s = MAX_REST_S
            self._rest(str(error))
            return None
        stream.max_body_bytes = max([*self._sizes, MAX_ASKED])
        with self._lock:
            self._stream, self._key, self.instance = stream, key, instance
        self._on_change()
        self._reported = ""
        logger.info("connected to the cache of the peer %s", self)
        threading.Thread(target=self._receive, args=(stream, key), name="cache-peer", daemon=True).start()
        return instance

    def ask(self, digests: Sequence[bytes]) -> Future[bytes | None]:
        """Which of at most MAX_ASKED pages it has: a byte for each, not 0 if it has it; None if it does not answer."""
        return self._request("ask", b"".join(digests), None)

    def get(self, digest: bytes) -> Future[memoryview | None]:
        """The content of a page; None if it has not got it or does not answer."""
        return self._request("get", digest, digest)

    def fail(self, reason: str) -> None:
        """Disconnect and rest; all requests end without an answer."""
        with self._lock:
            stream = self._stream
        if stream is not None:
            self._end(stream, reason)

    def close(self, rest_s: float = 0.0) -> None:
        """Disconnect, without a report; it may be connected again after a rest. Idempotent."""
        self.next_try = self._clock() + rest_s
        with self._lock:
            stream = self._stream
        if stream is not None:
            self._drop(stream)

    def _request(self, kind: str, body: bytes, digest: bytes | None) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            stream = self._stream
            if stream is None:
                future.set_result(None)
                return future
            number = self._next_number
            self._next_number += 1
            self._waiting[number] = digest, future
        try:
            stream.send({"t": kind, "n": number}, body, timeout_s=CONNECT_S)
        except PeerError as error:
            self._end(stream, str(error))
        return future

    def _receive(self, stream: FrameStream, key: SealKey) -> None:
        try:
            while True:
                self._take(stream, key, *stream.receive(IDLE_S))
        except PeerError as error:
            self._end(stream, str(error))
        except Exception as error:
            logger.exception("receiving pages of the peer %s failed", self)
            self._end(stream, str(error))

    def _take(self, stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
        """Complete the request that a frame answers."""
        number = fields.get("n")
        if not isinstance(number, int):
            raise PeerError("an answer has no number")
        with self._lock:
            digest, future = self._waiting.pop(number, (None, None))
        if future is None:
            raise PeerError("it answered what nobody asked")
        kind, problem = fields.get("t"), None
        if digest is not None and kind == "page":
            if body.nbytes not in self._sizes or not key.is_sealed(digest, body, fields.get("seal")):
                problem = "a page was damaged"
                self._on_bad()
        elif kind != ("has" if digest is None else "none"):
            problem = f"it answered with the frame {str(kind)[:20]!r}"
        if problem is not None:
            self._end(stream, problem)
        else:
            self._rest_s = FIRST_REST_S
        future.set_result(body if problem is None and kind != "none" else None)

    def _end(self, stream: FrameStream, reason: str) -> None:
        if self._drop(stream):
            self._rest(reason)

    def _drop(self, stream: FrameStream) -> bool:
        """Close a stream and give up its requests; False if that was done before."""
        with self._lock:
            if self._stream is not stream:
                return False
            self._stream = self.instance = None
            waiting, self._waiting = self._waiting, {}
        stream.close()
        self._on_change()
        for _, future in waiting.values():
            future.set_result(None)
        return True

    def _rest(self, reason: str) -> None:
        self.next_try = self._clock() + self._rest_s
        if reason != self._reported:
            logger.warning("the cache of the peer %s is not used for %.0f s: %s", self, self._rest_s, reason)
            self._reported = reason
        self._rest_s = min(2 * self._rest_s, MAX_REST_S)
