"""What takes long to read does not hold the event loop: many messages take several turns, and a large one is read on a thread."""

from __future__ import annotations

import json
import threading

import pytest
from websockets.frames import Frame, Opcode

from rtlang.serve.client_messages import ReadMessage
from rtlang.serve.connection import Connection
from rtlang.serve.websocket import StreamSocket
from tests.support.servers.serving import RawSocket, serving
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until


def test_many_messages_of_one_read_take_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    num_turns = 0
    take_later = StreamSocket._take_later

    def count(self: StreamSocket) -> None:
        nonlocal num_turns
        num_turns += 1
        take_later(self)

    monkeypatch.setattr(StreamSocket, "_take_later", count)
    with serving() as server, RawSocket(server.url) as raw:
        raw.greet()
        pings = [
            Frame(Opcode.TEXT, b'{"t": "ping", "n": %d}' % number, True).serialize(mask=True) for number in range(200)
        ]
        bye = Frame(Opcode.TEXT, b'{"t": "bye"}', True).serialize(mask=True)
        raw.socket.sendall(b"".join([*pings, bye]))
        assert [json.loads(raw.receive()[1])["n"] for _ in range(200)] == list(range(200))
        assert raw.close_code() == 1000
    assert num_turns >= 200 // 32


def test_a_large_message_is_read_on_a_thread_and_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[tuple[bool, str]] = []
    read = Connection.read

    def note(self: Connection, data: bytes, *, is_text: bool) -> ReadMessage:
        readers.append((len(data) > 16 << 10, threading.current_thread().name))
        return read(self, data, is_text=is_text)

    monkeypatch.setattr(Connection, "read", note)
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        for stream in (1, 2):
            body = {"prompt": "x" * 20_000 if stream == 1 else "x"}
            client.send(t="open", s=stream, kind="generate", body=body)
            client.send(t="ping", n=stream)
        answers = [client.receive() for _ in range(4)]
        assert [(each["t"], each.get("s", each.get("n"))) for each in answers] == [
            ("ack", 1),
            ("pong", 1),
            ("ack", 2),
            ("pong", 2),
        ]
        [large], small = [{name for is_large, name in readers if is_large is kind} for kind in (True, False)]
        assert len(small) == 1
        assert large not in small
        server.target.finish()
        assert client.receive_end(1)[-1]["t"] == "end"


def test_a_client_that_goes_while_its_message_is_read_leaves_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    read = Connection.read

    def hold(self: Connection, data: bytes, *, is_text: bool) -> ReadMessage:
        if len(data) > 16 << 10:
            begun.set()
            assert may_end.wait(20)
        return read(self, data, is_text=is_text)

    monkeypatch.setattr(Connection, "read", hold)
    with serving() as server, WireClient(server.url) as other:
        other.greet()
        with RawSocket(server.url) as raw:
            raw.greet()
            message = {"t": "open", "s": 1, "kind": "generate", "body": {"prompt": "x" * 20_000}}
            raw.send(Opcode.TEXT, json.dumps(message).encode())
            assert begun.wait(20)
            other.send(t="ping", n=1)
            assert other.receive() == {"t": "pong", "n": 1}  # the loop goes on meanwhile
        may_end.set()
        server.target.wait_for(1)
        wait_until(lambda: server.target.runs[0].was_cancelled)
        wait_until(lambda: server.count("ws_connections") == 1)


def test_the_first_message_is_small_and_is_never_read_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    read = Connection.read

    def note(self: Connection, data: bytes, *, is_text: bool) -> ReadMessage:
        lengths.append(len(data))
        return read(self, data, is_text=is_text)

    monkeypatch.setattr(Connection, "read", note)
    with serving() as server:
        for size, code in ((4096, 1000), (4097, 4400), (1_000_000, 4400)):
            with RawSocket(server.url) as raw:
                raw.upgrade()
                assert raw.status() == 101
                hello = json.dumps({"t": "hello", "v": 1, "client": "x"}).encode()
                raw.send(Opcode.TEXT, hello + b" " * (size - len(hello)))
                if code == 1000:
                    assert json.loads(raw.receive()[1])["t"] == "welcome"
                    raw.send(Opcode.TEXT, b'{"t": "bye"}')
                else:
                    assert json.loads(raw.receive()[1])["fatal"]
                assert raw.close_code() == code
    assert max(lengths) == 4096
