"""The relay: all bytes in order, and no faster than its bound."""

from __future__ import annotations

import socket
import threading
import time

from rtlang_bench.slow_link import SlowLink


def test_bytes_arrive_in_order_and_not_before_their_time() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def echo() -> None:
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(4096):
                connection.sendall(data)

    threading.Thread(target=echo, daemon=True).start()
    data = bytes(range(256)) * 400
    with SlowLink(listener.getsockname(), 1e6) as link, socket.create_connection(link.address) as connection:
        started = time.monotonic()
        connection.sendall(data)
        received = b""
        while len(received) < len(data):
            received += connection.recv(1 << 16)
        assert received == data
        assert time.monotonic() - started >= len(data) / 1e6, "one direction alone takes so long"
    listener.close()
