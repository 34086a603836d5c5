"""How requests of a case end."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from rtlang_bench.worst_cases import sender
from rtlang_bench.worst_cases.draws import Draws
from rtlang_bench.worst_cases.frame_cases import open_program
from rtlang_bench.worst_cases.graph_cases import GraphDraft, graph_body
from rtlang_bench.worst_cases.requests import Case, Frames, HttpRequest
from rtlang_bench.worst_cases.route_cases import post
from rtlang_bench.worst_cases.sender import Ending, ending_of, send_case


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ScriptedRuntime(default="ab", checks=False) as target, running_server(target, ServeConfig(port=0)) as found:
        yield found


def calls(count: int) -> GraphDraft:
    draft = GraphDraft(Draws(Random(0)))
    for number in range(count):
        draft.add("call", function="f", args=[{"value": number}], name=f"c{number}")
    return draft


def ends(url: str, *requests: HttpRequest | Frames) -> list[Ending]:
    return send_case(url, "key", Case(0, "node", "call", requests))


def test_answers_over_http(url: str) -> None:
    asked = HttpRequest("GET", "/health")
    assert ends(url, asked, asked) == [Ending("value")] * 2
    assert ends(url, HttpRequest("GET", "/nothing")) == [Ending("error not_found (404)")]
    assert ends(url, post("/v1/programs", {"graph": 1})) == [Ending("error graph (400)")]
    body = graph_body(calls(2)) | {"deadline_ms": 20_000}
    actions = [("resolve", json.dumps({"n": number, "value": 1}).encode()) for number in range(2)]
    assert ends(url, post("/v1/programs", body, actions=tuple(actions))) == [Ending("value")]
    assert ends(url, post("/v1/programs", body | {"deadline_ms": 1})) == [Ending("error deadline")]
    assert ends(url, post("/v1/programs", body, leaves_after=1)) == [Ending("left")]
    cut = HttpRequest("POST", "/tokenize", b'{"prompt', declared=100)
    assert not ends(url, cut)[0].is_wrong


@pytest.mark.parametrize("subprotocol", ["rtlang.v1.json", "rtlang.v1.msgpack"])
def test_conversations(url: str, subprotocol: str) -> None:
    opened = open_program(1, calls(3))

    def end(*messages: Any, **fields: Any) -> Ending:
        return ends(url, Frames(subprotocol, messages, **fields))[0]

    assert end(opened, reply=[1, 2]) == Ending("value")
    assert end(opened, rejects=True) == Ending("error call")
    assert end(opened, leaves=True) == Ending("left")
    assert end({"t": "ping", "n": 1}) == Ending("value")
    assert end({"t": "what"}) == Ending("error protocol")
    assert end(opened, {"t": "bye"}) == Ending("closed 1000")
    assert end(b"\xc1" if subprotocol.endswith("msgpack") else b"{") in (
        Ending("error protocol"),
        Ending("closed 1007"),
    )


@contextmanager
def answering(data: bytes | None) -> Iterator[str]:
    """A server that answers every connection with these bytes and closes it; None for no answer, ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65_536)
                if data is None:
                    peer.recv(1)  # until the client leaves
                else:
                    peer.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10.0)


def test_ends_that_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LIMIT_S", 0.3)
    asked = HttpRequest("GET", "/health")
    for data, text in (
        (None, "no answer for 0 s"),
        (b"", "closed without an answer"),
        (b"HTTP/1.1 500 x\r\n\r\nsorry", "status 500 without a code"),
        (b"SSH-2.0\r\n", "not HTTP: b'SSH-2.0'"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {", "the stream broke off"),
    ):
        with answering(data) as url:
            assert ends(url, asked) == [Ending(text, True)]
    with answering(b"") as url:
        assert ends(url, Frames("rtlang.v1.json", ()))[0].is_wrong


def test_codes_that_blame_the_server_are_wrong() -> None:
    head = b"HTTP/1.1 503 x\r\ncontent-type: application/json\r\n\r\n"
    assert ending_of(head, b'{"error": {"code": "engine_dead"}}') == Ending("error engine_dead (503)", True)
    assert ending_of(head, b'{"error": {"code": "overload"}}') == Ending("error overload (503)")
    stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    end = b'event: end\ndata: {"t":"end","reason":"error","code":"fault","message":"x"}\n\n'
    assert ending_of(stream + end, end) == Ending("error fault", True)
    done = b'event: end\ndata: {"t":"end","reason":"stop","values":{"code":1}}\n\n'
    assert ending_of(stream + done, done) == Ending("value")
