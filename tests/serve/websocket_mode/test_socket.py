"""WebSocket mode over real sockets: turns and what they continue, errors, ends, and clients that go or do not read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Opcode

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import EngineDeadError, NumericsError, OverloadError
from rtlang.contract.request_graph import Generate
from rtlang.serve import output_flow
from rtlang.serve import server as server_module
from rtlang.serve.server import Server
from tests.support.programs.fake_target import FakeTarget
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.mode_client import ModeClient, output_text
from tests.support.servers.serving import RawSocket, serving
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with FakeTarget(lambda call: f"[{call.prompt}]") as target, serving(target) as server:  # type: ignore[arg-type]
        yield server.url


def turn(client: ModeClient, **body: Any) -> dict[str, Any]:
    """The last frame of a response."""
    client.create(**body)
    frames = client.receive_end()
    numbers = [frame["sequence_number"] for frame in frames if "sequence_number" in frame]
    assert numbers == list(range(len(numbers)))
    return frames[-1]


def test_turns_continue_each_other_without_being_stored(url: str) -> None:
    with ModeClient(url) as client:
        first = turn(client, input="1", instructions="be", store=False)["response"]
        second = turn(client, input="2", previous_response_id=first["id"], store=False)
        answer = "[<system>be</><user>1</><assistant>]"
        assert output_text(second) == f"[<user>1</><assistant>{answer}</><user>2</><assistant>]"
        lost = turn(client, input="3", previous_response_id=first["id"], store=False)
        assert (lost["status"], lost["error"]["code"]) == (400, "previous_response_not_found")
        dropped = turn(client, input="3", previous_response_id=second["response"]["id"], store=False)
        assert dropped["error"]["param"] == "previous_response_id", "the error before has dropped the lane's response"
        stored = turn(client, input="4")["response"]
        third = turn(client, input="5", previous_response_id=stored["id"], store=False)["response"]
        http = HttpClient(url)
        assert http.get(f"/v1/responses/{stored['id']}").status == 200
        assert http.get(f"/v1/responses/{third['id']}").status == 404
        with ModeClient(url) as other:
            assert output_text(turn(other, input="6", previous_response_id=stored["id"])).count("<user>") >= 2
            unknown = turn(other, input="6", previous_response_id=third["id"])
            assert unknown["error"]["code"] == "previous_response_not_found", "another connection's"


def test_a_prompt_is_prepared_without_output(url: str) -> None:
    with ModeClient(url) as client:
        client.create(input="1", instructions="be", store=False, generate=False)
        frames = client.receive_end()
        assert [frame["type"].rpartition(".")[2] for frame in frames] == ["created", "in_progress", "completed"]
        response = frames[-1]["response"]
        assert (response["output"], response["status"]) == ([], "completed")
        done = turn(client, input="2", previous_response_id=response["id"], store=False)
        assert output_text(done) == "[<user>1</><user>2</><assistant>]"
    with serving() as server, ModeClient(server.url) as client:
        client.create(input="1", generate=False)
        server.target.wait_for(1)
        (generate,) = (node for node in server.target.runs[0].nodes if isinstance(node, Generate))
        assert (generate.params.max_tokens, generate.constraint) == (0, None)
        server.target.finish()
        assert client.receive_end()[-1]["response"]["usage"]["output_tokens"] == 0


def test_lanes_run_side_by_side_and_a_lane_one_by_one() -> None:
    with serving() as server, ModeClient(server.url) as client:
        for lane in ("a", "b", "a", None):
            client.create(input="x", max_output_tokens=1, **({} if lane is None else {"stream_id": lane}))
        server.target.wait_for(3)
        assert len(server.target.runs) == 3, "the second response of a lane waits"
        ends: list[str | None] = []
        server.target.finish()
        while len(ends) < 4:
            frame = client.receive()
            if frame["type"] == "response.incomplete":
                ends.append(frame.get("stream_id"))
                if len(ends) == 3:
                    server.target.wait_for(4)
                    server.target.finish()
        assert sorted(ends[:3], key=str) == [None, "a", "b"]
        assert ends[3] == "a"


def test_invalid_messages_are_answered_and_the_connection_goes_on(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rtlang.requests"), ModeClient(url) as client:
        sent: list[tuple[str | bytes, int, str, str | None]] = [
            ("{", 400, "protocol", None),
            ("[1]", 400, "protocol", None),
            (b"\x00", 400, "protocol", None),
            ('{"type": "response.append"}', 400, "parameter", "type"),
            ('{"type": "response.create", "background": true}', 400, "parameter", "background"),
            ('{"type": "response.create", "stream_id": ""}', 400, "invalid_stream_id", "stream_id"),
            ('{"type": "response.create", "frob": 1, "input": "x"}', 400, "parameter", "frob"),
            ('{"type": "response.create", "model": "other-model", "input": "x"}', 0, "", None),
            ('{"type": "response.create"}', 400, "parameter", "input"),
            ("[" * 100 + "]" * 100, 400, "protocol", None),
        ]
        for message, status, code, param in sent:
            client.websocket.send(message)
            frame = client.receive_end()[-1]
            if status:
                assert frame["type"] == "error", frame
                assert (frame["status"], frame["error"]["code"], frame["error"]["param"]) == (status, code, param)
        client.send({"type": "response.steer", "previous_response_id": "r", "input": "x"})
        steer = client.receive()
        assert (steer["type"], steer["error"]["code"]) == ("response.steer.failed", "steering_not_supported")
        client.send({"type": "response.processed", "response_id": "r"})
        assert turn(client, input="1")["type"] == "response.completed"
    lines = [vars(record) for record in caplog.records if vars(record).get("door") == "WS /v1/responses"]
    assert len(lines) == len(sent) + 1
    assert all(line["request_id"] and line["principal"] == "local" for line in lines)
    assert len({line["request_id"] for line in lines}) == len(lines)
    assert lines[-1]["tokens"]


def test_a_message_that_is_too_long_is_refused_and_a_far_longer_one_closes() -> None:
    with serving(max_frame_bytes=1000) as server:
        with ModeClient(server.url) as client:
            client.create(input="x" * 1000)
            frame = client.receive()
            assert (frame["status"], frame["error"]["code"]) == (413, "body_too_large")
            client.create(input="x" * 2000)
            with pytest.raises(ConnectionClosed) as caught:
                client.receive()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1009
        with RawSocket(server.url) as raw:
            raw.upgrade("/v1/responses")
            assert raw.status() == 101
            for _ in range(1100):
                raw.send(Opcode.TEXT if _ == 0 else Opcode.CONT, b"", fin=False)
            assert json.loads(raw.receive()[1])["error"]["code"] == "protocol"
            assert raw.close_code() == 1002


def test_failures_are_typed_before_and_after_the_first_event() -> None:
    with serving() as server, ModeClient(server.url) as client:
        server.target.refusal = OverloadError("full", 3.0)
        frame = turn(client, input="1", stream_id="a")
        assert (frame["status"], frame["error"]["code"], frame["stream_id"]) == (429, "overload", "a")
        assert frame["headers"] == {"retry-after": "3.0"}
        server.target.refusal = None
        client.create(input="1", store=False)
        server.target.wait_for(1)
        server.target.step("part")
        assert client.receive()["type"] == "response.created"
        server.target.runs[0].finish_with(EngineDeadError("secret: the engine was restarted"))
        failed = client.receive_end()[-1]
        assert failed["type"] == "response.failed"
        assert failed["response"]["error"]["code"] == "server_error"
        client.create(input="1", store=False)
        server.target.wait_for(2)
        server.target.runs[1].finish_with(NumericsError("nan"))
        frame = client.receive()
        assert (frame["type"], frame["status"]) == ("error", 500)
        assert "nan" not in frame["error"]["message"]
        client.create(input="again", max_output_tokens=1)
        server.target.wait_for(3)
        server.target.finish()
        assert client.receive_end()[-1]["type"] == "response.incomplete"


def test_a_long_wait_shows_that_the_response_is_in_progress() -> None:
    with serving() as server, ModeClient(server.url) as client:
        client.create(input="1")
        server.target.wait_for(1)
        assert [client.receive()["type"] for _ in range(2)] == ["response.created", "response.in_progress"]
        server.target.runs[0].finish_with(EngineDeadError("secret: the engine was restarted"))
        assert client.receive()["type"] == "response.failed"


def test_a_client_that_leaves_cancels_its_responses_and_leaves_nothing(url: str) -> None:
    with serving() as server:
        with ModeClient(server.url) as client:
            client.create(input="1")
            client.create(input="2", stream_id="b")
            client.create(input="3")
            server.target.wait_for(2)
        wait_until(lambda: all(run.was_cancelled for run in server.target.runs))
        server.target.finish()
        wait_until(lambda: server.count("ws_connections") == 0)
        assert len(server.target.runs) == 2, "the one that waited never ran"


def test_an_old_connection_ends_when_its_response_has() -> None:
    with serving(responses_connection_s=0.2) as server, ModeClient(server.url) as client:
        client.create(input="1", max_output_tokens=1)
        server.target.wait_for(1)
        time.sleep(0.3)
        refused = None
        client.create(input="2", stream_id="late")
        refused = client.receive()
        assert (refused["error"]["code"], refused["stream_id"]) == ("websocket_connection_limit_reached", "late")
        server.target.finish()
        assert client.receive_end()[-1]["type"] == "response.incomplete"
        last = client.receive()
        assert (last["status"], last["error"]["code"]) == (400, "websocket_connection_limit_reached")
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1000


def test_a_client_that_does_not_read_is_closed_and_its_response_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_flow, "CLOSE_TIMEOUT_S", 0.1)
    with serving(slow_timeout_s=0.3, send_buffer_bytes=1 << 30) as server, RawSocket(server.url, 4096) as raw:
        raw.upgrade("/v1/responses")
        assert raw.status() == 101
        body = {"type": "response.create", "model": "default", "input": "x", "max_output_tokens": 100_000}
        raw.send(Opcode.TEXT, json.dumps(body).encode())
        server.target.wait_for(1)
        run = server.target.runs[0]
        for _ in range(240):  # more than the kernel takes
            run.advance("x" * 50_000)
        wait_until(lambda: run.was_cancelled)
        wait_until(lambda: server.count("ws_connections") == 0)
        assert server.count("ws_slow_closed_total") == 1


def test_a_response_that_grows_faster_than_it_is_sent_fails_alone() -> None:
    with serving(send_buffer_bytes=100_000) as server, ModeClient(server.url) as client:
        client.create(input="x", max_output_tokens=100_000)
        server.target.wait_for(1)
        run = server.target.runs[0]
        while not run.was_cancelled:
            run.advance("x" * 90_000)
        assert client.receive_end()[-1]["type"] in ("response.failed", "error")
        client.create(input="x", max_output_tokens=1)
        server.target.wait_for(2)
        server.target.finish()
        assert client.receive_end()[-1]["type"] == "response.incomplete"


def test_a_server_that_stops_ends_connections_after_their_responses() -> None:
    target, listening = ScriptedTarget(), threading.Event()
    server = Server(target, None, ServeConfig(port=0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(on_listening=listening.set)))
    thread.start()
    assert listening.wait(20)
    with ModeClient(server.url) as client, ModeClient(server.url) as other:
        client.create(input="1", max_output_tokens=1)
        target.wait_for(1)
        server.stop()
        assert other.receive()["error"]["code"] == "overload"
        client.create(input="2", stream_id="late")
        late = client.receive()
        assert (late["status"], late["stream_id"]) == (503, "late")
        target.finish()
        assert client.receive_end()[-1]["type"] == "response.incomplete"
        assert client.receive()["status"] == 503
        for each in (client, other):
            with pytest.raises(ConnectionClosed) as caught:
                each.receive()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1001
    thread.join(20)
    assert not thread.is_alive()


def test_the_connections_of_a_removed_key_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "KEYS_INTERVAL_S", 0.02)
    file = tmp_path / "keys.json"

    def write(*names: str) -> None:
        entries = [{"name": name, "sha256": hashlib.sha256(f"key of {name}".encode()).hexdigest()} for name in names]
        file.with_suffix(".new").write_text(json.dumps({"keys": entries}))
        file.with_suffix(".new").rename(file)

    write("ann", "bob")
    with (
        serving(keys_file=str(file)) as server,
        ModeClient(server.url, {"Authorization": "Bearer key of ann"}) as client,
    ):
        client.create(input="1")
        server.target.wait_for(1)
        write("bob")
        assert client.receive()["error"]["code"] == "aborted"
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4401
        wait_until(lambda: server.target.runs[0].was_cancelled)
