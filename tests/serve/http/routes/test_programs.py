"""Graphs over HTTP: events with ids, going on after a lost response, actions on a running graph."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.request_graph import nodes_from_plain
from rtlang.serve.http.routes import programs as routes_programs
from tests.support.programs.scripted_target import ScriptedRun, ScriptedTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving

NODES = [
    {"id": 0, "kind": "text", "parent": None, "parts": ["a"]},
    {"id": 1, "kind": "generate", "parent": 0, "name": "b", "params": {"max_tokens": 3}},
]
GRAPH = {"nodes": NODES, "inputs": []}


class Opened:
    """A response that is read event by event, as (id, message)."""

    def __init__(self, client: HttpClient, body: Any, **headers: str) -> None:
        self.connection = http.client.HTTPConnection(client.address, timeout=30)
        self.connection.request("POST", "/v1/programs", json.dumps(body), client.headers | headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def next(self) -> tuple[str, dict[str, Any]]:
        fields: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        message = json.loads(fields["data"])
        assert fields["event"] == message["t"]
        return fields["id"], message

    def leave(self) -> None:
        self.response.close()
        self.connection.close()


@pytest.fixture
def target() -> ScriptedTarget:
    return ScriptedTarget()


@pytest.fixture
def client(target: ScriptedTarget) -> Iterator[HttpClient]:
    with serving(target) as server:
        yield HttpClient(server.url)
        target.finish()


def test_events_are_the_messages_of_the_protocol_with_rising_ids(client: HttpClient, target: ScriptedTarget) -> None:
    opened = Opened(client, {"graph": GRAPH, "priority": 3, "deadline_ms": 5000})
    place, ack = opened.next()
    assert (ack["t"], place) == ("ack", f"{ack['rid']}:0")
    target.finish()
    found = [opened.next() for _ in range(5)]
    assert [place for place, _ in found] == [f"{ack['rid']}:{k}" for k in range(1, 6)]
    assert [message["t"] for _, message in found] == ["delta", "delta", "delta", "event", "end"]
    assert [message["o"] for _, message in found[:3]] == [0, 1, 2]
    assert found[-1][1]["values"] == {"b": "xxx"}
    assert opened.response.read() == b""
    opened.leave()
    assert (target.runs[0].priority, target.runs[0].deadline_s) == (3, 5.0)


def test_a_lost_response_goes_on_behind_the_last_event(client: HttpClient, target: ScriptedTarget) -> None:
    opened = Opened(client, {"graph": GRAPH, "detach_ms": 60_000})
    opened.next()
    target.step("1")
    place, message = opened.next()
    assert message["d"] == "1"
    opened.leave()
    target.step("2")
    again = Opened(client, {}, **{"Last-Event-ID": place})
    assert again.next()[1]["from"] == 1
    target.finish()
    found = [again.next()[1] for _ in range(4)]
    assert [message.get("d") for message in found[:2]] == ["2", "x"]
    assert [message["o"] for message in found[:2]] == [1, 2]
    assert found[-1]["values"] == {"b": "12x"}
    again.leave()
    assert not target.runs[0].was_cancelled
    whole = client.get(f"/v1/programs/{place.partition(':')[0]}").body.decode()
    assert whole.count("event: delta") == 3


def test_a_graph_that_cannot_be_resumed_is_cancelled_with_its_response(
    client: HttpClient, target: ScriptedTarget
) -> None:
    opened = Opened(client, {"graph": GRAPH})
    place, _ = opened.next()
    target.step()
    opened.next()
    opened.leave()
    while not target.runs[0].was_cancelled:  # bounded by the timeout of the suite
        client.get("/health")
    target.finish()
    gone = client.post("/v1/programs", {}, **{"Last-Event-ID": place})
    assert (gone.status, gone.json["error"]["code"]) == (410, "gone")


def test_a_program_can_be_waited_for(client: HttpClient, target: ScriptedTarget) -> None:
    def run() -> None:
        target.wait_for(1)
        target.finish()

    thread = threading.Thread(target=run)
    thread.start()
    found = client.post("/v1/programs", {"graph": GRAPH, "stream": False}).json
    thread.join()
    assert (found["values"], found["reason"]) == ({"b": "xxx"}, "stop")
    assert found["nodes"][0]["completions"][0]["text"] == "xxx"


def test_nodes_of_an_extension_are_read_and_added_beside_the_event_loop(
    client: HttpClient, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers, adders = [], []
    extend = ScriptedRun.extend

    def note_read(nodes: Any) -> Any:
        readers.append(threading.current_thread())
        return nodes_from_plain(nodes)

    def note_extend(self: ScriptedRun, *args: Any, **options: Any) -> None:
        adders.append(threading.current_thread())
        extend(self, *args, **options)

    monkeypatch.setattr(routes_programs, "nodes_from_plain", note_read)
    monkeypatch.setattr(ScriptedRun, "extend", note_extend)
    opened = Opened(client, {"graph": GRAPH, "open": True})
    rid = opened.next()[1]["rid"]
    more = {"id": 5, "kind": "text", "parent": 1, "parts": ["c" * 20_000]}
    assert client.post(f"/v1/programs/{rid}/extend", {"nodes": [more]}).json == {"ok": True}
    assert (len(readers), len(adders)) == (1, 1)
    assert all(thread.name.startswith("rtlang-requests") for thread in (*readers, *adders))
    opened.leave()


def test_a_running_graph_is_extended_closed_and_cancelled(client: HttpClient, target: ScriptedTarget) -> None:
    opened = Opened(client, {"graph": GRAPH, "open": True})
    rid = opened.next()[1]["rid"]
    more = {"id": 5, "kind": "text", "parent": 1, "parts": ["c"]}
    assert client.post(f"/v1/programs/{rid}/extend", {"nodes": [more], "close": True}).json == {"ok": True}
    assert (len(target.runs[0].nodes), target.runs[0].is_open) == (3, False)
    assert client.post(f"/v1/programs/{rid}/extend", {"nodes": [more]}).json["error"]["code"] == "graph"
    assert client.post(f"/v1/programs/{rid}/pause", {}).status == 404
    assert client.post(f"/v1/programs/{rid}/reject", {"n": 1}).json["error"]["param"] == "code"
    assert client.post(f"/v1/programs/{rid}/cancel", {}).status == 200
    target.step()
    assert opened.next()[1]["code"] == "aborted"
    opened.leave()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "graph"),
        ({"graph": GRAPH, "inputs": {"x": 3}}, "inputs"),
        ({"graph": GRAPH, "seed": -1}, "seed"),
        ({"graph": GRAPH, "speed": 2}, "speed"),
        ({"graph": GRAPH, "detach_ms": 600_001}, "detach_ms"),
        ({"graph": {"nodes": [{"id": 0, "kind": "loop"}]}}, "kind"),
    ],
)
def test_what_is_wrong_is_named(client: HttpClient, target: ScriptedTarget, body: Any, param: str) -> None:
    answer = client.post("/v1/programs", body)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)
    assert not target.runs


@pytest.mark.parametrize("last", ["x", "a:b", "a:-1", ":"])
def test_a_bad_last_event_id_is_refused(client: HttpClient, last: str) -> None:
    assert client.post("/v1/programs", {}, **{"Last-Event-ID": last}).status in (400, 410)
