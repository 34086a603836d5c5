"""TCP connections between two parties that share a secret, which they got from somewhere else.

Each side proves that it knows the secret by a digest over two fresh random numbers, so that the secret itself never travels and an
earlier exchange is of no use. A connection that fails the check, or takes longer than the timeout, is closed before anything else is
read from it. What follows is neither encrypted nor signed: the link is for networks whose machines are trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

SECRET_BYTES = 32
HANDSHAKE_TIMEOUT_S = 5.0
MAX_HANDSHAKES = 64
"""Connections whose check is under way; others wait in the backlog of the socket."""
RETRY_S = 1.0
"""Seconds after a connection could not be accepted."""
_BYTES = 32  # of a random number and of a digest
KEEPALIVE_S = 10


class SecretListener:
    """Accepts connections on a thread and hands over those that know the secret, each on a thread of its own.

    Args:
        host: the address of this machine to listen at.
        secret: SECRET_BYTES bytes.
        serve: called with each accepted connection, which is closed when it returns.

    Attributes:
        address: host and port.
    """

    def __init__(self, host: str, secret: bytes, serve: Callable[[socket.socket], None]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._secret, self._serve = secret, serve
        self._socket = socket.create_server((host, 0), family=family)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._places = threading.BoundedSemaphore(MAX_HANDSHAKES)
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtlang-accept", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no more connections; those that were accepted go on."""
        self._is_closing.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(HANDSHAKE_TIMEOUT_S)

    def _run(self) -> None:
        while not self._is_closing.is_set():
            self._places.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError:
                self._places.release()
                if not self._is_closing.is_set():  # no file descriptor is left, most likely
                    logger.exception("accepting a connection failed")
                    self._is_closing.wait(RETRY_S)
                continue
            try:
                threading.Thread(target=self._take, args=(connection,), name="rtlang-connection", daemon=True).start()
            except RuntimeError:
                self._places.release()
                connection.close()
                logger.exception("there is no thread for a connection, which was closed")

    def _take(self, connection: socket.socket) -> None:
        with connection:
            try:
                is_known = _check_client(connection, self._secret)
            except OSError:
                is_known = False
            finally:
                self._places.release()
            if not is_known:
                logger.warning("a connection that does not know the secret was closed")
                return
            try:
                self._serve(connection)
            except Exception:
                logger.exception("a connection failed")


def connect_with_secret(
    address: tuple[str, int], secret: bytes, timeout_s: float = HANDSHAKE_TIMEOUT_S
) -> socket.socket:
    """Connect to a SecretListener.

    Raises:
        ConnectionError: the other end does not know the secret, or refuses ours.
        OSError: it cannot be reached in time.
    """
    connection = socket.create_connection(address, timeout_s)
    try:
        deadline = time.monotonic() + timeout_s
        _set_options(connection)
        theirs, ours = _receive(connection, deadline), secrets.token_bytes(_BYTES)
        connection.sendall(ours + _digest(secret, b"client", theirs, ours))
        if not hmac.compare_digest(_receive(connection, deadline), _digest(secret, b"server", theirs, ours)):
            raise ConnectionError("the other end does not know the secret")
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_client(connection: socket.socket, secret: bytes) -> bool:
    """Exchange random numbers and digests; returns whether the other end knows the secret."""
    deadline = time.monotonic() + HANDSHAKE_TIMEOUT_S
    connection.settimeout(HANDSHAKE_TIMEOUT_S)
    _set_options(connection)
    ours = secrets.token_bytes(_BYTES)
    connection.sendall(ours)
    theirs = _receive(connection, deadline)
    if not hmac.compare_digest(_receive(connection, deadline), _digest(secret, b"client", ours, theirs)):
        return False
    connection.sendall(_digest(secret, b"server", ours, theirs))
    connection.settimeout(None)
    return True


def _digest(secret: bytes, role: bytes, of_server: bytes, of_client: bytes) -> bytes:
    return hmac.new(secret, role + of_server + of_client, hashlib.sha256).digest()


def _receive(connection: socket.socket, deadline: float) -> bytes:
    """Read _BYTES bytes; a peer that sends them one by one does not get more time."""
    received = b""
    while len(received) < _BYTES:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        data = connection.recv(_BYTES - len(received))
        if not data:
            raise ConnectionError("the connection was closed during the check of the secret")
        received += data
    return received


def _set_options(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_S)
