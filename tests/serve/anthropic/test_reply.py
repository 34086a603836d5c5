"""Streams and whole messages agree, and streams follow the order of events that clients demand, however the text is cut."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

from rtlang.contract.events import Completion, Event, NodeFinished, PromptComputed, TextDelta, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.serve.anthropic.content_blocks import signed_thought
from rtlang.serve.anthropic.reply import MessageWriter, tool_input
from rtlang.serve.anthropic.request import read_messages_request
from rtlang.serve.openai.chat import read_chat

HI = {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [
    {"name": "look", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"name": "say", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}},
]
CALLS = (
    'Wait. <tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>\n'
    '<tool_call>\n{"name": "say", "arguments": {"text": "h\\u00e9 \\"x\\""}}\n</tool_call>'
)
THOUGHT = '<think>\nA door.\n</think>\n\nYes\ud83d\ude42 "open"\n'.encode("utf-16", "surrogatepass").decode("utf-16")
CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "Hello you"),
    ({}, ""),
    ({}, THOUGHT),
    ({"thinking": {"type": "adaptive", "display": "omitted"}}, THOUGHT),
    ({"tools": TOOLS}, CALLS),
    ({"tools": TOOLS}, THOUGHT + CALLS),
    ({"tools": TOOLS}, CALLS[:-30]),
    ({"tools": TOOLS}, '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'),
]


def writer_of(body: dict[str, Any]) -> MessageWriter:
    asked = read_messages_request(HI | body)
    numbers = count()
    request = read_chat(asked.chat, "hermes", 64)
    return MessageWriter(
        request, asked, "msg_1", "m", lambda ids: [b"x" for _ in ids], lambda: f"toolu_{next(numbers)}"
    )


def events_of(
    text: str, step: int, reason: FinishReason = FinishReason.STOP, stop: str | None = None, usage: Usage | None = None
) -> list[Event]:
    deltas: list[Event] = [TextDelta(0, 1, 0, text[i : i + step]) for i in range(0, len(text), step)]
    made = Completion(text, tuple(range(len(text))), reason, stop)
    finished = NodeFinished(0, 1, None, (made,), usage or Usage(9, 4, len(text)), Timing())
    return [PromptComputed(0, 1, 9, 4), *deltas, finished]


def streamed(body: dict[str, Any], events: list[Event], *, fast: bool) -> list[dict[str, Any]]:
    """The events of a stream, read from its text."""
    writer, found = writer_of(body), []
    for event in events:
        text = writer.text_event(event) if fast and isinstance(event, TextDelta) else None
        if text is None:
            found += list(writer.chunks(event))
            continue
        for block in text.split("\n\n")[:-1]:
            name, data = block.split("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {found[-1]['type']}"
    return [*found, *writer.last_chunks()]


def accumulated(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of a stream, put together as its documentation says; checks the order of the events."""
    assert [chunks[0]["type"], chunks[1]["type"]] == ["message_start", "ping"]
    assert [chunk["type"] for chunk in chunks[-2:]] == ["message_delta", "message_stop"]
    message = json.loads(json.dumps(chunks[0]["message"]))
    assert (message["content"], message["stop_reason"]) == ([], None)
    arguments, is_open = "", False
    for chunk in chunks[2:-2]:
        match chunk["type"]:
            case "content_block_start":
                assert (is_open, chunk["index"]) == (False, len(message["content"]))
                message["content"].append(dict(chunk["content_block"]))
                arguments, is_open = "", True
            case "content_block_delta":
                assert (is_open, chunk["index"]) == (True, len(message["content"]) - 1)
                block, delta = message["content"][-1], chunk["delta"]
                match delta["type"]:
                    case "text_delta":
                        block["text"] += delta["text"]
                    case "thinking_delta":
                        block["thinking"] += delta["thinking"]
                    case "signature_delta":
                        block["signature"] = delta["signature"]
                    case "input_json_delta":
                        arguments += delta["partial_json"]
                    case kind:
                        raise AssertionError(kind)
            case "content_block_stop":
                assert (is_open, chunk["index"]) == (True, len(message["content"]) - 1)
                is_open = False
                if message["content"][-1]["type"] == "tool_use":
                    message["content"][-1]["input"] = tool_input(arguments)
            case kind:
                raise AssertionError(kind)
    assert not is_open
    assert chunks[-2]["usage"].keys() <= message["usage"].keys() | {"output_tokens_details"}
    message["usage"] |= chunks[-2]["usage"]
    return message | chunks[-2]["delta"]


def test_a_stream_adds_up_to_the_whole_message() -> None:
    for body, text in CASES:
        whole = writer_of(body).response(events_of(text, 1000))
        for step in (1, 3, 1000):
            for fast in (False, True):
                assert accumulated(streamed(body, events_of(text, step), fast=fast)) == whole, (body, text)


def test_blocks_stand_in_the_order_of_the_reply() -> None:
    whole = writer_of({"tools": TOOLS}).response(events_of(THOUGHT + CALLS, 1000))
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    thought, text, look, say = whole["content"]
    assert (thought["thinking"].strip(), thought["signature"] != "") == ("A door.", True)
    assert text["text"].strip().endswith("Wait.")
    assert (look["name"], look["input"], say["name"], say["input"]) == ("look", {"a": 1}, "say", {"text": 'hé "x"'})
    assert (look["id"], say["id"], whole["stop_reason"]) == ("toolu_0", "toolu_1", "tool_use")
    assert whole["usage"]["output_tokens_details"]["thinking_tokens"] > 0


def test_a_thought_that_is_not_shown_comes_back_in_its_signature() -> None:
    whole = writer_of({"thinking": {"type": "adaptive", "display": "omitted"}}).response(events_of(THOUGHT, 1000))
    thought = whole["content"][0]
    assert thought["thinking"] == ""
    assert signed_thought(thought["signature"]).strip() == "A door."


def test_each_ending_has_its_reason() -> None:
    for body, reason, stop, expected in (
        ({}, FinishReason.STOP, None, ("end_turn", None)),
        ({"stop_sequences": ["x", "y"]}, FinishReason.STOP, "y", ("stop_sequence", "y")),
        ({"stop_sequences": ["x"]}, FinishReason.STOP, None, ("end_turn", None)),
        ({"max_tokens": 5}, FinishReason.LENGTH, None, ("max_tokens", None)),
        ({}, FinishReason.LENGTH, None, ("model_context_window_exceeded", None)),
        ({"max_tokens": 0}, FinishReason.LENGTH, None, ("max_tokens", None)),
    ):
        made = writer_of(body).response(events_of("Hello", 1000, reason, stop))
        assert (made["stop_reason"], made["stop_sequence"]) == expected


def test_captures_of_a_grammar_are_in_the_message_and_in_its_last_delta() -> None:
    (*deltas, event) = events_of("Hello", 2)
    assert isinstance(event, NodeFinished)
    made = replace(event, completions=(replace(event.completions[0], captures={"who": ("lo",)}),))
    assert writer_of({}).response([*deltas, made])["captures"] == {"who": ["lo"]}
    chunks = streamed({}, [*deltas, made], fast=False)
    assert [chunk["delta"]["captures"] for chunk in chunks if chunk["type"] == "message_delta"] == [{"who": ["lo"]}]
    assert "captures" not in writer_of({}).response(events_of("Hello", 2))


def test_usage_divides_the_prompt_into_computed_and_cached_tokens() -> None:
    whole = writer_of({}).response(events_of("Hello", 1000))["usage"]
    assert (whole["input_tokens"], whole["cache_read_input_tokens"], whole["output_tokens"]) == (5, 4, 5)
    first = streamed({}, events_of("Hello", 2), fast=True)[0]["message"]["usage"]
    assert (first["input_tokens"], first["cache_read_input_tokens"], first["output_tokens"]) == (5, 4, 0)
    without = streamed({}, events_of("Hello", 2)[1:], fast=True)[0]["message"]["usage"]
    assert (without["input_tokens"], without["cache_read_input_tokens"]) == (0, 0)


def test_a_prefill_has_no_output() -> None:
    made = writer_of({"max_tokens": 0}).response(events_of("H", 1))
    assert (made["content"], made["usage"]["output_tokens"]) == ([], 0)
    assert accumulated(streamed({"max_tokens": 0}, events_of("H", 1), fast=True)) == made


def test_edits_of_the_context_are_reported_where_they_were_asked_for() -> None:
    edits = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    assert writer_of(edits).response(events_of("H", 1))["context_management"] == {"applied_edits": []}
    assert streamed(edits, events_of("H", 1), fast=True)[-2]["context_management"] == {"applied_edits": []}
    assert "context_management" not in writer_of({}).response(events_of("H", 1))


def test_arguments_become_values_that_every_reader_takes() -> None:
    for text, expected in (
        ("", {}),
        ('{"a": [1, 2.5, null, {"b": "c"}]}', {"a": [1, 2.5, None, {"b": "c"}]}),
        ('{"a": 1e999, "b": -1e999}', {"a": 1.7976931348623157e308, "b": -1.7976931348623157e308}),
        ('{"a": "half a te', {"a": "half a te"}),
        ('{"a": [1, {"b": tr', {"a": [1, {}]}),
        ('{"a": 12', {}),
        ('{"a": 1, "b"', {"a": 1}),
        ("[1]", {}),
    ):
        assert tool_input(text) == expected, text
    assert tool_input('{"a": %s}' % ("9" * 5000))["a"] == 1.7976931348623157e308
    assert json.dumps(tool_input('{"a": %s' % ("[" * 5000)))
