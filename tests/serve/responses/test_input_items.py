"""Bodies of /v1/responses become chat bodies; what has no counterpart is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.chat import read_chat
from rtlang.serve.responses.input_items import chat_body, input_messages

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_text_and_options() -> None:
    body = {"model": "m", "input": "hi", "instructions": "be", "max_output_tokens": 5, "top_p": 0.5, "store": False}
    chat, new = chat_body(body, [])
    assert new == [{"role": "user", "content": "hi"}]
    assert chat == {
        "model": "m",
        "top_p": 0.5,
        "max_completion_tokens": 5,
        "messages": [{"role": "system", "content": "be"}, *new],
    }


def test_items_become_messages_with_calls_and_their_results() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs", "summary": []},
        {
            "type": "message",
            "id": "m",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "wait", "annotations": []}],
        },
        {"type": "function_call", "id": "f", "call_id": "1", "name": "look", "arguments": "{}", "status": "completed"},
        {"type": "function_call", "call_id": "2", "name": "look", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "y"}]},
    ]
    assert input_messages(items) == [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}
        | {"content": "ab"},
        {
            "role": "assistant",
            "content": "wait",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "tool_call_id": "2", "content": "y"},
    ]
    alone = input_messages(items[3:4])
    assert alone[0]["role"] == "assistant"
    assert alone[0]["content"] is None


def test_a_conversation_goes_on_behind_the_instructions_of_now() -> None:
    earlier = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    chat, new = chat_body({"input": "3", "instructions": "be", "previous_response_id": "r"}, earlier)
    assert [each["content"] for each in chat["messages"]] == ["be", "1", "2", "3"]
    assert [each["content"] for each in new] == ["1", "2", "3"]


def test_tools_and_formats_are_what_the_chat_route_reads() -> None:
    body = {
        "input": "a",
        "tools": [{"type": "function", "name": "look", "description": None, "parameters": SCHEMA, "strict": True}],
        "tool_choice": {"type": "function", "name": "look"},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
    }
    asked = read_chat(chat_body(body, [])[0], None, 64)
    assert asked.plan.constraint is not None
    assert asked.num_top == 2
    form = {"type": "json_schema", "name": "p", "schema": SCHEMA, "strict": True, "description": "d"}
    asked = read_chat(chat_body({"input": "a", "text": {"format": form}}, [])[0], None, 64)
    assert asked.plan.constraint is not None
    assert '"integer"' in asked.plan.constraint.source
    asked = read_chat(chat_body({"input": "a", "text": {"format": {"type": "text"}}, "tools": []}, [])[0], None, 64)
    assert asked.plan.constraint is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": ["a"]}, "input[0].type"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "input[0].content[0].type",
        ),
        ({"input": [{"type": "function_call", "call_id": "1", "name": "f"}]}, "input[0].arguments"),
        ({"input": [{"role": "user", "content": "a", "speed": 1}]}, "input[0].speed"),
        ({"input": "a", "tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": "a", "include": ["file_search_call.results"]}, "include"),
        ({"input": "a", "conversation": "c"}, "conversation"),
        ({"input": "a", "background": True}, "background"),
        ({"input": "a", "truncation": "auto"}, "truncation"),
        ({"input": "a", "text": {"format": {"type": "json_schema", "name": "p"}}}, "text.format.schema"),
        ({"input": "a", "text": {"style": 1}}, "text.style"),
        ({"input": "a", "speed": 1}, "speed"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        chat_body(body, [])
    assert caught.value.field == field
