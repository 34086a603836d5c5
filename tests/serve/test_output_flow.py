"""Large messages to a client are sent in fragments."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from websockets.frames import Opcode

from rtlang.contract.events import Event, ValueKnown
from rtlang.serve import connection
from rtlang.work.prices import has_large_value
from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.servers.wire_client import JSON, MSGPACK
from tests.support.waiting import wait_until

_OPEN = {
    "t": "open",
    "s": 1,
    "kind": "generate",
    "body": {"prompt": "a", "params": {"max_tokens": 100_000}},
    "credit": 1 << 50,
}
_TEXT = "\u00e9" * 1_500_000


def begin(raw: RawSocket, server: Serving, subprotocol: str = JSON) -> None:
    """Open a stream; both answers are read."""
    is_text = subprotocol == JSON
    raw.upgrade(subprotocol=subprotocol)
    assert raw.status() == 101
    for message in ({"t": "hello", "v": 1}, _OPEN):
        data = json.dumps(message).encode() if is_text else msgpack.packb(message)
        raw.send(Opcode.TEXT if is_text else Opcode.BINARY, data)
        raw.receive()
    server.target.wait_for(1)


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_a_large_message_comes_in_small_frames_and_what_follows_behind_it(subprotocol: str) -> None:
    with serving() as server, RawSocket(server.url) as raw:
        begin(raw, server, subprotocol)
        server.target.runs[0].advance(_TEXT)
        server.target.runs[0].advance("behind")
        frames = [raw.frame()]
        while not frames[-1][2]:
            frames.append(raw.frame())
        kind = Opcode.TEXT if subprotocol == JSON else Opcode.BINARY
        assert [opcode for opcode, _, _ in frames] == [kind] + [Opcode.CONT] * (len(frames) - 1)
        assert max(len(data) for _, data, _ in frames) <= 1 << 17
        whole = b"".join(data for _, data, _ in frames)
        read = json.loads if subprotocol == JSON else msgpack.unpackb
        assert read(whole)["d"] == _TEXT
        assert read(raw.receive()[1])["d"] == "behind"


def test_a_connection_is_closed_behind_the_message_that_is_being_sent() -> None:
    with serving() as server, RawSocket(server.url, receive_buffer=4096) as raw:
        begin(raw, server)
        server.target.runs[0].advance(_TEXT)
        _, data, is_last = raw.frame()
        raw.send(Opcode.TEXT, b"{")  # invalid
        while not is_last:
            _, more, is_last = raw.frame()
            data += more
        assert json.loads(data)["d"] == _TEXT
        assert raw.close_code() == 1007


def test_a_client_that_goes_in_the_middle_of_a_message_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        for closes in (True, False):
            with RawSocket(server.url, receive_buffer=4096) as raw:
                begin(raw, server)
                run = server.target.runs[-1]
                run.advance(_TEXT)
                raw.frame()
                if closes:
                    raw.send(Opcode.CLOSE, (1000).to_bytes(2, "big"))
            wait_until(lambda run=run: run.was_cancelled)
        wait_until(lambda: server.count("ws_connections") == 0)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_a_large_value_is_packed_on_a_thread_and_what_follows_comes_behind_it(
    subprotocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[str]] = {}
    convert = connection.event_slices

    def noted(encoding: Any, stream: int, event: Event, offset: int) -> Iterator[bytes]:
        for part in convert(encoding, stream, event, offset):
            name = "large" if has_large_value(event) else "small"
            threads.setdefault(name, set()).add(threading.current_thread().name)
            yield part

    monkeypatch.setattr(connection, "event_slices", noted)
    with serving() as server, RawSocket(server.url) as raw:
        begin(raw, server, subprotocol)
        run = server.target.runs[0]
        value = [{"a": [number, "b" * 20]} for number in range(20_000)]
        run.listener(ValueKnown(run.graph_id, 1, [1, 2]))
        run.listener(ValueKnown(run.graph_id, 1, value))
        run.advance("behind")
        read = json.loads if subprotocol == JSON else msgpack.unpackb
        found: list[Any] = []
        while len(found) < 3:
            message = read(raw.receive()[1])
            found += message if isinstance(message, list) else [message]
        assert [each.get("value", each.get("d")) for each in found] == [[1, 2], value, "behind"]
    assert len(threads["small"]) == 1, "the loop's"
    assert threads["large"].isdisjoint(threads["small"])
