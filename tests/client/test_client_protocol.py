"""The client's state machine alone: what it queues for what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack
import pytest

from rtlang.client.client_protocol import ClientProtocol
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.errors import ConnectionLostError, GraphError, ProtocolError
from rtlang.contract.events import Event, GraphFailed, TextDelta
from rtlang.contract.graph import Generate, RequestGraph, Text
from rtlang.contract.params import MAX_CREDIT, SamplingParams

GRAPH = RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams())))
WELCOME = {"epoch": "e", "limits": {"max_frame_bytes": 4096}}


class Client:
    """A protocol whose output is read as maps."""

    def __init__(self, resume_s: float | None = 30.0) -> None:
        self.protocol = ClientProtocol(WELCOME, resume_s)

    def submit(self, **options: Any) -> RemoteGraphRun:
        owner: Any = self.protocol
        return self.protocol.submit(owner, GRAPH, lambda event: None, lambda: Answer(True), **options)

    def sent(self) -> list[dict[str, Any]]:
        return [msgpack.unpackb(data) for data in self.protocol.take_output()]

    def take(self, message: Mapping[str, Any]) -> list[Event]:
        return [event for _, event in self.protocol.take(message)]


def ack(**fields: Any) -> dict[str, Any]:
    return {"t": "ack", "s": 1, "rid": "r", "epoch": "e"} | fields


def delta(offset: int, *ids: int) -> dict[str, Any]:
    return {"t": "delta", "s": 1, "n": 1, "o": offset, "d": "a", "ids": list(ids)}


def test_a_graph_without_a_limit_is_granted_all_at_once() -> None:
    client = Client(resume_s=None)
    client.submit()
    (opening,) = client.sent()
    assert opening["credit"] == MAX_CREDIT
    assert not opening.keys() & {"detach_ms", "idem", "progress"}


def test_grants_that_were_lost_with_a_connection_are_repeated() -> None:
    client = Client()
    run = client.submit(credit=10)
    client.sent()
    client.take(ack(granted=10))
    client.protocol.grant(run, 5)
    assert client.sent() == [{"t": "credit", "n": 5, "s": 1}]
    client.protocol.reconnected(WELCOME)
    assert [each["t"] for each in client.sent()] == ["attach"]
    client.protocol.grant(run, 2)  # before the attach is answered
    assert client.sent() == []
    client.take(ack(**{"from": 0}, last_q=0, refused=[], granted=10))
    assert client.sent() == [{"t": "credit", "n": 7, "s": 1}]


def test_another_server_is_granted_what_has_not_arrived() -> None:
    client = Client()
    run = client.submit(credit=10, seed=3)
    client.sent()
    client.take(ack(granted=10))
    assert client.take(delta(0, 7, 8)) == [TextDelta(1, 1, 0, "a", (7, 8))]
    client.protocol.grant(run, 4)
    client.protocol.reconnected({"epoch": "another"})
    (opening,) = client.sent()
    assert (opening["t"], opening["credit"]) == ("open", 12)
    assert opening["continue_from"] == [{"n": 1, "ids": [[7, 8]]}]
    client.take(ack(rid="q", epoch="another", granted=12))
    assert client.sent() == []


def test_tokens_that_another_server_repeats_are_granted_again() -> None:
    client = Client()
    client.submit(credit=10, seed=3)
    client.take(ack(granted=10))
    client.take(delta(0, 7, 8))
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 2}
    timing = {"queued_s": 0.0, "first_token_s": 0.0, "total_s": 0.0}
    end = {"t": "event", "s": 1, "n": 1, "e": "end", "completions": [], "usage": usage, "timing": timing}
    assert len(client.take(end)) == 1
    client.protocol.reconnected({"epoch": "another"})
    (*_, opening) = client.sent()
    assert ([each["n"] for each in opening["known"]], opening["credit"]) == ([1], 8)
    client.take(ack(rid="q", epoch="another", granted=8))
    assert client.take(delta(0, 7, 8)) == client.take(end) == []
    assert client.sent() == [{"t": "credit", "n": 2, "s": 1}]


def test_extends_that_another_server_lacks_come_before_those_that_wait() -> None:
    client = Client()
    run = client.submit(is_open=True)
    client.take(ack())
    text = "x" * 400
    client.protocol.extend(run, [Text(number, 1, (text,)) for number in (2, 3)], lambda: Answer(True))
    for request in (1, 2):
        client.take(ack(q=request) | {"rid": None})
    (waiting,) = client.protocol.extend(run, [Text(4, 1, ("y",))], lambda: Answer(True))
    client.sent()
    for epoch in ("second", "third"):
        client.protocol.reconnected({"epoch": epoch})
        opening, *extends = client.sent()
        assert (opening["t"], [each["t"] for each in extends]) == ("open", ["extend"] * len(extends))
        assert [node["id"] for each in extends for node in each["nodes"]] == [2, 3, 4][3 - len(extends) :]
        assert [each["q"] for each in extends] == list(range(1, len(extends) + 1))
        client.take(ack(rid="q", epoch=epoch))
        # The connection breaks before the server has answered: the extends are repeated with their numbers.
        client.protocol.reconnected({"epoch": epoch})
        (attach,) = client.sent()
        assert (attach["t"], attach["q"]) == ("attach", 0)
        client.take(ack(**{"from": 0}, last_q=0, refused=[]))
        assert client.sent() == extends
    assert not waiting.answer.is_resolved


def test_what_was_not_sent_before_a_connection_broke_is_not_sent_twice() -> None:
    client = Client()
    run = client.submit(is_open=True)
    client.protocol.extend(run, [Text(2, 1, ("x",))], lambda: Answer(True))
    client.protocol.close_graph(run)
    client.protocol.reconnected(WELCOME)
    assert [each["t"] for each in client.sent()] == ["open", "extend", "close"]


def test_a_refusal_nobody_waits_for_ends_the_graph_and_one_that_is_awaited_does_not() -> None:
    client = Client()
    run = client.submit(is_open=True)
    client.take(ack())
    (awaited,) = client.protocol.extend(run, [Text(2, 1, ("x",))], lambda: Answer(True))
    (silent,) = client.protocol.extend(run, [Text(3, 1, ("x",))], lambda: Answer(False))
    error = {
        "t": "error",
        "s": 1,
        "code": "graph",
        "message": "no",
        "facts": {"node_id": None, "field": "x", "reason": "no"},
    }
    assert client.take(error | {"q": 1}) == []
    assert isinstance(awaited.answer.error, GraphError)
    (failed,) = client.take(error | {"q": 2})
    assert isinstance(failed, GraphFailed)
    assert silent.answer.is_resolved
    assert run.has_ended


def test_a_gap_is_a_protocol_error_and_a_loss_ends_opened_graphs_only() -> None:
    client = Client()
    client.submit()
    waiting = client.submit()
    client.take(ack())
    with pytest.raises(ProtocolError, match="expected 0"):
        client.take(delta(1))
    lost = ConnectionLostError("gone")
    assert [event for _, event in client.protocol.lose(lost, lost)] == [GraphFailed(1, lost)]
    assert waiting.opening.error is lost
    assert client.protocol.runs == {}
