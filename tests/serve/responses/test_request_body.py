"""Bodies of /v1/responses become chat bodies; what has no counterpart is refused by name."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from openai.types.responses import ResponseIncludable
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.chat import read_chat
from rtlang.serve.responses.input_items import read_items
from rtlang.serve.responses.request_body import FIELDS, INCLUDED, ReadBody, read_body, renamed_error

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def read(body: dict[str, Any], earlier: Any = ()) -> ReadBody:
    items = read_items(body.get("input") or [], lambda prefix: prefix)
    return read_body(body, read_items(list(earlier), str), items, lambda purpose, text: None)


def test_text_and_options() -> None:
    body = {"model": "m", "input": "hi", "instructions": "be", "max_output_tokens": 5, "top_p": 0.5, "store": False}
    found = read(body)
    assert found.chat == {
        "model": "m",
        "top_p": 0.5,
        "max_completion_tokens": 5,
        "messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}],
    }
    assert (found.num_pinned, found.truncates, found.seals_thoughts) == (1, False, False)


def test_a_conversation_goes_on_behind_the_instructions_of_now() -> None:
    earlier = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    found = read({"input": "3", "instructions": "be", "previous_response_id": "r"}, earlier)
    assert [each["content"] for each in found.chat["messages"]] == ["be", "1", "2", "3"]


def test_tools_and_formats_are_what_the_chat_route_reads() -> None:
    body = {
        "input": "a",
        "tools": [{"type": "function", "name": "look", "description": None, "parameters": SCHEMA, "strict": True}],
        "tool_choice": {"type": "function", "name": "look"},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
    }
    asked = read_chat(read(body).chat, None, 64)
    assert asked.plan.constraint is not None
    assert asked.num_top == 2
    form = {"type": "json_schema", "name": "p", "schema": SCHEMA, "strict": True, "description": "d"}
    asked = read_chat(read({"input": "a", "text": {"format": form}}).chat, None, 64)
    assert asked.plan.constraint is not None
    assert '"integer"' in asked.plan.constraint.source
    asked = read_chat(read({"input": "a", "text": {"format": {"type": "text"}}, "tools": []}).chat, None, 64)
    assert asked.plan.constraint is None


def test_every_field_of_the_client_is_accepted_a_hint_or_refused_by_name() -> None:
    known = FIELDS.accepted | FIELDS.fixed.keys() | FIELDS.refused.keys() | FIELDS.hints
    assert set(ResponseCreateParamsBase.__annotations__) <= known
    assert set(get_args(ResponseIncludable)) == set(INCLUDED)


def test_fields_that_change_nothing_are_accepted() -> None:
    chat = read({"input": "a"}).chat
    for body in (
        {"client_metadata": {"x": "y"}, "turn_metadata": 3},
        {"metadata": {"a": "b"}, "store": True, "service_tier": "flex", "safety_identifier": "s"},
        {"include": [*INCLUDED[1:]], "max_tool_calls": 3, "truncation": "auto", "tools": [{"type": "web_search"}]},
        {"reasoning": {"summary": "auto", "context": "auto", "mode": "standard"}, "prompt_cache_retention": "24h"},
        {"stream_options": {"include_obfuscation": False}, "prompt_cache_options": {"mode": "implicit"}},
    ):
        made = read({"input": "a"} | body).chat
        assert {name: value for name, value in made.items() if name != "reasoning"} == chat
    made = read({"input": "a", "prompt_cache_key": "k", "text": {"verbosity": "low"}}).chat
    assert (made["prompt_cache_key"], made["chat_template_kwargs"]) == ("k", {"verbosity": "low"})
    for conversation in ("conv_1", {"id": "conv_1"}):
        assert read({"input": "a", "conversation": conversation}).chat["prompt_cache_key"] == "conv_1"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": "a", "tools": [{"type": "code_interpreter"}]}, "tools[0].type"),
        ({"input": "a", "tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"input": "a", "tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"input": "a", "include": ["usage"]}, "include"),
        ({"input": "a", "prompt": {"id": "p"}}, "prompt"),
        ({"input": "a", "context_management": [{"type": "compaction"}]}, "context_management"),
        ({"input": "a", "instructions": ["b"]}, "instructions"),
        ({"input": "a", "truncation": "some"}, "truncation"),
        ({"input": "a", "max_tool_calls": -1}, "max_tool_calls"),
        ({"input": "a", "reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ({"input": "a", "reasoning": {"context": "none"}}, "reasoning.context"),
        ({"input": "a", "reasoning": {"summary": "long"}}, "reasoning.summary"),
        ({"input": "a", "text": {"format": {"type": "json_schema", "name": "p"}}}, "text.format.schema"),
        ({"input": "a", "text": {"style": 1}}, "text.style"),
        ({"input": "a", "text": {"verbosity": "loud"}}, "text.verbosity"),
        ({"input": "a", "speed": 1}, "speed"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read(body)
    assert caught.value.field == field


def test_errors_of_the_chat_get_the_names_of_this_route() -> None:
    tools = [{"type": "web_search"}, {"type": "function", "name": "look"}]
    found = read({"input": [{"id": "x", "role": "user", "content": "a"}], "instructions": "be", "tools": tools})
    for chat, here in (
        ("messages[1].role", "input[0].role"),
        ("messages[0].content", "instructions.content"),
        ("messages", "input"),
        ("tools[0].function.parameters", "tools[1].parameters"),
        ("max_completion_tokens", "max_output_tokens"),
        ("response_format.json_schema.schema", "text.format.schema"),
        ("temperature", "temperature"),
    ):
        error = renamed_error(ParameterError(chat, 1, "expected 2"), found)
        assert error.field == here
        assert error.message.startswith(here)
