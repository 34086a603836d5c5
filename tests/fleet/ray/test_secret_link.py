"""Only parties that know the secret get a connection; the others are closed at once and hold nobody up."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.fleet.ray import secret_link
from rtlang.fleet.ray.secret_link import SECRET_BYTES, SecretListener, connect_with_secret

SECRET = bytes(range(SECRET_BYTES))


def echo(connection: socket.socket) -> None:
    while data := connection.recv(100):
        connection.sendall(data)


@pytest.fixture
def listener() -> Iterator[SecretListener]:
    listener = SecretListener("127.0.0.1", SECRET, echo)
    yield listener
    listener.close()


def test_those_who_know_the_secret_are_connected(listener: SecretListener) -> None:
    with connect_with_secret(listener.address, SECRET) as one, connect_with_secret(listener.address, SECRET) as two:
        two.sendall(b"two")
        one.sendall(b"one")
        assert (one.recv(10), two.recv(10)) == (b"one", b"two")


@pytest.mark.parametrize("wrong", [b"", SECRET[:-1], SECRET[:-1] + b"x", SECRET + b"\0x"])
def test_a_wrong_secret_is_refused(listener: SecretListener, wrong: bytes) -> None:
    with pytest.raises(ConnectionError):
        connect_with_secret(listener.address, wrong)


def test_what_one_connection_sent_is_of_no_use_for_another(listener: SecretListener) -> None:
    sent: list[bytes] = []

    def overhear(at: socket.socket) -> None:
        ear, _ = at.accept()
        with ear, socket.create_connection(listener.address) as real:
            ear.sendall(real.recv(32))
            sent.append(ear.recv(64, socket.MSG_WAITALL))
            real.sendall(sent[0])
            ear.sendall(real.recv(32))

    with socket.create_server(("127.0.0.1", 0)) as between:
        thread = threading.Thread(target=overhear, args=(between,))
        thread.start()
        connect_with_secret(between.getsockname(), SECRET).close()
        thread.join(20)
    with socket.create_connection(listener.address) as thief:
        thief.recv(32)
        thief.sendall(sent[0])
        assert thief.recv(32) == b""


def test_the_listener_must_know_the_secret_as_well() -> None:
    def pretend(at: socket.socket) -> None:
        with at.accept()[0] as connection:
            connection.sendall(os.urandom(32))
            connection.recv(64)
            connection.sendall(os.urandom(32))

    with socket.create_server(("127.0.0.1", 0)) as at:
        thread = threading.Thread(target=pretend, args=(at,))
        thread.start()
        with pytest.raises(ConnectionError, match="does not know the secret"):
            connect_with_secret(at.getsockname(), SECRET)
        thread.join(20)


def test_a_silent_connection_is_closed_and_delays_nobody(
    listener: SecretListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_link, "HANDSHAKE_TIMEOUT_S", 0.1)
    with socket.create_connection(listener.address) as silent:
        connect_with_secret(listener.address, SECRET).close()
        silent.recv(32)
        silent.settimeout(20)
        assert silent.recv(1) == b""


@pytest.mark.parametrize("limited", ["descriptors", "threads"])
def test_a_shortage_does_not_end_the_listener(limited: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_link, "MAX_HANDSHAKES", 1)  # a place that is not given back is missed
    monkeypatch.setattr(secret_link, "RETRY_S", 0.01)
    real_accept, real_start = socket.socket.accept, threading.Thread.start
    num_failures = 3

    def fails() -> bool:
        nonlocal num_failures
        num_failures -= 1
        return num_failures >= 0

    def accept(self: socket.socket) -> Any:
        if limited == "descriptors" and fails():
            raise OSError(errno.EMFILE, "Too many open files")
        return real_accept(self)

    def start(self: threading.Thread) -> None:
        if limited == "threads" and self.name == "rtlang-connection" and fails():
            raise RuntimeError("can't start new thread")
        real_start(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    monkeypatch.setattr(threading.Thread, "start", start)
    listener = SecretListener("127.0.0.1", SECRET, echo)
    try:
        for _ in range(3 if limited == "threads" else 0):
            with pytest.raises(ConnectionError):
                connect_with_secret(listener.address, SECRET)
        with connect_with_secret(listener.address, SECRET) as connection:
            connection.sendall(b"one")
            assert connection.recv(10) == b"one"
        assert num_failures < 0
    finally:
        listener.close()
