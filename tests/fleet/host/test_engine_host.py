"""The runtime of an engine's process: it says what is wrong with its settings, and several connections share it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.fleet.host.engine_connection import REPORT_S
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.fleet.messages.frames import FrameWriter, read_messages
from rtlang.runtime.runtime import Runtime
from tests.support.waiting import wait_until

GRAPH = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=2, ignore_eos=True))))
LONG = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=1500, ignore_eos=True))))
SETTINGS = {"num_pages": 400, "max_waiting": 1}  # the frontend admits graphs, not the engine


class Frontend:
    """The other end of one connection."""

    def __init__(self, host: EngineHost) -> None:
        self.socket, self._theirs = socket.socketpair()
        self._thread = threading.Thread(target=host.serve, args=(self._theirs,), daemon=True)
        self._thread.start()
        self.writer, self.messages = FrameWriter(self.socket), read_messages(self.socket)

    def configure(self, **settings: Any) -> dict[str, Any]:
        self.writer.put({"t": "config", "settings": settings})
        return next(self.messages)

    def open(self, number: int, graph: RequestGraph) -> None:
        plain = {"graph": graph.to_plain(), "inputs": {}, "open": False, "priority": 0, "seed": 7, "progress": False}
        self.writer.put({"t": "open", "s": number} | plain)

    def end_of(self, number: int) -> dict[str, Any]:
        return next(each for each in self.messages if each.get("s") == number and each["t"] == "end")

    def end(self) -> None:
        self.writer.flush(10.0)
        self.socket.shutdown(socket.SHUT_WR)
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.socket.close()
        self._theirs.close()


@pytest.fixture(scope="module")
def host() -> Iterator[EngineHost]:
    host = EngineHost()
    yield host
    host.close()


def num_requests(runtime: Runtime) -> int:
    snapshot = runtime.snapshot()
    assert snapshot is not None
    return snapshot.num_requests


def test_wrong_settings_are_reported_and_the_next_connection_tries_again(host: EngineHost) -> None:
    first = Frontend(host)
    message = first.configure(model="/nowhere")
    assert (message["t"], message["code"]) == ("failed", "model_load")
    assert "/nowhere" in message["message"]
    first.end()
    second = Frontend(host)
    assert second.configure(**SETTINGS)["t"] == "ready"
    second.end()


def test_a_socket_that_ends_at_once_ends_its_connection(host: EngineHost) -> None:
    Frontend(host).end()


def test_a_report_counts_graphs_as_opened_once_it_counts_their_work(host: EngineHost) -> None:
    frontend, is_busy, may_go_on = Frontend(host), threading.Event(), threading.Event()
    frontend.configure(**SETTINGS)

    def work() -> None:
        is_busy.set()
        may_go_on.wait(60)

    host.start({}, preloads=False).post(work)  # as in a long step
    assert is_busy.wait(60)
    frontend.open(1, LONG)
    frontend.open(2, LONG)
    threading.Timer(3 * REPORT_S, may_go_on.set).start()
    for message in frontend.messages:
        if message["t"] == "load":
            assert message["output"] + message["output_ahead"] > 0 or not message["opened"]
            if message["opened"] == 2:
                break
    frontend.end()


def test_connections_share_an_engine_and_end_alone(host: EngineHost) -> None:
    one, other = Frontend(host), Frontend(host)
    assert one.configure(**SETTINGS) == other.configure(**SETTINGS)
    runtime = host.start({}, preloads=False)
    one.open(1, LONG)
    wait_until(lambda: num_requests(runtime) == 1)
    other.open(1, GRAPH)  # the same number as a graph of the other connection
    assert other.end_of(1)["reason"] == "stop"
    one.end()
    wait_until(lambda: num_requests(runtime) == 0)  # cancelled: nobody reads it
    other.open(2, GRAPH)
    assert other.end_of(2)["reason"] == "stop"
    other.end()


def test_calls_take_turns_between_principals_and_dropped_ones_are_not_answered(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontend, may_end, texts = Frontend(host), threading.Event(), list[str]()
    frontend.configure(**SETTINGS)
    service = host.start({}, preloads=False).text_service
    encode = type(service).encode

    def hold(self: object, text: str, **options: Any) -> list[int]:
        texts.append(text)
        assert not text.startswith("long") or may_end.wait(60)
        return encode(service, text, **options)

    def call(number: int, text: str, name: str, price: float) -> None:
        args = [text, True, False]
        frontend.writer.put(
            {"t": "call", "q": number, "m": "encode", "a": args, "principal": {"name": name}, "price": price}
        )

    monkeypatch.setattr(type(service), "encode", hold)
    for number in range(24):
        call(number, f"long {number}", "ana", 2.0)
    call(100, "short", "ben", 0.001)
    replies = (each for each in frontend.messages if each["t"] == "reply")
    assert next(replies)["q"] == 100
    call(101, "as long", "ben", 2.0)
    assert next(replies)["q"] == 101, "ana has one of two threads for long calls"
    assert len([text for text in texts if text.startswith("long")]) == 1
    for number in range(2, 24):
        frontend.writer.put({"t": "drop", "q": number})
    call(102, "after", "ben", 0.001)
    assert next(replies)["q"] == 102
    may_end.set()
    assert {next(replies)["q"] for _ in range(2)} == {0, 1}
    assert len(texts) == 5
    frontend.end()
