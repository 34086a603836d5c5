"""Graphs of a connection over real sockets: streams that are left and read on from another connection."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from websockets.frames import Frame, Opcode

from rtlang.contract.errors import OverloadError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text, nodes_to_plain
from tests.support.servers.serving import Serving, serving
from tests.support.servers.wire_client import JSON, MSGPACK, WireClient
from tests.support.waiting import wait_until

KEY = "0123456789abcdef"
MORE = [Generate(2, 1, "y", SamplingParams(max_tokens=1))]


def open_lasting(
    client: WireClient, stream: int = 1, max_tokens: int = 4, detach_ms: int = 60_000, **more: str
) -> dict[str, Any]:
    """The ack of a generation that outlives its connection."""
    body = {"prompt": "x", "params": {"max_tokens": max_tokens}}
    client.send(t="open", s=stream, kind="generate", body=body, detach_ms=detach_ms, **more)
    ack = client.receive()
    assert ack["t"] == "ack", ack
    return ack


def open_program(client: WireClient) -> dict[str, Any]:
    """The ack of a graph of two nodes, as stream 1, that outlives its connection and may be extended."""
    graph = RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams(max_tokens=1))))
    client.send(t="open", s=1, kind="program", body={"graph": graph.to_plain(), "open": True}, detach_ms=60_000)
    ack = client.receive()
    assert ack["t"] == "ack", ack
    return ack


def leave(client: WireClient) -> None:
    """Break the connection, without a word."""
    client.websocket.socket.close()


def is_left(server: Serving) -> bool:
    return server.count("ws_connections") == 0


@pytest.mark.parametrize("subprotocol", [MSGPACK, JSON])
def test_a_stream_is_read_on_from_another_connection(subprotocol: str) -> None:
    with serving() as server:
        with WireClient(server.url, subprotocol) as client:
            client.greet()
            ack = open_lasting(client)
            server.target.step("a")
            server.target.step("b")
            assert [client.receive()["d"] for _ in range(2)] == ["a", "b"]
            leave(client)
            wait_until(lambda: is_left(server))
        server.target.step("c")
        with WireClient(server.url, subprotocol) as client:
            client.greet()
            client.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 1})
            again = client.receive()
            assert again == {"t": "ack", "s": 1, "rid": ack["rid"], "epoch": ack["epoch"], "from": 1} | {
                "last_q": 0,
                "refused": [],
                "granted": 256,
            }
            server.target.finish()
            messages = client.receive_end(1)
        assert [(message["o"], message["d"]) for message in messages[:3]] == [(1, "b"), (2, "c"), (3, "x")]
        assert messages[-1]["values"] == {"text": "abcx"}
        assert not server.target.runs[0].was_cancelled


def test_a_graph_that_ended_while_detached_delivers_its_end() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            ack = open_lasting(client, max_tokens=2)
            leave(client)
            wait_until(lambda: is_left(server))
        server.target.finish()
        with WireClient(server.url) as client:
            client.greet()
            client.send(t="attach", s=9, rid=ack["rid"], epoch=ack["epoch"], **{"from": 0})
            assert client.receive()["s"] == 9
            messages = client.receive_end(9)
            assert [message["t"] for message in messages] == ["delta", "delta", "event", "end"]
            client.send(t="cancel", s=9)  # it has ended: no error
            client.send(t="ping", n=1)
            assert client.receive() == {"t": "pong", "n": 1}


def test_an_extended_graph_continues_and_its_answers_are_not_lost() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            ack = open_program(client)
            client.send(t="extend", s=1, nodes=nodes_to_plain(MORE), q=5)
            assert client.receive()["q"] == 5
            client.send(t="extend", s=1, nodes=nodes_to_plain(MORE), q=6)  # the same nodes again: refused
            assert client.receive()["t"] == "error"
            leave(client)
            wait_until(lambda: is_left(server))
        with WireClient(server.url) as client:
            client.greet()
            client.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], q=5, **{"from": 0})
            again = client.receive()
            assert (again["last_q"], again["refused"]) == (6, [6])
            refusal = client.receive()
            assert (refusal["t"], refusal["s"], refusal["q"]) == ("error", 1, 6)
            client.send(t="extend", s=1, nodes=nodes_to_plain([Text(3, 2, ("z",))]), q=7)
            assert client.receive() == {"t": "ack", "s": 1, "q": 7}
            client.send(t="close", s=1)
            wait_until(lambda: not server.target.runs[0].is_open)
            assert len(server.target.runs[0].nodes) == 4


def test_a_repeated_extend_is_answered_but_not_applied_again() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_program(client)
        wrong = nodes_to_plain([Generate(9, 8, "y", SamplingParams(max_tokens=1))])
        for _ in range(2):
            client.send(t="extend", s=1, nodes=nodes_to_plain(MORE), q=5)
            assert client.receive() == {"t": "ack", "s": 1, "q": 5}
            client.send(t="extend", s=1, nodes=wrong, q=6)
            assert client.receive()["code"] == "graph"
        assert len(server.target.runs[0].nodes) == 3
        client.send(t="extend", s=1, nodes=nodes_to_plain([Text(3, 2, ("z",))]), q=7, close=True)
        assert client.receive() == {"t": "ack", "s": 1, "q": 7}
        server.target.finish()
        client.receive_end(1)
        client.send(t="extend", s=1, nodes=nodes_to_plain([Text(3, 2, ("z",))]), q=7, close=True)
        assert client.receive() == {"t": "ack", "s": 1, "q": 7}  # its answer, too, may have been lost
        client.send(t="extend", s=1, nodes=[], q=8)
        error = client.receive()
        assert (error["code"], error["q"], error["param"]) == ("graph", 8, "s")


@pytest.mark.parametrize("nodes", [nodes_to_plain([Generate(9, 8, "y", SamplingParams(max_tokens=1))]), [7]])
def test_a_refused_extension_stays_refused_on_the_next_connection(nodes: list[Any]) -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            ack = open_program(client)
            client.send(t="extend", s=1, nodes=nodes, q=1)
            assert client.receive()["code"] == "graph"
            client.send(t="extend", s=1, nodes=nodes_to_plain(MORE), q=2)
            assert client.receive() == {"t": "ack", "s": 1, "q": 2}
            leave(client)
        with WireClient(server.url) as client:
            client.greet()
            client.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], q=0, **{"from": 0})
            again = client.receive()
            assert (again["last_q"], again["refused"]) == (2, [1])
            refusal = client.receive()
            assert (refusal["code"], refusal["q"]) == ("graph", 1)


def test_nodes_that_cannot_be_read_are_refused_and_the_graph_goes_on() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_program(client)
        client.send(t="extend", s=1, nodes=[7], close=True)
        error = client.receive()
        assert (error["s"], error["code"], "q" in error) == (1, "graph", False)
        assert server.target.runs[0].is_open
        client.send(t="extend", s=1, nodes=nodes_to_plain(MORE))
        assert client.receive() == {"t": "ack", "s": 1}


def test_an_extend_without_an_increasing_number_is_refused() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_program(client)
        client.send(t="extend", s=1, nodes=nodes_to_plain(MORE), q=5)
        assert client.receive() == {"t": "ack", "s": 1, "q": 5}
        for request in (0, 3, 5):
            client.send(t="extend", s=1, nodes=nodes_to_plain([Text(3, 2, ("z",))]), q=request, close=True)
            error = client.receive()
            assert (error["s"], error["q"], error["code"], error["param"]) == (1, request, "protocol", "q")
        assert server.target.runs[0].is_open


@pytest.mark.long
def test_many_opens_of_one_read_do_not_pile_up_their_answers() -> None:
    with serving(send_buffer_bytes=65_536) as server, WireClient(server.url) as client:
        client.greet()
        open_lasting(client, max_tokens=40, idem=KEY)
        for _ in range(40):
            server.target.step("x" * 500)
        server.target.finish()
        client.receive_end(1)
        body = {"prompt": "x", "params": {"max_tokens": 40}}
        again = [
            {"t": "open", "s": stream, "kind": "generate", "body": body, "detach_ms": 60_000, "idem": KEY}
            for stream in range(2, 1002)
        ]
        frames = [Frame(Opcode.BINARY, msgpack.packb(message)).serialize(mask=True) for message in again]
        client.websocket.socket.sendall(b"".join(frames))
        wait_until(lambda: server.count("ws_slow_closed_total") == 1)


def test_a_fully_delivered_stream_does_not_count_against_the_limit() -> None:
    with serving(max_streams=1) as server, WireClient(server.url) as client:
        client.greet()
        ack = open_lasting(client, max_tokens=1)
        server.target.finish()
        assert len(client.receive_end(1)) == 3
        client.send(t="attach", s=2, rid=ack["rid"], epoch=ack["epoch"], **{"from": 3})
        assert client.receive()["code"] == "gone"
        open_lasting(client, 3)


def test_bye_forgets_what_has_ended_too() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            ack = open_lasting(client, max_tokens=1)
            server.target.finish()
            client.receive_end(1)
            client.send(t="bye")
            wait_until(lambda: is_left(server))
        with WireClient(server.url) as client:
            client.greet()
            client.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 0})
            assert client.receive()["param"] == "rid"


def test_streams_without_resume_end_with_their_connection_and_bye_ends_all() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            open_lasting(client, 1)
            client.send(t="open", s=2, kind="generate", body={"prompt": "x"})
            assert client.receive()["t"] == "ack"
            leave(client)
            wait_until(lambda: server.target.runs[1].was_cancelled)
        assert not server.target.runs[0].was_cancelled
        with WireClient(server.url) as client:
            client.greet()
            open_lasting(client)
            client.send(t="bye")
            wait_until(lambda: server.target.runs[2].was_cancelled)
        assert not server.target.runs[0].was_cancelled


def test_a_repeated_open_runs_once() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            first = open_lasting(client, idem=KEY)
            server.target.step("a")
            assert client.receive()["d"] == "a"
            leave(client)
            wait_until(lambda: is_left(server))
        server.target.step("b")
        with WireClient(server.url) as client:
            client.greet()
            open_lasting(client, 1, idem="another's key is no key of mine")
            assert open_lasting(client, 2, idem=KEY) == first | {"s": 2}
            assert [(piece["o"], piece["d"]) for piece in (client.receive(), client.receive())] == [(0, "a"), (1, "b")]
        assert len(server.target.runs) == 2


def test_a_repeated_open_replays_even_an_ended_stream() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        first = open_lasting(client, idem=KEY)
        server.target.finish()
        ended = client.receive_end(1)
        assert open_lasting(client, 2, idem=KEY) == first | {"s": 2}
        assert [message | {"s": 1} for message in client.receive_end(2)] == ended
        assert len(server.target.runs) == 1


def test_an_open_with_a_forgotten_key_runs_again() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            open_lasting(client, detach_ms=50, idem=KEY)
            leave(client)
        wait_until(lambda: server.target.runs[0].was_cancelled)
        with WireClient(server.url) as client:
            client.greet()
            open_lasting(client, idem=KEY)
        assert len(server.target.runs) == 2


def test_another_body_with_the_same_key_is_refused() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        open_lasting(client, idem=KEY)
        other = {"prompt": "x", "params": {"max_tokens": 5}}
        client.send(t="open", s=2, kind="generate", body=other, detach_ms=60_000, idem=KEY)
        error = client.receive()
        assert (error["s"], error["code"], error["param"]) == (2, "protocol", "idem")
        server.target.step("a")
        piece = client.receive()
        assert (piece["s"], piece["d"]) == (1, "a")
        assert len(server.target.runs) == 1


def test_a_refused_open_may_be_retried_with_its_key() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        server.target.refusal = OverloadError("full", 1.0)
        client.send(t="open", s=1, kind="generate", body={"prompt": "x"}, detach_ms=1000, idem=KEY)
        assert client.receive()["code"] == "overload"
        server.target.refusal = None
        open_lasting(client, 2, idem=KEY)


def test_a_detached_stream_is_cancelled_after_its_timeout() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            ack = open_lasting(client, detach_ms=50)
            leave(client)
        wait_until(lambda: server.target.runs[0].was_cancelled)
        with WireClient(server.url) as client:
            client.greet()
            client.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 0})
            error = client.receive()
            assert (error["t"], error["s"], error["code"], error["status"], error["param"]) == (
                "error",
                1,
                "gone",
                410,
                "rid",
            )
            open_lasting(client, 2)  # the connection is as good as before


def test_an_open_connection_loses_its_stream_to_a_newer_attach() -> None:
    with serving() as server, WireClient(server.url) as old, WireClient(server.url) as new:
        old.greet()
        new.greet()
        ack = open_lasting(old)
        server.target.step("a")
        assert old.receive()["d"] == "a"
        new.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 1})
        assert new.receive()["t"] == "ack"
        lost = old.receive()
        assert (lost["t"], lost["s"], lost["code"]) == ("error", 1, "gone")
        server.target.step("b")
        assert new.receive()["d"] == "b"
        leave(old)
        wait_until(lambda: server.count("ws_connections") == 1)
        server.target.finish()
        assert new.receive_end(1)[-1]["values"] == {"text": "abxx"}


def test_detached_streams_do_not_delay_shutdown() -> None:
    with serving() as server:
        with WireClient(server.url) as client:
            client.greet()
            open_lasting(client)
            leave(client)
            wait_until(lambda: is_left(server))
        run = server.target.runs[0]
    assert run.was_cancelled


def test_a_refused_graph_leaves_no_name_behind() -> None:
    with serving() as server, WireClient(server.url) as client:
        client.greet()
        server.target.refusal = RuntimeError("a bug")
        client.send(t="open", s=1, kind="generate", body={"prompt": "x"}, detach_ms=1000)
        assert client.receive()["t"] == "error"
        server.target.refusal = None
        open_lasting(client, 2)


def test_a_connection_that_reads_its_logs_again_and_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtlang.serve.streams._MAX_REPLAYED", 5)
    monkeypatch.setattr("rtlang.serve.streams._REPLAYED_A_SECOND", 0.001)
    with serving() as server, WireClient(server.url, JSON) as client:
        client.greet()
        ack = open_lasting(client)
        for text in "abc":
            server.target.step(text)
            assert client.receive()["d"] == text
        place = {"rid": ack["rid"], "epoch": ack["epoch"]}
        for stream in (2, 3):
            client.send(t="attach", s=stream, **place, **{"from": 0})
            assert (client.receive()["t"], client.receive()["t"]) == ("error", "ack")  # the stream before is lost
            assert [client.receive()["d"] for _ in range(3)] == ["a", "b", "c"]
        client.send(t="attach", s=4, **place, **{"from": 0})
        refused = client.receive()
        assert (refused["t"], refused["s"], refused["code"]) == ("error", 4, "overload")
        server.target.step("d")
        assert client.receive()["d"] == "d"  # the stream goes on where it was
