"""The Messages API over HTTP: whole and streamed messages, counts, models, failures, and bodies of every kind.

tests/clients/programs/use_anthropic.py and node/use_anthropic.mjs check the same routes with the published clients and their types.
"""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import NumericsError
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.long_tests import sized
from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.http_client import Answer, HttpClient, sse_events
from tests.support.servers.serving import serving

MESSAGES = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"], "additionalProperties": False}
TOOL = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}


@pytest.fixture(scope="module")
def target() -> Iterator[FakeTarget]:
    with FakeTarget(lambda call: f"[{call.prompt}]") as target:
        yield target


@pytest.fixture(scope="module")
def client(target: FakeTarget) -> Iterator[HttpClient]:
    with serving(target) as server:  # type: ignore[arg-type]
        yield HttpClient(server.url)


@pytest.fixture(scope="module")
def engine() -> Iterator[HttpClient]:
    with rt.Runtime("rtlang:tiny") as runtime:
        info = TokenizerInfo("m", runtime.text_service.info.vocab_size, 1024, runtime.tool_format)
        with running_server(runtime, ServeConfig(port=0), info) as url:
            yield HttpClient(url)


def post(client: HttpClient, **more: Any) -> Answer:
    return client.post("/v1/messages?beta=true", {"model": "default", "max_tokens": 9, "messages": MESSAGES} | more)


def chunks_of(answer: Answer) -> list[dict[str, Any]]:
    found = [(name, json.loads(data)) for name, data in sse_events(answer.body)]
    assert all(name == data["type"] for name, data in found)
    return [data for _, data in found]


def test_a_message_answers_the_whole_conversation(client: HttpClient) -> None:
    history = [
        *MESSAGES,
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": [{"type": "text", "text": "?"}]},
    ]
    made = post(client, messages=history, system=[{"type": "text", "text": "be"}]).json
    expected = "[<system>be</><user>hi</><assistant>ho</><user>?</><assistant>]"
    assert made["content"] == [{"type": "text", "text": expected, "citations": None}]
    assert (made["type"], made["role"], made["stop_reason"]) == ("message", "assistant", "end_turn")
    assert made["id"].startswith("msg_")
    continued = post(client, messages=history[:2]).json
    assert continued["content"][0]["text"] == "[<user>hi</><assistant>ho]"


def test_a_stream_has_named_events_and_no_mark_after_the_last(client: HttpClient) -> None:
    chunks = chunks_of(post(client, stream=True))
    assert chunks[0]["type"] == "message_start"
    assert chunks[-1] == {"type": "message_stop"}
    text = "".join(chunk["delta"]["text"] for chunk in chunks if chunk["type"] == "content_block_delta")
    assert text == post(client).json["content"][0]["text"]


def test_a_failure_is_an_error_response_or_the_last_event(client: HttpClient, target: FakeTarget) -> None:
    script, target.script = target.script, lambda call: NumericsError("nan")
    try:
        for stream in (False, True):
            answer = post(client, stream=stream)
            assert (answer.status, answer.json["error"]["type"]) == (500, "api_error")
            assert b"nan" not in answer.body
    finally:
        target.script = script


def test_models_have_the_shape_that_the_header_asks_for(engine: HttpClient) -> None:
    version = {"anthropic-version": "2023-06-01"}
    listed = engine.get("/v1/models?limit=5", **version).json
    assert ([model["id"] for model in listed["data"]], listed["has_more"]) == (["m"], False)
    assert engine.get("/v1/models/m", **version).json == listed["data"][0]
    assert listed["data"][0]["max_input_tokens"] == 1024
    assert engine.get("/v1/models/m").json["object"] == "model"
    answer = engine.get("/v1/models?limit=0", **version)
    assert (answer.status, answer.json["error"]["param"]) == (400, "limit")


COUNTED: list[dict[str, Any]] = [
    {},
    {"system": "be brief"},
    {"tools": [TOOL], "tool_choice": {"type": "any"}},
    {"tools": [TOOL, {"type": "bash_20250124", "name": "bash"}]},
    {"thinking": {"type": "enabled", "budget_tokens": 5}, "output_config": {"effort": "low"}},
    {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    {
        "messages": [
            *MESSAGES,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "so", "signature": "x"},
                    {"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "door"}]},
            {"role": "system", "content": "late"},
        ]
    },
    {"messages": [*MESSAGES, {"role": "assistant", "content": "The"}]},
]


def test_the_count_is_that_of_the_prompt_which_is_computed(engine: HttpClient) -> None:
    for more in COUNTED:
        body = {"model": "m", "messages": MESSAGES} | more
        counted = engine.post("/v1/messages/count_tokens", body)
        whole = engine.post("/v1/messages", body | {"max_tokens": 60})
        chunks = chunks_of(engine.post("/v1/messages", body | {"max_tokens": 60, "stream": True}))
        assert counted.status == whole.status == 200, (counted.body, whole.body)
        usages = (whole.json["usage"], chunks[0]["message"]["usage"], chunks[-2]["usage"])
        sums = [each["input_tokens"] + each["cache_read_input_tokens"] for each in usages]
        assert sums == [counted.json["input_tokens"]] * 3
        assert usages[1]["input_tokens"] == usages[2]["input_tokens"]
    long = {"model": "m", "messages": [{"role": "user", "content": "word " * 5000}]}
    assert engine.post("/v1/messages/count_tokens", long).json["input_tokens"] > 5000
    answer = engine.post("/v1/messages", long | {"max_tokens": 1})
    assert (answer.status, answer.json["error"]["message"][:18]) == (400, "prompt is too long")


def test_schemas_bind_tools_and_texts(engine: HttpClient) -> None:
    options = {"model": "m", "messages": MESSAGES, "max_tokens": 90}
    made = engine.post(
        "/v1/messages", options | {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "look"}}
    ).json
    (use,) = made["content"]
    assert (use["name"], use["input"]["n"] in (1, 22), made["stop_reason"]) == ("look", True, "tool_use")
    form = {"type": "json_schema", "schema": SCHEMA}
    made = engine.post("/v1/messages", options | {"output_config": {"format": form}}).json
    assert json.loads(made["content"][-1]["text"])["n"] in (1, 22)
    warm = engine.post(
        "/v1/messages", options | {"max_tokens": 0, "tools": [TOOL], "tool_choice": {"type": "any"}}
    ).json
    assert (warm["content"], warm["stop_reason"]) == ([], "max_tokens")
    bash = [{"type": "bash_20250124", "name": "bash"}]
    made = engine.post(
        "/v1/messages", options | {"max_tokens": 600, "tools": bash, "tool_choice": {"type": "any"}}
    ).json
    assert made["content"][0]["name"] == "bash"
    assert set(made["content"][0]["input"]) <= {"command", "restart"}


def mutated(rng: random.Random, value: Any) -> Any:
    """A value in which something is changed, dropped, repeated or put in another's place."""
    odd = [
        None,
        True,
        -1,
        0,
        1e300,
        "",
        "x",
        "é\ud83d\ude42",
        [],
        {},
        [[]],
        {"type": "text"},
        ["x"] * 3,
        "ephemeral",
        "tool_use",
    ]
    if rng.random() < 0.12:
        return rng.choice(odd)
    if isinstance(value, dict):
        items = [(name, mutated(rng, each)) for name, each in value.items() if rng.random() > 0.05]
        if rng.random() < 0.05:
            items.append(
                (rng.choice(["name", "type", "content", "cache_control", "input", "text", "bogus"]), rng.choice(odd))
            )
        return dict(items)
    if isinstance(value, list):
        found = [mutated(rng, each) for each in value if rng.random() > 0.05]
        return found + found[: rng.randrange(2)]
    return value


def seeds() -> list[dict[str, Any]]:
    call = COUNTED[6]["messages"]
    blocks = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"},
        {"type": "search_result", "source": "u", "title": "t", "content": [{"type": "text", "text": "a"}]},
        {"type": "image", "source": {"type": "url", "url": "u"}},
        {"type": "redacted_thinking", "data": "x"},
    ]
    found: list[dict[str, Any]] = [
        {"model": "default", "max_tokens": 3, "messages": MESSAGES} | each for each in COUNTED
    ]
    found.append(found[0] | {"messages": [*call, {"role": "user", "content": blocks}], "stream": True})
    found.append(found[0] | {"stop_sequences": ["x"], "metadata": {"user_id": "a"}, "temperature": 0.5, "top_k": 3})
    return found


def test_any_body_gets_an_answer_of_the_api(target: FakeTarget, client: HttpClient) -> None:
    rng, examples = random.Random(44), seeds()
    connection = http.client.HTTPConnection(client.address, timeout=30)
    statuses = set()
    for _ in range(sized(100_000, usual=400)):
        body = mutated(rng, rng.choice(examples))
        data = json.dumps(body).encode()
        if rng.random() < 0.05:
            at = rng.randrange(len(data))
            data = data[:at] + rng.randbytes(rng.randrange(3)) + data[at + rng.randrange(3) :]
        connection.request("POST", rng.choice(["/v1/messages", "/v1/messages?beta=true"]), data)
        response = connection.getresponse()
        answer = response.read()
        statuses.add(response.status)
        if response.status == 200:
            assert answer.endswith(b'data: {"type":"message_stop"}\n\n') or json.loads(answer)["type"] == "message"
        else:
            assert response.status == 400, (data, answer)
            assert json.loads(answer).keys() == {"type", "error", "request_id"}
    connection.close()
    assert statuses == {200, 400}
