"""Each request has one record: an id in every answer, one line in the log, and counters by principal, whatever its door and its end."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.process.logs import REQUEST_LOGGER, JsonFormatter, TextFormatter
from rtlang.contract.request_graph import Apply, Arg, RequestGraph
from rtlang.runtime.runtime import Runtime
from rtlang.serve.network.key_table import entry_of
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import RawSocket, serving
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET = "a text that no line may hold"


class Lines(logging.Handler):
    """The lines of requests, as maps; waits for those that are expected."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, request_id: str) -> dict[str, Any]:
        """The only line of a request."""
        wait_until(lambda: len(self._found(request_id)) > 0)
        [line] = self._found(request_id)
        return line

    def _found(self, request_id: str) -> list[dict[str, Any]]:
        lines = [json.loads(JsonFormatter().format(record)) for record in tuple(self.records)]
        return [line for line in lines if line["request_id"] == request_id]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger(REQUEST_LOGGER)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime(dtype="float32", num_pages=300) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def url(runtime: Runtime) -> Iterator[str]:
    spaces = {"alice": "a", "bob": "b", "operator": ""}
    keys = "".join(entry_of(name, name) + f'namespace = "{space}"\n' for name, space in spaces.items())
    config = ServeConfig(port=0, keys=keys)
    with running_server(runtime, config, TokenizerInfo("tiny"), metrics=runtime.metrics) as url:
        yield url


def test_a_completion_has_a_line_with_all_of_its_cost(url: str, lines: Lines) -> None:
    body = {"prompt": SECRET, "max_tokens": 7, "temperature": 0}
    given = {"X-Request-Id": "mine-1", "traceparent": TRACE}
    answer = HttpClient(url, "alice").post("/v1/completions", body, **given)
    assert answer.status == 200, answer.body
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.json["id"] == "cmpl-mine-1"
    line = lines.of("mine-1")
    assert line["principal"] == "alice"
    assert line["door"] == "POST /v1/completions"
    assert line["model"] == "tiny"
    assert (line["status"], line.get("code")) == (200, None)
    assert line["tokens"]["output"] >= answer.json["usage"]["completion_tokens"] > 0
    assert line["tokens"]["prompt"] == answer.json["usage"]["prompt_tokens"]
    assert line["work_s"]["steps"] > 0
    assert line["trace_id"] == TRACE[3:35]
    assert 0 < line["first_token_s"] <= line["duration_s"]
    assert sum(line["finish_reasons"].values()) == 1
    assert SECRET not in json.dumps(line)
    assert "Bearer" not in json.dumps(line)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/completions", {"prompt": 5}, 400),
        ("/v1/completions", {"prompt": "x", "model": "other"}, 404),
        ("/v1/chat/completions", {"messages": [], "stream": True}, 400),
        ("/nowhere/at/all", {}, 404),
        ("/v1/programs/unknown/cancel", {}, 410),
        ("/v1/embeddings", {}, 404),
    ],
)
def test_a_refused_request_has_its_id_in_answer_body_and_line(
    url: str, lines: Lines, path: str, body: dict[str, Any], status: int
) -> None:
    answer = HttpClient(url, "bob").post(path, body)
    assert answer.status == status, answer.body
    request_id = answer.headers["x-request-id"]
    assert answer.json["error"]["request_id"] == request_id
    line = lines.of(request_id)
    assert (line["principal"], line["status"], line["code"]) == ("bob", status, answer.json["error"]["code"])
    assert "at/all" not in json.dumps(line), "paths of clients are no doors"


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (b"GARBAGE\r\n\r\n", 400, "bad_request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 200_000 + b"\r\n\r\n", 431, "header_too_large"),
    ],
)
def test_a_request_that_is_refused_before_it_is_read_has_an_id_and_a_line(
    url: str, lines: Lines, request_bytes: bytes, status: int, code: str
) -> None:
    with RawSocket(url) as raw:
        raw.socket.sendall(request_bytes)
        head, _, body = raw.file.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status)
    request_id = json.loads(body)["error"]["request_id"]
    assert b"x-request-id: " + request_id.encode() in head
    line = lines.of(request_id)
    assert (line["door"], line["principal"], line["status"], line["code"]) == ("unread", "-", status, code)


@pytest.mark.parametrize(
    ("path", "headers", "status", "code", "door"),
    [
        ("/elsewhere", {"X-Request-Id": "mine-2", "traceparent": TRACE}, 404, "not_found", "GET unmatched"),
        ("/v1/stream", {}, 400, "bad_request", "GET /v1/stream"),
    ],
)
def test_a_refused_handshake_has_an_id_and_a_line(
    url: str, lines: Lines, path: str, headers: dict[str, str], status: int, code: str, door: str
) -> None:
    key = "dGhlIHNhbXBsZSBub25jZQ==" if path == "/elsewhere" else "short"
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    sent = "".join(f"{name}: {value}\r\n" for name, value in (upgrade | headers).items())
    with RawSocket(url) as raw:
        raw.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{sent}\r\n".encode())
        head, _, _ = raw.file.read().decode().partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}")
    (request_id,) = [line.partition(": ")[2] for line in head.splitlines() if line.lower().startswith("x-request-id")]
    assert request_id == headers.get("X-Request-Id", request_id)
    line = lines.of(request_id)
    assert (line["door"], line["status"], line["code"]) == (door, status, code)
    assert line.get("trace_id") == (TRACE[3:35] if headers else None)


def test_a_body_that_is_late_is_told_under_the_id_of_its_request(lines: Lines) -> None:
    with serving(request_timeout_s=0.2) as server, RawSocket(server.url) as raw:
        raw.socket.sendall(
            b"POST /v1/programs HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: late\r\nContent-Length: 9\r\n\r\n"
        )
        head, _, body = raw.file.read().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408")
        assert json.loads(body)["error"]["request_id"] == "late"
        line = lines.of("late")
        assert (line["door"], line["principal"], line["status"]) == ("POST /v1/programs", "local", 408)
        assert line["code"] == "timeout"


def test_a_client_that_leaves_within_its_body_has_a_line(lines: Lines) -> None:
    with serving() as server:
        with RawSocket(server.url) as raw:
            raw.socket.sendall(
                b"POST /v1/programs HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: gone\r\nContent-Length: 9\r\n\r\n{"
            )
        assert lines.of("gone")["status"] == 499


def test_ids_of_clients_cannot_forge_lines_or_fill_them(url: str, lines: Lines) -> None:
    for forged in ("a\tb", "x" * 129, "é", "a b", ""):
        answer = HttpClient(url, "bob").get("/version", **{"X-Request-Id": forged})
        request_id = answer.headers["x-request-id"]
        assert request_id != forged
        assert len(request_id) == 32
        lines.of(request_id)
    with WireClient(url, headers={"Authorization": "Bearer bob"}) as client:
        client.greet()
        context = {"request_id": "a\nb", "traceparent": "00-\n", "tracestate": "x" * 10_000}
        client.send(t="open", s=1, kind="generate", body={"prompt": "x", "params": {"max_tokens": 1}}, context=context)
        line = lines.of(client.receive()["request_id"])
        assert "trace_id" not in line
        assert len(json.dumps(line)) < 1000


def test_a_request_without_a_key_belongs_to_nobody(url: str, lines: Lines) -> None:
    answer = HttpClient(url, "wrong").post("/v1/completions", {"prompt": "x"})
    assert answer.status == 401
    line = lines.of(answer.headers["x-request-id"])
    assert (line["principal"], line["code"]) == ("-", "invalid_api_key")


def test_small_values_of_a_program_count_as_work_in_line_and_metrics(url: str, runtime: Runtime, lines: Lines) -> None:
    name = "rtlang_engine_principal_work_seconds_total{bob,value}"
    before = runtime.metrics.snapshot().get(name, 0.0)
    graph = RequestGraph(tuple(Apply(number, "upper", (Arg("x"),)) for number in range(500)), ("x",))
    body = {"graph": graph.to_plain(), "inputs": {"x": "a"}, "stream": False}
    answer = HttpClient(url, "bob").post("/v1/programs", body)
    assert answer.status == 200, answer.body
    worked = lines.of(answer.headers["x-request-id"])["work_s"]["value"]
    assert worked >= 0.001, "500 nodes of the engine thread"
    wait_until(lambda: runtime.metrics.snapshot()[name] - before >= worked - 0.001)
    assert runtime.metrics.snapshot()[name] - before < worked + 0.05


def test_probes_write_no_line(url: str, lines: Lines) -> None:
    assert HttpClient(url).get("/health").headers["x-request-id"]
    HttpClient(url, "bob").get("/version", **{"X-Request-Id": "after"})
    assert lines.of("after")["door"] == "GET /version"
    assert len(lines.records) == 1


def test_streams_of_sockets_have_lines_and_ids(url: str, lines: Lines) -> None:
    with WireClient(url, headers={"Authorization": "Bearer alice"}) as client:
        client.greet()
        body = {"prompt": "x", "params": {"max_tokens": 3, "ignore_eos": True}}
        client.send(t="open", s=1, kind="generate", body=body, context={"request_id": "socket-1", "door": "forged"})
        assert client.receive()["request_id"] == "socket-1"
        line = lines.of("socket-1")
        assert (line["principal"], line["door"], line["status"]) == ("alice", "open", 200)
        assert line["tokens"]["output"] == 3
        client.send(t="open", s=2, kind="generate", body={"prompt": "x", "unknown": 1})
        refused = next(each for each in iter(client.receive, None) if each["t"] == "error")
        line = lines.of(refused["request_id"])
        assert (line["door"], line["status"], line["code"]) == ("open", refused["status"], refused["code"])


def test_a_graph_that_its_client_leaves_counts_once_it_has_ended(url: str, runtime: Runtime, lines: Lines) -> None:
    with WireClient(url, headers={"Authorization": "Bearer bob"}) as client:
        client.greet()
        params = {"max_tokens": 400, "ignore_eos": True}
        client.send(t="open", s=1, kind="generate", body={"prompt": "x", "params": params}, credit=5)
        request_id = client.receive()["request_id"]
        assert client.receive()["t"] == "delta"
        assert runtime.metrics.snapshot()["rtlang_principal_open_requests{bob}"] == 1
        client.websocket.socket.close()
        line = lines.of(request_id)
        assert (line["status"], line["code"]) == (499, "aborted")
        assert line["tokens"]["output"] >= 1
        assert runtime.metrics.snapshot()["rtlang_principal_open_requests{bob}"] == 0


def test_principals_see_their_own_metrics_and_operators_all(url: str) -> None:
    for name in ("alice", "bob"):
        body = {"prompt": "x", "max_tokens": 2}
        assert HttpClient(url, name).post("/v1/completions", body).status == 200
    own = HttpClient(url, "alice").get("/metrics").body.decode()
    assert 'principal="alice"' in own
    assert 'principal="bob"' not in own
    everything = HttpClient(url, "operator").get("/metrics").body.decode()
    for name in ("alice", "bob"):
        assert f'rtlang_engine_principal_tokens_total{{kind="output",principal="{name}"}}' in everything
        assert f'rtlang_principal_requests_total{{principal="{name}",status="200"}}' in everything


def test_no_line_is_written_if_the_operator_wants_none(lines: Lines) -> None:
    with serving(request_log=False) as server:
        assert HttpClient(server.url).get("/version").headers["x-request-id"]
    assert lines.records == []


def test_a_line_of_text_has_the_same_fields() -> None:
    record = logging.makeLogRecord({"name": REQUEST_LOGGER, "msg": "request", "levelname": "INFO"})
    record.__dict__ |= {
        "request_id": 'a"b',
        "door": "GET /x",
        "tokens": {"prompt": 3},
        "waits_s": {},
        "moves": ["x ended"],
    }
    line = TextFormatter().format(record)
    assert line.endswith('request request_id="a\\"b" door="GET /x" tokens.prompt=3 moves="[\'x ended\']"')
    record.name = "other"
    assert TextFormatter().format(record).endswith("request")
