"""Streams of /v1/responses against the models of the official client, and against the whole response."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from rtlang.contract.events import Completion, Event, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.serve.openai.chat import read_chat
from rtlang.serve.responses.input_items import THOUGHT, ChatHistory, read_items
from rtlang.serve.responses.output_events import ResponsesWriter
from rtlang.serve.responses.request_body import read_body
from rtlang.serve.responses.sealing import Sealer

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
SEALER = Sealer()
HEADING = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CALLS = (
    'Wait. <tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>\n'
    '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
)


def writer_of(body: dict[str, Any], done: list[Any], model_format: str | None = None) -> ResponsesWriter:
    items = read_items("hi", str)
    read = read_body({"input": "hi"} | body, [], items, lambda purpose, text: None)
    request = read_chat(read.chat, model_format, 64)
    numbers = count()
    return ResponsesWriter(
        request,
        HEADING,
        lambda ids: [chr(each).encode() for each in ids],
        lambda prefix: f"{prefix}_{next(numbers)}",
        done.append,
        read.tools,
        (lambda text: SEALER.seal("ann", THOUGHT, text)) if read.seals_thoughts else None,
    )


def events_of(text: str, step: int, reason: FinishReason = FinishReason.STOP, logprobs: Any = None) -> list[Event]:
    deltas: list[Event] = [TextDelta(0, 1, 0, text[i : i + step]) for i in range(0, len(text), step)]
    made = Completion(text, tuple(map(ord, text)), reason, logprobs=logprobs)
    return [*deltas, NodeFinished(0, 1, None, (made,), Usage(5, 3, len(text)), Timing())]


def streamed(writer: ResponsesWriter, events: list[Event]) -> list[dict[str, Any]]:
    chunks = [chunk for event in events for chunk in writer.chunks(event)]
    assert [chunk["sequence_number"] for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert EVENT.validate_python(chunk).type == chunk["type"]
    assert [chunk["type"] for chunk in chunks[:2]] == ["response.created", "response.in_progress"]
    return chunks


CUSTOM = {"type": "custom", "name": "say"}
GROUP = {"type": "namespace", "name": "crm", "description": "d", "tools": [TOOL]}
SAID = '<tool_call>\n{"name": "say", "arguments": {"input": "a \\"b\\"\\n\\ud83d\\ude00"}}\n</tool_call>'
IN_GROUP = '<tool_call>\n{"name": "crm__look", "arguments": {"a": 1}}\n</tool_call>'
CASES = [
    ({}, None, "Hello you"),
    ({}, None, ""),
    ({"tools": [TOOL]}, "hermes", CALLS),
    ({"tools": [TOOL]}, "hermes", "no call"),
    ({"tools": [CUSTOM]}, "hermes", SAID),
    ({"tools": [GROUP]}, "hermes", IN_GROUP),
]


@pytest.mark.parametrize(("body", "model_format", "text"), CASES)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_stream_adds_up_to_the_whole_response(
    body: dict[str, Any], model_format: str | None, text: str, step: int
) -> None:
    done: list[Any] = []
    whole = writer_of(body, done, model_format).response(events_of(text, step))
    Response.model_validate(whole)
    chunks = streamed(writer_of(body, done, model_format), events_of(text, step))
    assert chunks[-1]["type"] == "response.completed"
    last = chunks[-1]["response"]
    assert [_without_ids(item) for item in last["output"]] == [_without_ids(item) for item in whole["output"]]
    assert [each["status"] for each in done] == ["completed", "completed"]
    # What grew is what was closed.
    grown: dict[int, str] = {}
    for chunk in chunks:
        if chunk["type"].endswith(".delta"):
            grown[chunk["output_index"]] = grown.get(chunk["output_index"], "") + chunk["delta"]
    for index, item in enumerate(last["output"]):
        final = item["content"][0]["text"] if "content" in item else item.get("arguments", item.get("input"))
        assert grown.get(index, "") == final
    added = [chunk["output_index"] for chunk in chunks if chunk["type"] == "response.output_item.added"]
    closed = [chunk["output_index"] for chunk in chunks if chunk["type"] == "response.output_item.done"]
    assert added == closed == list(range(len(last["output"])))


def test_captures_of_a_grammar_are_in_the_last_message() -> None:
    (*deltas, event) = events_of("Hello", 2)
    assert isinstance(event, NodeFinished)
    made = replace(event, completions=(replace(event.completions[0], captures={"who": ("lo",)}),))
    whole = writer_of({}, []).response([*deltas, made])
    assert [item["captures"] for item in whole["output"]] == [{"who": ["lo"]}]
    chunks = streamed(writer_of({}, []), [*deltas, made])
    assert [chunk["item"]["captures"] for chunk in chunks if chunk["type"] == "response.output_item.done"] == [
        {"who": ["lo"]}
    ]
    read_items(whole["output"], str)  # clients send it back


def test_calls_and_text_are_items_in_their_order() -> None:
    done: list[Any] = []
    whole = writer_of({"tools": [TOOL]}, done, "hermes").response(events_of(CALLS, 5))
    assert [item["type"] for item in whole["output"]] == ["message", "function_call", "function_call"]
    assert [item["arguments"] for item in whole["output"][1:]] == ['{"a": 1}', "{}"]
    assert len({item["call_id"] for item in whole["output"][1:]}) == 2
    assert done == [whole]


def test_a_call_of_a_custom_tool_has_its_input_and_the_tools_of_a_group_their_names() -> None:
    (item,) = writer_of({"tools": [CUSTOM]}, [], "hermes").response(events_of(SAID, 5))["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "say", 'a "b"\n😀')
    (item,) = writer_of({"tools": [GROUP]}, [], "hermes").response(events_of(IN_GROUP, 5))["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "crm", "look")


def test_calls_of_the_other_tools_are_sent_when_they_are_complete() -> None:
    calls = {
        "local_shell": {"command": ["ls"]},
        "shell": {"commands": ["ls", "pwd"]},
        "apply_patch": {"operation": {"type": "delete_file", "path": "a"}},
    }
    for name, arguments in calls.items():
        text = f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
        chunks = streamed(writer_of({"tools": [{"type": name}]}, [], "hermes"), events_of(text, 4))
        kinds = [chunk["type"] for chunk in chunks[2:]]
        assert kinds == ["response.output_item.added", "response.output_item.done", "response.completed"]
        (item,) = chunks[-1]["response"]["output"]
        assert item["type"] == f"{name}_call"
        history = ChatHistory(
            read_body({"input": "hi"}, [], read_items("hi", str), lambda *_: None).tools, lambda *_: None
        )
        history.add([item], "output")
        (call,) = history.messages[0]["tool_calls"]
        assert arguments.items() <= json.loads(call["function"]["arguments"]).items()


def test_a_thought_comes_back_from_its_opaque_text() -> None:
    text = "<think>\nhm\n</think>\n\nyes"
    body = {"include": ["reasoning.encrypted_content"]}
    whole = writer_of(body, [], "hermes").response(events_of(text, 3))
    thought, message = whole["output"]
    Response.model_validate(whole)
    assert [thought["type"], message["type"]] == ["reasoning", "message"]
    history = ChatHistory(
        read_body({"input": "hi"}, [], read_items("hi", str), lambda *_: None).tools,
        lambda purpose, sealed: SEALER.open("ann", purpose, sealed),
    )
    history.add([thought | {"content": None}, message], "output")
    assert history.messages == [
        {"role": "assistant", "content": "yes", "reasoning_content": thought["content"][0]["text"]}
    ]
    plain = writer_of({}, [], "hermes").response(events_of(text, 3))
    assert "encrypted_content" not in plain["output"][0]


def test_a_cut_text_is_incomplete() -> None:
    whole = writer_of({}, []).response(events_of("abc", 1, FinishReason.LENGTH))
    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert whole["output"][0]["status"] == "incomplete"
    assert whole["usage"]["input_tokens_details"] == {"cached_tokens": 3, "cache_write_tokens": 0}
    chunks = streamed(writer_of({}, []), events_of("abc", 1, FinishReason.LENGTH))
    assert chunks[-1]["type"] == "response.incomplete"


def test_log_probabilities_are_with_the_text() -> None:
    logprobs = tuple(TokenLogprob(ord(each), -0.5, ((ord(each), -0.5),)) for each in "abc")
    body = {"top_logprobs": 1, "include": ["message.output_text.logprobs"]}
    whole = writer_of(body, []).response(events_of("abc", 1, logprobs=logprobs))
    Response.model_validate(whole)
    entries = whole["output"][0]["content"][0]["logprobs"]
    assert [entry["token"] for entry in entries] == ["a", "b", "c"]


def test_a_failure_is_the_last_event() -> None:
    writer = writer_of({}, [])
    list(writer.chunks(events_of("abc", 1)[0]))
    failed = writer.failure({"error": {"message": "no", "code": "internal"}})
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_error", "message": "no"}
    EVENT.validate_python(failed)
    assert failed["sequence_number"] == 5


def _without_ids(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("id", "call_id")}
