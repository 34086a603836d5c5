"""Real sockets: several streams on one, many clients at once, clients that go and clients that do not read."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

import msgpack
import pytest
from websockets.frames import Frame, Opcode

from rtlang.contract.errors import EngineDeadError, OverloadError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Arg, Generate, RequestGraph, Text, nodes_to_plain
from tests.support.programs.scripted_target import ScriptedRun, ScriptedTarget
from tests.support.servers.serving import RawSocket, Serving, serving
from tests.support.servers.wire_client import JSON, MSGPACK, WireClient
from tests.support.waiting import wait_until

GRAPH = RequestGraph(
    (Text(0, None, ("Hi ", Arg("name"))), Generate(1, 0, "x", SamplingParams(max_tokens=2))), ("name",)
)


def open_generation(client: WireClient, stream: int, max_tokens: int = 2) -> None:
    client.send(t="open", s=stream, kind="generate", body={"prompt": "x", "params": {"max_tokens": max_tokens}})
    assert client.receive()["t"] == "ack"


@pytest.mark.parametrize("subprotocol", [MSGPACK, JSON])
def test_a_program_runs_over_either_encoding(subprotocol: str) -> None:
    with serving() as server, WireClient(server.url, subprotocol) as client:
        assert client.websocket.subprotocol == subprotocol
        response = client.websocket.response
        assert response is not None
        assert "Sec-WebSocket-ExtendLog" not in response.headers
        client.greet()
        body = {"graph": GRAPH.to_plain(), "inputs": {"name": "Ada"}, "open": True, "priority": 4}
        client.send(t="open", s=1, kind="program", body=body, deadline_ms=9000)
        ack = client.receive()
        assert (ack["t"], ack["s"]) == ("ack", 1)
        run = server.target.runs[0]
        assert (run.graph, run.inputs, run.is_open, run.priority, run.deadline_s) == (
            GRAPH,
            {"name": "Ada"},
            True,
            4,
            9.0,
        )
        more = [Generate(2, 1, "y", SamplingParams())]
        client.send(t="extend", s=1, nodes=nodes_to_plain(more), q=5)
        assert client.receive() == {"t": "ack", "s": 1, "q": 5}
        assert run.nodes == [*GRAPH.nodes, *more]
        client.send(t="extend", s=1, nodes=nodes_to_plain(more), q=6)
        refusal = client.receive()
        assert (refusal["s"], refusal["q"], refusal["code"], refusal["param"]) == (1, 6, "graph", "node_id")
        client.send(t="close", s=1)
        client.send(t="ping", n=3)
        assert client.receive() == {"t": "pong", "n": 3}
        assert not run.is_open
        server.target.step("hé")
        server.target.step("y")
        server.target.step()
        messages = client.receive_end(1)
        assert [message["t"] for message in messages] == ["delta", "delta", "event", "end"]
        assert [(message["o"], message["d"]) for message in messages[:2]] == [(0, "hé"), (1, "y")]
        assert messages[3]["values"] == {"x": "héy"}


def test_cancelling_one_of_several_streams_leaves_the_others() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        for stream in (1, 2, 3):
            open_generation(client, stream)
        client.send(t="cancel", s=2)
        wait_until(lambda: server.target.runs[1].was_cancelled)
        server.target.finish()
        ends: dict[int, str] = {}
        while len(ends) < 3:
            message = client.receive()
            if message["t"] == "end":
                ends[message["s"]] = message["reason"]
        assert ends == {1: "stop", 2: "cancelled", 3: "stop"}


def test_a_step_of_many_streams_is_one_message() -> None:
    """The engine tells its events without letting the loop run in between, as it does within a step."""
    with serving(HoldingTarget()) as server, WireClient(server.url) as client:
        target = server.target
        assert isinstance(target, HoldingTarget)
        client.greet()
        for stream in range(1, 33):
            open_generation(client, stream, max_tokens=1)
        target.holds = True
        client.send(t="open", s=99, kind="generate", body={"prompt": "x"})
        assert target.reached.wait(20)
        target.step()
        target.released.set()
        assert client.receive()["s"] == 99
        batch = msgpack.unpackb(client.websocket.recv(20))
        assert [message["s"] for message in batch] == list(range(1, 33))


class HoldingTarget(ScriptedTarget):
    """Once `holds`, a submit holds the server's event loop until `released`, and is then refused."""

    def __init__(self) -> None:
        super().__init__()
        self.holds, self.reached, self.released = False, threading.Event(), threading.Event()

    def submit(self, *args: Any, **kwargs: Any) -> ScriptedRun:
        if not self.holds:
            return super().submit(*args, **kwargs)
        self.reached.set()
        assert self.released.wait(20)
        raise OverloadError("full", 1.0)


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [(OverloadError("full", 2.0), "overload", 429), (EngineDeadError("gone"), "engine_dead", 503)],
)
def test_a_refused_graph_is_a_typed_error(error: Exception, code: str, status: int) -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        server.target.refusal = error
        client.send(t="open", s=1, kind="generate", body={"prompt": "x"})
        answer = client.receive()
        assert (answer["t"], answer["s"], answer["code"], answer["status"]) == ("error", 1, code, status)


def test_a_bug_in_the_target_fails_one_stream_and_reveals_no_details(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_generation(client, 1)
        server.target.refusal = ValueError("secret detail")
        client.send(t="open", s=2, kind="generate", body={"prompt": "x"})
        answer = client.receive()
        assert (answer["s"], answer["code"], answer["status"]) == (2, "fault", 500)
        assert answer["facts"]["id"] in answer["message"]
        assert answer["facts"]["id"] in caplog.text
        assert "secret" not in str(answer)
        server.target.finish()
        assert client.receive_end(1)[-1]["reason"] == "stop"
    assert "secret detail" in caplog.text


# Clients that go, and clients that do not read


@pytest.mark.parametrize("manner", ["bye", "close", "abort", "half-close", "protocol error"])
def test_a_disconnected_clients_graphs_are_cancelled(manner: str) -> None:
    with serving() as server:
        with RawSocket(server.url) as raw:
            leave(server, raw, manner)
        wait_until(lambda: server.count("ws_connections") == 0)


def leave(server: Serving, raw: RawSocket, manner: str) -> None:
    """Start two graphs, go, and see them cancelled."""
    raw.greet()
    for stream in (1, 2):
        raw.send(
            Opcode.TEXT,
            json.dumps({"t": "open", "s": stream, "kind": "generate", "body": {"prompt": "x"}}).encode(),
        )
    server.target.wait_for(2)
    match manner:
        case "bye":
            raw.send(Opcode.TEXT, b'{"t": "bye"}')
        case "close":
            raw.send(Opcode.CLOSE, b"")
        case "abort":
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.file.close()
            raw.socket.close()
        case "half-close":
            raw.socket.shutdown(socket.SHUT_WR)
        case "protocol error":
            raw.send(Opcode.TEXT, b"{")
    wait_until(lambda: all(run.was_cancelled for run in server.target.runs))
    server.target.finish()
    if manner in ("bye", "protocol error"):
        assert raw.close_code() == (1000 if manner == "bye" else 1007)
        raw.send(Opcode.CLOSE, b"")
    if manner != "abort":
        raw.file.read()  # returns: the server ends the connection


def test_64_clients_stream_while_a_third_of_them_go() -> None:
    threads_before = set(threading.enumerate())
    num_tokens = 30
    with serving() as server, contextlib.ExitStack() as exits:
        clients = [exits.enter_context(WireClient(server.url)) for _ in range(64)]
        for number, client in enumerate(clients):
            client.greet()
            client.send(
                t="open", s=1, kind="generate", body={"prompt": str(number), "params": {"max_tokens": num_tokens}}
            )
            assert client.receive()["t"] == "ack"
        for number in range(10):
            server.target.step(f"{number} ")
        leaving, staying = clients[::3], [client for number, client in enumerate(clients) if number % 3]
        for client in leaving:
            client.receive()
            client.websocket.socket.close() if client is leaving[0] else client.websocket.close()
        runs = {run.graph.nodes[0].parts[0]: run for run in server.target.runs}  # type: ignore[union-attr]
        gone = [runs[str(number)] for number in range(0, 64, 3)]
        wait_until(lambda: all(run.was_cancelled for run in gone))
        number = 10
        while server.target.step(f"{number} "):
            number += 1
        expected = [f"{number} " for number in range(num_tokens)]
        for client in staying:
            messages = client.receive_end(1)
            assert [message["d"] for message in messages if message["t"] == "delta"] == expected
            assert [message["o"] for message in messages if message["t"] == "delta"] == list(range(num_tokens))
            assert messages[-1]["values"] == {"text": "".join(expected)}
        assert not any(run.was_cancelled for run in server.target.runs if run not in gone)
        wait_until(lambda: server.count("ws_connections") == len(staying))
    wait_until(lambda: set(threading.enumerate()) <= threads_before)


def stream_to_one_that_does_not_read(server: Serving, piece: str, enough: Any) -> None:
    """One client reads, one does not; step until `enough`. The reader must miss nothing."""
    with WireClient(server.url) as reader, RawSocket(server.url, receive_buffer=4096) as stuck:
        stuck.greet()
        stuck.send(
            Opcode.TEXT,
            b'{"t": "open", "s": 1, "kind": "generate", "body": {"prompt": "stuck", "params": {"max_tokens": 100000}}}',
        )
        server.target.wait_for(1)
        reader.greet()
        open_generation(reader, 1, max_tokens=100_000)
        stuck_run, reading_run = server.target.runs
        num_steps = 0
        while not enough(stuck_run):
            server.target.step(piece)
            assert reader.receive()["o"] == num_steps
            num_steps += 1
            assert num_steps < 20_000
        wait_until(lambda: server.count("ws_slow_closed_total") == 1)
        assert not reading_run.was_cancelled
        # Whoever reads again in time still learns why.
        assert stuck.close_code() == 4503
        server.target.step(piece)
        assert reader.receive()["o"] == num_steps
    wait_until(lambda: server.count("ws_connections") == 0)
    assert server.count("ws_slow_closed_total") == 1


def test_a_backlogged_client_is_closed_without_affecting_others() -> None:
    with serving(send_buffer_bytes=1 << 20, slow_timeout_s=3600.0) as server:
        stream_to_one_that_does_not_read(server, "x" * 50_000, lambda run: run.was_cancelled)


def test_a_message_larger_than_what_may_wait_reaches_a_client_that_reads_later() -> None:
    """What comes after it meanwhile does not make the client a slow one."""
    with (
        serving(send_buffer_bytes=1 << 16, slow_timeout_s=3600.0) as server,
        RawSocket(server.url, receive_buffer=4096) as late,
        WireClient(server.url) as other,
    ):
        late.greet()
        other.greet()
        body = b'"kind": "generate", "body": {"prompt": "a", "params": {"max_tokens": 100000}}}'
        for stream in (b"1", b"2"):
            late.send(Opcode.TEXT, b'{"t": "open", "s": ' + stream + b", " + body)
        server.target.wait_for(2)
        open_generation(other, 1, max_tokens=100_000)
        large, small, others = server.target.runs
        large.advance("x" * 20_000_000)
        for _ in range(20):
            small.advance("y")
            others.advance("z")
            assert other.receive()["t"] == "delta"  # by now the server has delivered what came before
        assert server.count("ws_slow_closed_total") == 0
        texts = {1: 0, 2: 0}
        while texts[2] < 20:
            said = json.loads(late.receive()[1])
            for message in said if isinstance(said, list) else [said]:
                if message["t"] == "delta":
                    texts[message["s"]] += len(message["d"])
        assert texts == {1: 20_000_000, 2: 20}
        while server.count("ws_slow_closed_total") == 0:  # nor is it held to nothing afterwards
            small.advance("y" * 60_000)
            others.advance("z")
            assert other.receive()["t"] == "delta"
            assert len(small.pieces) < 2_000


def test_a_stalled_client_is_closed_without_affecting_others() -> None:
    with serving(send_buffer_bytes=1 << 30, slow_timeout_s=0.2) as server:
        stream_to_one_that_does_not_read(server, "x" * 50_000, lambda run: run.was_cancelled)


def test_a_client_that_sends_but_never_reads_is_closed() -> None:
    """Answers to its own messages count as well: there is no way to fill the server's memory."""
    with (
        serving(send_buffer_bytes=1 << 16, slow_timeout_s=3600.0) as server,
        RawSocket(server.url, receive_buffer=4096) as stuck,
    ):
        stuck.greet()
        frames = Frame(Opcode.TEXT, b'{"t": "an answer longer than the question"}').serialize(mask=True) * 500
        with contextlib.suppress(ConnectionError, TimeoutError):
            while server.count("ws_slow_closed_total") == 0:
                stuck.socket.sendall(frames)
        wait_until(lambda: server.count("ws_slow_closed_total") == 1)


def test_a_closed_target_ends_streams_that_are_open() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_generation(client, 1)
        server.target.runs[0].finish_with(EngineDeadError("the engine died"))
        end = client.receive()
        assert (end["t"], end["reason"], end["code"], end["message"]) == (
            "end",
            "error",
            "engine_dead",
            "the engine has stopped",
        )
