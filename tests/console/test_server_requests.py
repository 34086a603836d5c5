"""HTTP requests of commands: addresses, errors of servers, and answers that are none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from rtlang.console.server_requests import ServerAddress, ServerError
from rtlang.console.source import CommandError
from tests.support.servers.serving import serving


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("ws://h:1", "http://h:1"),
        ("wss://h", "https://h"),
        ("http://h:1/", "http://h:1"),
        ("https://h/mounted/v1/stream", "https://h/mounted"),
    ],
)
def test_addresses_of_clients_are_taken(given: str, found: str) -> None:
    assert ServerAddress(given).url == found


@pytest.mark.parametrize(
    "given",
    ["h:1", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#x", "http://h:99999", "http://[", ""],
)
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(CommandError, match=r"expected ws://host:port"):
        ServerAddress(given)


def test_refusals_have_the_message_of_the_server_and_the_status() -> None:
    with serving(api_key="secret") as server:
        assert ServerAddress(server.url).get("/health") == {"status": "alive"}
        assert ServerAddress(server.url, "secret").get("/version")["protocol"] == 1
        with pytest.raises(ServerError, match="the API key is missing or wrong") as caught:
            ServerAddress(server.url, "wrong").get("/version")
        assert caught.value.status == 401
        with pytest.raises(ServerError, match="HTTP status 404"):
            ServerAddress(server.url, "secret").get("/nowhere")


def answering(data: bytes) -> tuple[str, Callable[[], None]]:
    """The URL of a server that sends these bytes to one connection, and a function that ends it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()

    def end() -> None:
        thread.join(20)
        listener.close()

    return f"http://127.0.0.1:{listener.getsockname()[1]}", end


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n<html>", "not JSON"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000, "not JSON"),
        (b"HTTP/1.0 502 Bad Gateway\r\n\r\n<html>", "HTTP status 502"),
        (b"HTTP/1.0 400 Bad\r\n\r\n[3]", "HTTP status 400"),
        (b"SSH-2.0\r\n", "not reachable"),
        (b"", "not reachable"),
    ],
)
def test_answers_of_other_servers_are_errors(data: bytes, told: str) -> None:
    url, end = answering(data)
    with pytest.raises(ServerError, match=told):
        ServerAddress(url).get("/version", timeout_s=10)
    end()
