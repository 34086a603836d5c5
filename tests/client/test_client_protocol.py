"""The client's state machine alone: what it queues for what it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import ANY

import msgpack
import pytest

from rtlang.client.client_protocol import MAX_GONE, ClientProtocol
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.errors import AbortedError, ConnectionLostError, GraphError, OverloadError, ProtocolError
from rtlang.contract.events import Completion, Event, GraphFailed, NodeFinished, TextDelta, Timing
from rtlang.contract.params import MAX_CREDIT, FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Text
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_options import RunOptions

GRAPH = RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams())))
DONE = Completion("some text", (5, 6, 7), FinishReason.LENGTH)
KNOWN_39 = {
    number: KnownOutcome(NodeFinished(0, number, None, (DONE,), Usage(1, 0, 3), Timing())) for number in range(1, 40)
}
WELCOME: dict[str, Any] = {"epoch": "e", "limits": {"max_frame_bytes": 4096}}


class Client:
    """A protocol whose output is read as maps."""

    def __init__(self, resume_s: float | None = 30.0, models: Sequence[Mapping[str, Any]] = ()) -> None:
        self.now = 100.0
        self.protocol = ClientProtocol(WELCOME | {"models": models}, resume_s, lambda: self.now)

    def submit(self, **options: Any) -> RemoteGraphRun:
        owner: Any = self.protocol
        return self.protocol.submit(owner, GRAPH, lambda event: None, lambda: Answer(True), RunOptions(**options))

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


def error(code: str, stream: int = 1, **facts: Any) -> dict[str, Any]:
    return {"t": "error", "s": stream, "code": code, "message": code, "facts": facts}


def test_a_server_that_has_forgotten_a_stream_goes_on_behind_its_output_under_another_id() -> None:
    client = Client()
    run = client.submit(credit=10, seed=3)
    other = client.submit(credit=10, seed=4)
    client.take(ack(granted=10))
    client.take(ack(s=2, granted=10))
    client.take(delta(0, 7, 8))
    client.protocol.reconnected(WELCOME)
    assert [each["t"] for each in client.sent()] == ["attach", "attach"]
    client.protocol.answer_call(run, 5, {"t": "resolve", "value": 1})  # while the attach is not answered
    assert client.sent() == []
    assert client.take(error("gone", param="rid")) == []
    opening, answer = client.sent()
    assert (opening["t"], opening["s"], opening["credit"]) == ("open", 3, 8)
    assert opening["continue_from"] == [{"n": 1, "ids": [[7, 8]]}]
    assert (answer["t"], answer["s"]) == ("resolve", 3)
    client.take(ack(s=3, rid="q", granted=8))
    assert client.take(delta(0, 9) | {"s": 3}) == [TextDelta(1, 1, 0, "a", (9,))]
    client.protocol.cancel(other)
    assert client.take(error("gone", 2, param="rid")) == [GraphFailed(2, ANY)]
    assert other.has_ended
    assert client.sent() == []


def test_a_server_that_never_knows_a_stream_is_not_asked_for_ever() -> None:
    client = Client()
    client.submit()
    client.take(ack())
    client.protocol.reconnected(WELCOME)
    for stream in range(1, 1 + MAX_GONE):
        assert client.take(error("gone", stream)) == []
    (failed,) = client.take(error("gone", 1 + MAX_GONE))
    assert isinstance(failed, GraphFailed)


def test_a_busy_server_is_asked_again_until_the_time_to_resume_is_over() -> None:
    client = Client(resume_s=30.0)
    run = client.submit(is_open=True)
    client.take(ack())
    client.protocol.reconnected({"epoch": "another"})
    client.sent()
    busy = error("overload", retry_after_s=2.0)
    assert client.take(busy) == []
    assert client.protocol.retry_pause() == 2.0
    client.protocol.extend(run, [Text(2, 1, ("x",))], lambda: Answer(True))
    client.protocol.close_graph(run)
    assert client.sent() == []
    assert client.protocol.retry() == []
    assert client.sent() == []
    client.now += 2.0
    client.protocol.retry()
    assert [(each["t"], each["s"]) for each in client.sent()] == [("open", 2), ("extend", 2), ("close", 2)]
    assert client.protocol.retry_pause() is None
    client.now += 28.0
    (failed,) = client.take(busy | {"s": 2})
    assert isinstance(failed, GraphFailed)
    assert isinstance(failed.error, OverloadError)
    refused = client.submit()
    assert client.take(busy | {"s": 3}) == [], "the caller of submit gets the refusal"
    assert isinstance(refused.opening.error, OverloadError)


def test_nothing_is_opened_again_after_the_connection_is_lost() -> None:
    client = Client(resume_s=30.0)
    client.submit(is_open=True)
    client.take(ack())
    client.protocol.reconnected({"epoch": "another"})
    client.sent()
    assert client.take(error("overload", retry_after_s=2.0)) == []
    lost = OverloadError("lost", 1.0)
    ((_, failed),) = client.protocol.lose(lost, lost)
    assert isinstance(failed, GraphFailed)
    assert client.protocol.retry_pause() is None
    client.now += 2.0
    assert client.protocol.retry() == []
    assert client.sent() == []


def test_another_server_gets_what_is_left_of_the_times() -> None:
    client = Client()
    client.submit(deadline_s=20.0, budget=Budget(seconds=8.0, tokens=9))
    client.take(ack())
    client.now += 5.0
    client.protocol.reconnected({"epoch": "another"})
    (*_, opening) = client.sent()
    assert (opening["deadline_ms"], opening["body"]["budget"]) == (15000, {"seconds": 3.0, "tokens": 9})
    client.now += 60.0
    client.take(ack(epoch="another"))
    client.protocol.reconnected({"epoch": "third"})
    (opening,) = client.sent()
    assert (opening["deadline_ms"], opening["body"]["budget"]) == (1, {"seconds": 0.001, "tokens": 9})


def test_a_cancelled_graph_is_not_opened_at_another_server() -> None:
    client = Client()
    run = client.submit()
    client.take(ack())
    client.protocol.cancel(run)
    client.sent()
    ((_, failed),) = client.protocol.reconnected({"epoch": "another"})
    assert isinstance(failed, GraphFailed)
    assert isinstance(failed.error, AbortedError)
    assert client.sent() == []


def test_results_of_many_nodes_are_divided_among_messages_that_the_server_takes() -> None:
    client = Client()
    nodes: list[Node] = [Text(0, None, ("Hi",))]
    nodes += [Generate(number, 0, f"x{number}", SamplingParams()) for number in range(1, 40)]
    owner: Any = client.protocol
    graph = RequestGraph(tuple(nodes))
    run = client.protocol.submit(owner, graph, lambda event: None, lambda: Answer(True), RunOptions(known=KNOWN_39))
    client.take(ack())
    first = client.sent()
    client.protocol.reconnected({"epoch": "another", "limits": {"max_frame_bytes": 2048}})
    again = client.sent()
    for messages in (first, again):
        opening, *extends = messages
        assert opening["body"]["open"]
        assert [each["close"] for each in extends] == [False] * (len(extends) - 1) + [True]
        seen: set[int] = set()
        for message in messages:
            assert len(msgpack.packb(message)) <= 2048
            seen |= {node["id"] for node in message.get("nodes", message.get("body", {}).get("graph", {}).get("nodes"))}
            assert {each["n"] for each in message.get("known", ())} <= seen
        assert seen == set(range(40))
        assert sorted(each["n"] for message in messages for each in message.get("known", ())) == list(range(1, 40))
    assert len(again) > len(first) > 2
    assert not run.has_ended


@pytest.mark.parametrize(
    ("before", "now", "is_same"),
    [
        ({"model": "a", "identity": "a@1"}, {"model": "b/a", "identity": "a@1"}, True),
        ({"model": "a", "identity": "a@1"}, {"model": "a", "identity": "a@2"}, False),
        ({"model": "a", "identity": None}, {"model": "a", "identity": "a@2"}, True),
        ({"model": "a"}, {"model": "b"}, False),
    ],
)
def test_a_server_of_another_model_is_recognised(before: dict[str, Any], now: dict[str, Any], is_same: bool) -> None:
    reason = Client(models=[before]).protocol.other_model({"epoch": "another", "models": [now]})
    assert (reason is None) == is_same
    assert is_same or (str(now.get("identity") or now["model"]) in str(reason))
    assert Client(models=[before]).protocol.other_model({"epoch": "another"}) is None
