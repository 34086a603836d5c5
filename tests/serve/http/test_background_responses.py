"""Background responses run without their client, can be read from any event on, and end when they are cancelled."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.errors import NumericsError
from rtlang.contract.request_graph import Node, Text
from rtlang.serve.http import background_responses
from rtlang.serve.network.key_table import entry_of, new_key
from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.http_client import Answer, HttpClient
from tests.support.servers.serving import serving

KEYS = {name: new_key() for name in ("ann", "bob")}
BODY = {"model": "default", "input": "hi", "background": True}


class HeldTarget(FakeTarget):
    """Generations wait while `holds` is set."""

    holds = False

    def is_held(self, node: Node) -> bool:
        return self.holds and not isinstance(node, Text)

    def set_holds(self, holds: bool) -> None:
        self.holds = holds
        self.post(lambda: None)


@pytest.fixture(scope="module")
def target() -> Iterator[HeldTarget]:
    with HeldTarget(lambda call: f"[{call.prompt}]") as target:
        yield target


@pytest.fixture(scope="module")
def url(target: HeldTarget) -> Iterator[str]:
    with serving(target, keys="\n".join(entry_of(*each) for each in KEYS.items())) as server:  # type: ignore[arg-type]
        yield server.url


@pytest.fixture
def client(url: str, target: HeldTarget) -> Iterator[HttpClient]:
    yield HttpClient(url, KEYS["ann"])
    target.set_holds(False)


def ended(client: HttpClient, made: Answer) -> dict[str, Any]:
    """The response once it has ended."""
    path = f"/v1/responses/{made.json['id']}"
    for _ in range(1000):
        found: dict[str, Any] = client.get(path).json
        if found["status"] not in ("queued", "in_progress"):
            return found
        time.sleep(0.01)
    raise AssertionError(found)


def test_a_response_is_polled_until_it_has_ended(client: HttpClient, target: HeldTarget) -> None:
    target.set_holds(True)
    made = client.post("/v1/responses", BODY)
    assert (made.status, made.json["status"], made.json["output"]) == (200, "queued", [])
    assert client.get(f"/v1/responses/{made.json['id']}").json["status"] in ("queued", "in_progress")
    early = client.post("/v1/responses", BODY | {"background": False, "previous_response_id": made.json["id"]})
    assert (early.status, early.json["error"]["code"]) == (400, "previous_response_not_completed")
    target.set_holds(False)
    found = ended(client, made)
    assert (found["status"], found["background"]) == ("completed", True)
    assert found["output"][0]["content"][0]["text"] == "[<user>hi</><assistant>]"
    body = {"model": "default", "input": "more", "previous_response_id": made.json["id"]}
    assert "[<user>hi</><assistant>]" in str(client.post("/v1/responses", body).json["output"])


def test_its_stream_is_read_from_any_event_on(client: HttpClient) -> None:
    whole = client.post("/v1/responses", BODY | {"stream": True}).events
    assert [event["sequence_number"] for event in whole] == list(range(len(whole)))
    assert [event["type"] for event in whole[:3]] == ["response.created", "response.queued", "response.in_progress"]
    assert whole[-1]["response"]["status"] == "completed"
    path = f"/v1/responses/{whole[0]['response']['id']}?stream=true"
    assert client.get(path).events == whole
    for after in (0, 4, len(whole) - 1, len(whole) + 5):
        assert client.get(f"{path}&starting_after={after}").events == whole[after + 1 :]
    for query in ("starting_after=x", "starting_after=-2"):
        assert client.get(f"{path}&{query}").json["error"]["param"] == "starting_after"


def test_a_client_that_leaves_does_not_end_it(client: HttpClient, target: HeldTarget) -> None:
    target.set_holds(True)
    connection = http.client.HTTPConnection(client.address, timeout=30)
    body = b'{"model": "default", "input": "hi", "background": true, "stream": true}'
    connection.request("POST", "/v1/responses", body, client.headers)
    first = connection.getresponse().readline()
    connection.close()
    assert first == b"event: response.created\n"
    target.set_holds(False)
    run = target.runs[-1]
    for _ in range(1000):
        if run not in target._active:
            break
        time.sleep(0.01)
    assert not run.was_cancelled


def test_a_response_is_cancelled(client: HttpClient, target: HeldTarget) -> None:
    target.set_holds(True)
    made = client.post("/v1/responses", BODY)
    path = f"/v1/responses/{made.json['id']}"
    for _ in range(2):
        found = client.post(f"{path}/cancel", b"").json
        assert (found["id"], found["status"]) == (made.json["id"], "cancelled")
    assert client.get(path).json["status"] == "cancelled"
    assert client.get(f"{path}?stream=true").events[-1]["type"] == "response.in_progress"
    for _ in range(1000):
        if all(run.was_cancelled or run not in target._active for run in target.runs):
            break
        time.sleep(0.01)
    assert not target._active
    target.set_holds(False)
    plain = client.post("/v1/responses", BODY | {"background": False}).json
    refused = client.post(f"/v1/responses/{plain['id']}/cancel", b"")
    assert (refused.status, refused.json["error"]["code"]) == (400, "not_cancellable")
    assert client.get(f"/v1/responses/{plain['id']}?stream=true").json["error"]["code"] == "not_streamable"


def test_a_failure_is_the_end_of_the_response(client: HttpClient, target: HeldTarget) -> None:
    script, target.script = target.script, lambda call: NumericsError("nan")
    try:
        found = ended(client, client.post("/v1/responses", BODY))
        assert (found["status"], found["error"]["code"]) == ("failed", "server_error")
        assert "nan" not in found["error"]["message"]
        events = client.get(f"/v1/responses/{found['id']}?stream=true").events
        assert events[-1]["type"] == "response.failed"
    finally:
        target.script = script


def test_nobody_else_sees_it(client: HttpClient, url: str) -> None:
    path = f"/v1/responses/{client.post('/v1/responses', BODY).json['id']}"
    other = HttpClient(url, KEYS["bob"])
    answers = [other.get(path), other.get(f"{path}?stream=true"), other.request("DELETE", path)]
    answers += [other.post(f"{path}/cancel", b""), other.get(f"{path}/input_items")]
    assert [answer.status for answer in answers] == [404] * 5


def test_unfinished_ones_are_bounded_and_old_events_are_dropped(
    client: HttpClient, target: HeldTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_responses, "MAX_RUNNING", 2)
    target.set_holds(True)
    made = [client.post("/v1/responses", BODY) for _ in range(3)]
    assert [answer.status for answer in made] == [200, 200, 429]
    assert made[2].json["error"]["param"] == "background"
    assert client.request("DELETE", f"/v1/responses/{made[0].json['id']}").json["deleted"]
    assert client.get(f"/v1/responses/{made[0].json['id']}").status == 404
    target.set_holds(False)
    ended(client, made[1])
    monkeypatch.setattr(background_responses, "MAX_EVENT_BYTES", 4_000)
    long = client.post("/v1/responses", BODY | {"input": "x" * 2_000})
    assert ended(client, long)["status"] == "completed"  # although its events are too large
    dropped = client.get(f"/v1/responses/{long.json['id']}?stream=true")
    assert (dropped.status, dropped.json["error"]["code"]) == (400, "events_dropped")
    for body in (BODY | {"store": False}, BODY | {"background": 1}):
        assert client.post("/v1/responses", body).json["error"]["param"] == "background"


def test_a_server_that_stops_ends_them() -> None:
    with HeldTarget(lambda call: "never") as target:
        target.set_holds(True)
        with serving(target, drain_timeout_s=0.2) as server:  # type: ignore[arg-type]
            made = HttpClient(server.url).post("/v1/responses", BODY)
            assert made.json["status"] == "queued"
            while not target.runs:
                time.sleep(0.01)
        assert target.runs[-1].was_cancelled
