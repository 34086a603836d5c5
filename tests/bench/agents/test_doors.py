"""The doors read streams as they come; `test_replay.py` runs them against a server."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from rtlang.bench.agents.doors import ChatDoor, HttpConnection, Request, assistant_message
from rtlang.contract.errors import RtlangError

REQUEST = Request([{"role": "user", "content": "hi"}], [], True, 8, "key")


@contextmanager
def answering(status: int, body: str) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers every request alike; its address, and the bodies that it got."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", bodies
        finally:
            server.shutdown()


def stream(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}},
}


def test_a_streamed_call_is_put_together() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"path"'}}
    rest = {"index": 0, "function": {"arguments": ': "a"}'}}
    events = stream(chunk(role="assistant", content=""), chunk(tool_calls=[call]), chunk(tool_calls=[rest]), USAGE)
    with answering(200, events) as (url, bodies):
        reply = ChatDoor(url).ask(REQUEST)
    assert reply.message == assistant_message("", [{"id": "c1", "name": "read", "arguments": '{"path": "a"}'}])
    assert (reply.num_prompt, reply.num_cached, reply.num_output) == (7, 5, 3)
    assert (bodies[0]["tool_choice"], bodies[0]["prompt_cache_key"]) == ("required", "key")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, '{"error": {"message": "no such field"}}', "400 .*no such field"),
        (200, stream({"error": {"message": "engine died"}}), "engine died"),
        (200, stream(chunk(content="a")), "without usage"),
    ],
)
def test_a_refusal_and_an_early_end_are_errors(status: int, body: str, told: str) -> None:
    with answering(status, body) as (url, _), pytest.raises(RtlangError, match=told):
        ChatDoor(url).ask(REQUEST)


def test_a_plain_answer_is_read_whole() -> None:
    with answering(200, '{"tokens": [1, 2]}') as (url, bodies):
        assert HttpConnection(url).json("POST", "/tokenize", {"a": 1}) == {"tokens": [1, 2]}
    assert bodies == [{"a": 1}]
