"""Structured replies for bodies as published clients send them, recorded with classes of ours: each reply is valid for the schema sent.

`tests/clients` runs the clients themselves, where they are installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.servers.http_client import HttpClient

TITLE = {"maxLength": 12, "title": "Title", "type": "string"}
SECONDS = {"default": 3, "title": "Seconds", "type": "integer"}
TAG = {"anyOf": [{"maxLength": 5, "type": "string"}, {"type": "null"}], "title": "Tag"}
SONG = {
    "properties": {"title": TITLE, "seconds": SECONDS, "tag": TAG | {"default": None}},
    "required": ["title"],
    "type": "object",
}
STRICT_SONG = {
    "description": "A song.",
    "properties": {"title": TITLE, "seconds": SECONDS, "tag": TAG},
    "required": ["title", "seconds", "tag"],
    "title": "Song",
    "type": "object",
    "additionalProperties": False,
}  # fmt: skip
ALBUM = {
    "$defs": {"Song": {"properties": {"title": TITLE, "seconds": {"type": "integer"}}, "required": ["title", "seconds"], "type": "object"}},
    "properties": {"name": TITLE, "songs": {"items": {"$ref": "#/$defs/Song"}, "maxItems": 2, "title": "Songs", "type": "array"}},
    "required": ["name", "songs"],
    "type": "object",
    "additionalProperties": False,
}  # fmt: skip
NAMED = {"type": "function", "function": {"name": "Song"}}


def tool(parameters: dict[str, Any], **more: Any) -> list[Any]:
    return [
        {"type": "function", "function": {"name": "Song", "description": "A song.", "parameters": parameters, **more}}
    ]


def form(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"schema": schema, "name": "Song", **more}}


CHATS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama-index, structured_predict": (
        {"parallel_tool_calls": False, "stream": False, "tool_choice": "required", "tools": tool(ALBUM, strict=False)}, ALBUM),
    "llama-index, stream_structured_predict": (
        {"parallel_tool_calls": False, "stream": True, "tool_choice": "auto", "tools": tool(ALBUM, strict=False)}, ALBUM),
    "llama-index, structured outputs": ({"stream": False, "response_format": form(STRICT_SONG, strict=True)}, STRICT_SONG),
    "openai, parse": ({"response_format": form(STRICT_SONG, strict=True), "stream": False}, STRICT_SONG),
    "openai, parse with tools": (
        {"stream": False, "tool_choice": "required", "tools": tool(STRICT_SONG, strict=True)}, STRICT_SONG),
    "instructor, TOOLS": ({"tool_choice": NAMED, "tools": tool(SONG)}, SONG),
    "instructor, JSON_SCHEMA": ({"response_format": form(SONG)}, SONG),
    "langchain, function_calling": ({"parallel_tool_calls": False, "tool_choice": NAMED, "tools": tool(SONG)}, SONG),
    "langchain, function_calling, strict": (
        {"parallel_tool_calls": False, "tool_choice": NAMED, "tools": tool(SONG, strict=True)}, STRICT_SONG),
    "langchain, function_calling, not strict": (
        {"parallel_tool_calls": False, "tool_choice": NAMED, "tools": tool(SONG, strict=False)}, SONG),
    "langchain, json_mode": ({"response_format": {"type": "json_object"}}, {"type": "object"}),
    "an open schema with strict": ({"response_format": form(SONG, strict=True)}, STRICT_SONG),
}  # fmt: skip
"""By client and method: the body without model and messages, and the schema that the reply must be valid for."""


@pytest.fixture(scope="module")
def client() -> Iterator[HttpClient]:
    with rt.Runtime() as runtime:
        info = TokenizerInfo("rtlang:tiny", 2048, 1024, runtime.tool_format)
        with running_server(runtime, ServeConfig(port=0), info) as url:
            yield HttpClient(url)


@pytest.mark.parametrize("name", CHATS)
def test_a_reply_is_valid_for_the_schema_of_the_request(client: HttpClient, name: str) -> None:
    more, schema = CHATS[name]
    for seed in range(4):
        body = {
            "model": "rtlang:tiny",
            "messages": [{"role": "user", "content": "A song"}],
            "max_tokens": 120,
            "seed": seed,
        }
        answer = client.post("/v1/chat/completions", body | {"temperature": 1.5} | more)
        assert answer.status == 200, answer.body
        if more.get("stream"):
            deltas = [each["choices"][0]["delta"] for each in answer.events]
            calls = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ())]
            text = "".join(calls)
            if not text:  # under auto the model may answer instead
                continue
        else:
            message = answer.json["choices"][0]["message"]
            calls = message.get("tool_calls") or []
            text = calls[0]["function"]["arguments"] if "tools" in more else message["content"]
        jsonschema.validate(json.loads(text), schema)


@pytest.mark.parametrize("door", ["text.format", "tools"])
@pytest.mark.parametrize("strict", [False, True])
def test_responses_close_a_schema_with_strict_alone(client: HttpClient, door: str, strict: bool) -> None:
    body: dict[str, Any] = {
        "model": "default",
        "input": "A song",
        "max_output_tokens": 120,
        "temperature": 1.5,
        "store": False,
    }
    if door == "tools":
        body |= {
            "tools": [{"type": "function", "name": "Song", "parameters": SONG, "strict": strict}],
            "tool_choice": "required",
        }
    else:
        body |= {"text": {"format": {"type": "json_schema", "name": "Song", "schema": SONG, "strict": strict}}}
    found = []
    for seed in range(6):
        answer = client.post("/v1/responses", body | {"seed": seed})
        assert answer.status == 200, answer.body
        (item,) = [each for each in answer.json["output"] if each["type"] in ("message", "function_call")]
        text = item["arguments"] if door == "tools" else item["content"][0]["text"]
        found.append(json.loads(text))
        jsonschema.validate(found[-1], STRICT_SONG if strict else SONG)


OPEN = {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("path", "more", "param"),
    [
        ("/v1/chat/completions", {"response_format": form(OPEN, strict=True)}, "response_format.json_schema.schema"),
        ("/v1/completions", {"response_format": form(OPEN, strict=True)}, "response_format.json_schema.schema"),
        ("/v1/chat/completions", {"tools": tool(OPEN, strict=True)}, "tools[0].function.parameters"),
        ("/v1/responses", {"text": {"format": {"type": "json_schema", "name": "x", "schema": OPEN, "strict": True}}}, "text.format.schema"),
        ("/v1/responses", {"tools": [{"type": "function", "name": "x", "parameters": OPEN, "strict": True}]}, "tools[0].parameters"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_closed_is_refused_by_place(
    client: HttpClient, path: str, more: Any, param: str
) -> None:
    prompt: dict[str, Any] = {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
        "/v1/completions": {"prompt": "Hi"},
        "/v1/responses": {"input": "Hi"},
    }[path]
    answer = client.post(path, prompt | more)
    error = answer.json["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "parameter", param)
    assert "#/properties/a/additionalProperties" in error["message"]
    loose = json.loads(json.dumps(more).replace('"strict": true', '"strict": false'))
    assert client.post(path, prompt | loose | {"seed": 1}).status == 200
