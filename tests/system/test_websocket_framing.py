"""Handshakes and frames over real sockets: who is let in, and how each broken one ends."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.servers.wire_client import WireClient


@pytest.mark.parametrize("subprotocol", [None, "rtlang.v2.msgpack", "chat"])
def test_without_a_known_subprotocol_the_connection_is_refused(subprotocol: str | None) -> None:
    headers = {} if subprotocol is None else {"Sec-WebSocket-Protocol": subprotocol}
    with serving() as server, WireClient(server.url, None, headers=headers) as client:
        assert client.close_code()[0] == 4406


def test_a_key_is_taken_from_the_header_or_from_hello() -> None:
    with serving(api_key="secret") as server:
        with WireClient(server.url, headers={"Authorization": "Bearer secret"}) as client:
            assert client.greet()["t"] == "welcome"
        with WireClient(server.url) as client:
            assert client.greet(auth="secret")["t"] == "welcome"


@pytest.mark.parametrize(
    ("header", "auth"), [("Bearer wrong", None), (None, "wrong"), (None, None), ("Bearer", "secret")]
)
def test_a_wrong_key_is_refused(header: str | None, auth: str | None) -> None:
    with serving(api_key="secret") as server:
        headers = {} if header is None else {"Authorization": header}
        with WireClient(server.url, headers=headers) as client:
            with contextlib.suppress(ConnectionClosed):
                client.send(t="hello", v=1, auth=auth)
            code, messages = client.close_code()
        assert code == 4401
        assert [message["fatal"] for message in messages] == [True]
        assert "secret" not in str(messages)


def test_a_foreign_page_is_refused_and_a_listed_one_is_not() -> None:
    with serving(allowed_origins=("https://app.example",)) as server:
        for origin in ("https://evil.example", "null"):
            with WireClient(server.url, headers={"Origin": origin}) as client:
                assert client.close_code()[0] == 4403
        for origin in ("https://app.example", "http://localhost:3000"):
            with WireClient(server.url, headers={"Origin": origin}) as client:
                assert client.greet()["t"] == "welcome"


@pytest.mark.parametrize(
    ("path", "host", "status"), [("/v1/other", None, 404), ("/", None, 404), ("/v1/stream", "rebound.example", 403)]
)
def test_another_path_or_host_name_has_no_socket(path: str, host: str | None, status: int) -> None:
    with serving() as server, RawSocket(server.url) as raw:
        raw.upgrade(path=path, host=host)
        assert raw.status() == status


def test_too_many_connections_are_refused() -> None:
    with serving(max_connections=2) as server, WireClient(server.url) as one, WireClient(server.url) as two:
        assert one.greet()["t"] == two.greet()["t"] == "welcome"
        with WireClient(server.url) as three:
            assert three.close_code()[0] == 4429
        assert server.count("ws_connections") >= 2


def test_a_client_that_never_says_hello_is_closed() -> None:
    with serving(hello_timeout_s=0.05) as server, WireClient(server.url) as client:
        code, messages = client.close_code()
        assert (code, [message["fatal"] for message in messages]) == (4408, [True])


def test_a_client_that_said_hello_may_stay_silent() -> None:
    with serving(hello_timeout_s=0.05) as server, WireClient(server.url) as client:
        client.greet()
        with WireClient(server.url) as other:
            assert other.close_code()[0] == 4408  # so the time is over for both
        client.send(t="ping", n=1)
        assert client.receive()["t"] == "pong"


@pytest.fixture(scope="module")
def shared() -> Iterator[Serving]:
    with serving(max_frame_bytes=10_000) as server:
        yield server


def test_a_message_may_come_in_fragments(shared: Serving) -> None:
    with RawSocket(shared.url) as raw:
        raw.greet()
        raw.send(Opcode.TEXT, b'{"t": "pi', fin=False)
        raw.send(Opcode.PING, b"between")
        raw.send(Opcode.CONT, b"", fin=False)
        raw.send(Opcode.CONT, b'ng", "n": 7}')
        assert raw.receive() == (Opcode.PONG, b"between")
        assert json.loads(raw.receive()[1]) == {"t": "pong", "n": 7}


FRAMES: dict[str, tuple[list[bytes], int]] = {
    "bad utf-8": ([Frame(Opcode.TEXT, b"\xff\xfe").serialize(mask=True)], 1007),
    "not json": ([Frame(Opcode.TEXT, b"{").serialize(mask=True)], 1007),
    "binary under json": ([Frame(Opcode.BINARY, b"\x80").serialize(mask=True)], 1002),
    "too large": ([Frame(Opcode.TEXT, b" " * 10_001).serialize(mask=True)], 1009),
    "too large in pieces": (
        [Frame(opcode, b" " * 6_000, False).serialize(mask=True) for opcode in (Opcode.TEXT, Opcode.CONT)],
        1009,
    ),
    "announced too large": ([b"\x81\xff" + (1 << 62).to_bytes(8, "big") + b"\0\0\0\0"], 1009),
    "endless fragments": (
        [Frame(Opcode.TEXT, b"", False).serialize(mask=True)]
        + [Frame(Opcode.CONT, b"", False).serialize(mask=True)] * 2_000,
        1002,
    ),
    "not masked": ([Frame(Opcode.TEXT, b"{}").serialize(mask=False)], 1002),
    "reserved bits": ([b"\xf1\x80\0\0\0\0"], 1002),
    "compressed": ([b"\xc1\x80\0\0\0\0"], 1002),
    "reserved opcode": ([b"\x83\x80\0\0\0\0"], 1002),
    "lone continuation": ([Frame(Opcode.CONT, b"{}").serialize(mask=True)], 1002),
    "text within text": ([Frame(Opcode.TEXT, b"{", False).serialize(mask=True)] * 2, 1002),
    "long control frame": ([b"\x89\xfe\x00\xff\0\0\0\0" + b"x" * 255], 1002),
    "bad close code": ([Frame(Opcode.CLOSE, b"\x00\x01").serialize(mask=True)], 1002),
    "array": ([Frame(Opcode.TEXT, b"[]").serialize(mask=True)], 1002),
    "unmasked garbage": ([b"\x00" * 64], 1002),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_broken_frame_ends_its_connection_with_the_right_code(shared: Serving, name: str) -> None:
    data, code = FRAMES[name]
    with WireClient(shared.url) as bystander, RawSocket(shared.url) as raw:
        bystander.greet()
        raw.greet()
        with contextlib.suppress(ConnectionError):
            raw.socket.sendall(b"".join(data))
        assert raw.close_code() == code
        bystander.send(t="ping", n=1)
        assert bystander.receive()["t"] == "pong"


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ("X-Large: " + "y" * 9_000 + "\r\n", 431),
        ("".join(f"X-{number}: y\r\n" for number in range(300)), 431),
        ("Sec-WebSocket-Version: 8\r\n", 400),
        ("X-Huge: " + "y" * 60_000 + "\r\n", 431),
    ],
    ids=["long header", "many headers", "two versions", "huge header"],
)
def test_a_broken_handshake_is_answered(shared: Serving, extra: str, status: int) -> None:
    with RawSocket(shared.url) as raw:
        with contextlib.suppress(ConnectionError):
            raw.upgrade(extra=extra)
        assert raw.status() == status


def test_a_normal_close_is_answered(shared: Serving) -> None:
    with RawSocket(shared.url) as raw:
        raw.greet()
        raw.send(Opcode.CLOSE, (1000).to_bytes(2, "big"))
        assert raw.close_code() == 1000
        assert raw.file.read() == b""


def test_a_refused_handshake_is_an_http_status() -> None:
    with serving() as server, pytest.raises(InvalidStatus) as caught, WireClient(server.url, path="/v1/other"):
        pass
    assert caught.value.response.status_code == 404
