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
SCRIPT = """
format: hermes
max_model_len: 1024
rules:
  - when: {user: look, tools: [look]}
    replies:
      - thought: A door.
        content: I look.
        calls: [{name: look, arguments: {n: 22}}, {name: look, arguments: {n: 1}}]
      - Nobody is there.
  - when: {user: fail}
    replies: [{content: "Let me", error: overloaded}]
  - when: {user: number}
    repeats: true
    replies: ['{"n": 22}']
  - when: {tools: [look]}
    repeats: true
    replies: [{calls: [{name: look, arguments: {n: 22}}]}]
  - when: {tools: [bash]}
    repeats: true
    replies: [{calls: [{name: bash, arguments: {command: ls}}]}]
  - when: {tools: []}
    repeats: true
    replies: [Hello]
"""


@pytest.fixture(scope="module")
def target() -> Iterator[FakeTarget]:
    with FakeTarget(lambda call: f"[{call.prompt}]") as target:
        yield target


@pytest.fixture(scope="module")
def client(target: FakeTarget) -> Iterator[HttpClient]:
    with serving(target) as server:  # type: ignore[arg-type]
        yield HttpClient(server.url)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A server whose model is scripted, with the usual engine, tokenizer, constraints and cache."""
    path = tmp_path_factory.mktemp("messages") / "script.yaml"
    path.write_text(SCRIPT)
    with rt.Runtime(model=f"script:{path}") as runtime:
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
    {
        "messages": [{"role": "user", "content": "number"}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
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


def test_edits_of_the_context_tell_what_they_cleared(engine: HttpClient) -> None:
    thought = {"type": "thinking", "thinking": "a long thought about doors", "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]}
    body: dict[str, Any] = {"model": "m", "messages": [*MESSAGES, answer, *MESSAGES, answer, *MESSAGES]}
    edits = {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}
    plain = engine.post("/v1/messages/count_tokens", body).json["input_tokens"]
    counted = engine.post("/v1/messages/count_tokens", body | edits).json
    assert counted["context_management"] == {"original_input_tokens": plain}
    made = engine.post("/v1/messages", body | edits | {"max_tokens": 9}).json
    (edit,) = made["context_management"]["applied_edits"]
    assert edit["cleared_thinking_turns"] == 1
    assert edit["cleared_input_tokens"] == plain - counted["input_tokens"] > 0
    assert made["usage"]["input_tokens"] + made["usage"]["cache_read_input_tokens"] == counted["input_tokens"]


def test_schemas_bind_tools_and_texts(engine: HttpClient) -> None:
    options: dict[str, Any] = {"model": "m", "messages": MESSAGES, "max_tokens": 90}
    any_tool = {"tools": [TOOL], "tool_choice": {"type": "any"}}
    (use,) = engine.post("/v1/messages", options | any_tool).json["content"]
    assert (use["type"], use["name"], use["input"]) == ("tool_use", "look", {"n": 22})
    other = {**SCHEMA, "properties": {"n": {"enum": [3]}}}
    form = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    asked = {"messages": [{"role": "user", "content": "number"}]}
    assert engine.post("/v1/messages", options | asked | form).json["content"][0]["text"] == '{"n": 22}'
    for forbidden in (
        {"tools": [{**TOOL, "input_schema": other}], "tool_choice": {"type": "tool", "name": "look"}},
        asked | {"output_format": {"type": "json_schema", "schema": other}},
        form,
    ):
        answer = engine.post("/v1/messages", options | forbidden)
        assert (answer.status, answer.json["error"]["code"]) == (400, "script"), "the model may not say this"
    warm = engine.post("/v1/messages", options | any_tool | {"max_tokens": 0}).json
    assert (warm["content"], warm["stop_reason"]) == ([], "max_tokens")
    bash = {"tools": [{"type": "bash_20250124", "name": "bash"}], "tool_choice": {"type": "any"}}
    assert engine.post("/v1/messages", options | bash).json["content"][0]["input"] == {"command": "ls"}


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


def answers_of(client: HttpClient, count: int, paths: list[str], model: str) -> set[int]:
    """The statuses of the answers to random bodies, each of which must be an answer of the API."""
    rng, examples, statuses = random.Random(44), seeds(), set()
    connection = http.client.HTTPConnection(client.address, timeout=30)
    for _ in range(count):
        body = mutated(rng, rng.choice(examples) | {"model": model})
        data = json.dumps(body).encode()
        if rng.random() < 0.05:
            at = rng.randrange(len(data))
            data = data[:at] + rng.randbytes(rng.randrange(3)) + data[at + rng.randrange(3) :]
        path = rng.choice(paths)
        connection.request("POST", path, data)
        response = connection.getresponse()
        answer = response.read()
        statuses.add(response.status)
        if response.status != 200:
            assert json.loads(answer).keys() == {"type", "error", "request_id"}, (data, answer)
        elif answer.startswith(b"event: "):
            last = json.loads(list(sse_events(answer))[-1][1])
            assert last["type"] in ("message_stop", "error")
        else:
            assert "input_tokens" in json.loads(answer).get("usage", json.loads(answer))
    connection.close()
    return statuses


def test_any_body_gets_an_answer_of_the_api(target: FakeTarget, client: HttpClient) -> None:
    paths = ["/v1/messages", "/v1/messages?beta=true"]
    assert answers_of(client, sized(100_000, usual=400), paths, "default") == {200, 400}


def test_any_body_is_answered_by_an_engine(engine: HttpClient) -> None:
    paths = ["/v1/messages", "/v1/messages/count_tokens"]
    assert answers_of(engine, sized(20_000, usual=80), paths, "m") <= {200, 400, 404}
    assert engine.get("/health").status == 200


def test_a_turn_with_a_thought_and_calls_goes_on_with_their_results(engine: HttpClient) -> None:
    body: dict[str, Any] = {"model": "m", "max_tokens": 400, "tools": [TOOL], "thinking": {"type": "adaptive"}}
    history = [{"role": "user", "content": "look"}]
    made = engine.post("/v1/messages", body | {"messages": history}).json
    assert [block["type"] for block in made["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["input"] for block in made["content"][2:]] == [{"n": 22}, {"n": 1}]
    assert made["stop_reason"] == "tool_use"
    ids = [block["id"] for block in made["content"][2:]]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "empty"} for each in ids]
    history += [{"role": "assistant", "content": made["content"]}, {"role": "user", "content": results}]
    after = engine.post("/v1/messages", body | {"messages": history}).json
    assert after["content"][0]["text"] == "Nobody is there."
    assert after["usage"]["cache_read_input_tokens"] > made["usage"]["input_tokens"]


def test_a_failure_after_the_first_text_is_the_last_event(engine: HttpClient) -> None:
    failing = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "fail"}], "stream": True}
    chunks = chunks_of(engine.post("/v1/messages", failing))
    assert chunks[0]["type"] == "message_start"
    assert (chunks[-1]["type"], chunks[-1]["error"]["type"]) == ("error", "rate_limit_error")
