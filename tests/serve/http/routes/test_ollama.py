"""Ollama's routes: replies are those of chats and completions, streams are JSON lines, errors are texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from rtlang.contract.errors import NumericsError
from tests.support.long_tests import sized
from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.fuzz import mutated, shuffled_bytes
from tests.support.servers.http_client import Answer, HttpClient
from tests.support.servers.serving import serving

USER = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
THOUGHT = "<think>a b</think>"
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call>'


@pytest.fixture(scope="module")
def target() -> Iterator[FakeTarget]:
    with FakeTarget() as target:
        target.tool_format = "hermes"
        yield target


@pytest.fixture(scope="module")
def client(target: FakeTarget) -> Iterator[HttpClient]:
    with serving(target, served_model_name=("org/one", "two")) as server:  # type: ignore[arg-type]
        yield HttpClient(server.url)


def lines(answer: Answer) -> list[dict[str, Any]]:
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    assert answer.body.endswith(b"\n")
    found = [json.loads(line) for line in answer.body.splitlines()]
    assert [each["done"] for each in found] == [False] * (len(found) - 1) + [True]
    return found


def test_a_stream_has_the_texts_and_calls_of_the_whole_reply(client: HttpClient, target: FakeTarget) -> None:
    for reply in ("", "plain é\n", THOUGHT + "then", THOUGHT + CALL, "first " + CALL + CALL):
        target.script = lambda call, reply=reply: reply  # type: ignore[misc]
        body = {"model": "two", "messages": USER, "tools": TOOLS}
        whole = client.post("/api/chat", body | {"stream": False}).json
        parts = lines(client.post("/api/chat", body))
        message: dict[str, Any] = whole["message"]
        for name in ("content", "thinking"):
            assert "".join(part["message"].get(name, "") for part in parts) == message.get(name, "")
        assert [call for part in parts for call in part["message"].get("tool_calls", ())] == message.get(
            "tool_calls", []
        )
        assert len(message.get("tool_calls", ())) == reply.count("<tool_call>")
        assert sum("tool_calls" in part["message"] for part in parts) == reply.count("<tool_call>")
        assert ("thinking" in message) is ("<think>" in reply)
        counts = ("prompt_eval_count", "eval_count", "done_reason", "model")
        assert [parts[-1][name] for name in counts] == [whole[name] for name in counts]
        assert whole["eval_count"] == len(reply)
        assert whole["total_duration"] >= whole["eval_duration"] >= 0


def test_prompts_are_chats_and_raw_ones_are_not(client: HttpClient, target: FakeTarget) -> None:
    target.script = lambda call: f"[{call.prompt}]"
    for body, text in (
        ({"prompt": "hi", "system": "be"}, "[<system>be</><user>hi</><assistant>]"),
        ({"prompt": "hi", "raw": True}, "[hi]"),
    ):
        assert client.post("/api/generate", body | {"stream": False}).json["response"] == text
        assert "".join(part["response"] for part in lines(client.post("/api/generate", body))) == text
    for path in ("/api/chat", "/api/generate"):
        assert client.post(path, {"model": "two:latest"}).json["done_reason"] == "load"


def test_models_are_found_by_name(client: HttpClient) -> None:
    names = [each["model"] for each in client.get("/api/tags").json["models"]]
    assert names == ["org/one", "two"]
    assert [each["name"] for each in client.get("/api/ps").json["models"]] == ["org/one"]
    for name in (*names, "one", "two:latest"):
        assert client.post("/api/show", {"model": name}).json["capabilities"] == ["completion", "tools", "thinking"]
    assert client.get("/api/version").json["version"].count(".") == 2
    assert client.post("/api/show", {"model": "three"}).status == 404


def test_errors_are_texts(client: HttpClient, target: FakeTarget) -> None:
    for path, body, status, name in (
        ("/api/chat", {"model": "three", "messages": USER}, 404, "three"),
        ("/api/chat", {"messages": USER, "options": {"num_predict": 0}}, 400, "options.num_predict = 0"),
        ("/api/chat", {"messages": USER, "options": {"top_k": "x"}}, 400, "options.top_k = 'x'"),
        ("/api/generate", {"prompt": "x", "raw": True, "options": {"stop": [1]}}, 400, "options.stop"),
        ("/api/chat", {"messages": USER, "format": "yaml"}, 400, "format"),
        ("/api/chat", {"messages": USER, "tools": [{"type": "x"}]}, 400, "tools[0].type"),
        ("/api/generate", {"prompt": "x", "suffix": "y"}, 400, "suffix"),
        ("/api/embed", {"input": "x"}, 501, "embeddings"),
        ("/api/pull", {"model": "x"}, 501, "pulls"),
    ):
        answer = client.post(path, body)
        assert answer.status == status, answer.body
        assert name in answer.json["error"]
    target.script = lambda call: NumericsError("nan")
    for stream in (True, False):
        answer = client.post("/api/chat", {"messages": USER, "stream": stream})
        assert answer.status == 500
        assert "nan" not in answer.json["error"]


def test_any_body_is_answered(client: HttpClient, target: FakeTarget) -> None:
    target.script = lambda call: "ab" + CALL
    rng = Random(7)
    bodies = (
        ("/api/chat", {"model": "two", "messages": USER, "tools": TOOLS, "options": {"num_predict": 3}, "think": True}),
        ("/api/generate", {"model": "two", "prompt": "x", "raw": True, "format": "json", "logprobs": True}),
        ("/api/generate", {"model": "two", "prompt": "x", "system": "y", "options": {"stop": ["z"]}}),
        ("/api/show", {"model": "two"}),
    )
    for _ in range(sized(10_000, usual=80)):
        path, body = rng.choice(bodies)
        data = json.dumps(mutated(body, rng, rng.choice((1, 2, 4)))).encode()
        answer = client.post(path, shuffled_bytes(data, rng) if rng.random() < 0.1 else data)
        assert answer.status < 500 or answer.status == 501, (path, data, answer.body)
        if answer.status >= 400:
            assert isinstance(answer.json["error"], str)
