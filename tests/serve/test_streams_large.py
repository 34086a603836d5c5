"""A large graph is submitted on a thread: its place among the messages, its events and its errors are those of a small one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.errors import GraphError, OverloadError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text, nodes_to_plain
from tests.support.programs.scripted_target import ScriptedRun, ScriptedTarget
from tests.support.servers.serving import serving
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

TEXTS = tuple(Text(number, 0, (f"part {number} " * 3,)) for number in range(2, 600))
GRAPH = RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams(max_tokens=2)), *TEXTS)).to_plain()


class Submits:
    """Holds each submit until `may_end`; notes its threads."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.steps_at_once = False


@pytest.fixture
def submits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Submits]:
    found = Submits()
    submit = ScriptedTarget.submit

    def hold(self: ScriptedTarget, graph: RequestGraph, *args: Any, **options: Any) -> ScriptedRun:
        found.threads.append(threading.current_thread().name)
        found.begun.set()
        assert len(graph.nodes) < 100 or found.may_end.wait(20)
        run = submit(self, graph, *args, **options)
        if found.steps_at_once:
            self.finish()  # before the server knows that the graph is accepted
        return run

    monkeypatch.setattr(ScriptedTarget, "submit", hold)
    yield found
    found.may_end.set()


def open_large(client: WireClient, stream: int = 1, *, is_open: bool = True, **more: Any) -> None:
    client.send(t="open", s=stream, kind="program", body={"graph": GRAPH, "open": is_open}, **more)


def test_events_that_come_before_the_acceptance_follow_it(submits: Submits) -> None:
    submits.steps_at_once = True
    with serving() as server, WireClient(server.url) as client, WireClient(server.url) as other:
        client.greet()
        other.greet()
        open_large(client, is_open=False)
        client.send(t="ping", n=7)
        assert submits.begun.wait(20)
        other.send(t="ping", n=1)
        assert other.receive() == {"t": "pong", "n": 1}  # the loop goes on meanwhile
        submits.may_end.set()
        found = client.receive_end(1)
        assert (found[0]["t"], found[0].get("s")) == ("ack", 1)
        assert found[-1]["t"] == "end"
        assert {"t": "pong", "n": 7} in found or client.receive() == {"t": "pong", "n": 7}
        assert submits.threads[0].startswith("rtlang-requests")


def test_a_refusal_is_that_of_a_small_graph(submits: Submits) -> None:
    submits.may_end.set()
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        server.target.refusal = OverloadError("full", 2.0)
        open_large(client)
        client.send(t="open", s=2, kind="generate", body={"prompt": "x"})
        large, small = client.receive(), client.receive()
        assert large.pop("request_id") != small.pop("request_id")
        assert large == small | {"s": 1}
        assert large["code"] == OverloadError.code
        server.target.refusal = None
        nodes = [*GRAPH["nodes"], GRAPH["nodes"][0]]
        client.send(t="open", s=3, kind="program", body={"graph": GRAPH | {"nodes": nodes}})
        answer = client.receive()
        assert (answer["s"], answer["code"]) == (3, GraphError.code)


def test_a_large_extension_keeps_its_place_and_is_answered_once(submits: Submits) -> None:
    submits.may_end.set()
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_large(client, detach_ms=60_000)
        assert client.receive()["t"] == "ack"
        more = nodes_to_plain([Text(number, 0, ("more " * 5,)) for number in range(1000, 1600)])
        for _ in range(2):
            client.send(t="extend", s=1, q=1, nodes=more)
        client.send(t="extend", s=1, q=2, nodes=more)
        client.send(t="ping", n=1)
        answers = [client.receive() for _ in range(4)]
        assert [(each["t"], each.get("q", each.get("n"))) for each in answers] == [
            ("ack", 1),
            ("ack", 1),
            ("error", 2),
            ("pong", 1),
        ]
        assert answers[2]["code"] == GraphError.code
        assert len(server.target.runs[0].nodes) == 1200


def test_a_client_that_goes_while_its_graph_is_submitted_leaves_no_graph(submits: Submits) -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            open_large(client)
            assert submits.begun.wait(20)
            client.websocket.socket.close()
        submits.may_end.set()
        server.target.wait_for(1)
        wait_until(lambda: server.target.runs[0].was_cancelled)
        wait_until(lambda: server.count("ws_connections") == 0)


def test_a_client_that_opens_again_while_its_graph_is_submitted_gets_its_events(submits: Submits) -> None:
    with serving() as server, WireClient(server.url) as client, WireClient(server.url) as again:
        client.greet()
        again.greet()
        open_large(client, detach_ms=60_000, idem="0123456789abcdef")
        assert submits.begun.wait(20)
        open_large(again, detach_ms=60_000, idem="0123456789abcdef")
        submits.may_end.set()
        assert [client.receive()["t"] for _ in range(2)] == ["ack", "error"]  # the stream was taken over
        assert again.receive()["t"] == "ack"
        again.send(t="close", s=1)
        wait_until(lambda: not server.target.runs[0].is_open)
        server.target.finish()
        assert again.receive_end(1)[-1]["t"] == "end"
        assert len(server.target.runs) == 1
