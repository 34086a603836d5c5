"""Messages become parts: roles, text parts, calls of a history in the model's format, results of tools; errors name the path."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.serve.openai.messages import read_messages

USER = {"role": "user", "content": "Hi"}


def read(messages: Any, tools: str | None = None, tool_format: str | None = None, **options: Any) -> tuple[Part, ...]:
    return read_messages(
        {"messages": messages}, tools, tool_format, options.pop("mark_ids", None), **{"continues": False} | options
    )


def call(arguments: Any = '{"a":  1}', **more: Any) -> dict[str, Any]:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}]
    return {"role": "assistant", "content": None, "tool_calls": calls} | more


def test_messages_are_framed_and_end_with_the_generation_prompt() -> None:
    developer = {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": " kind"}]}
    assert read([developer, USER, {"role": "assistant", "content": "Yes", "refusal": None}], tools="[]") == (
        *(RoleStart("system", "[]"), "Be kind", RoleEnd()),
        *(RoleStart("user"), "Hi", RoleEnd()),
        *(RoleStart("assistant"), "Yes", RoleEnd()),
        RoleStart("assistant"),
    )


def test_a_last_message_can_be_continued() -> None:
    begun = {"role": "assistant", "content": "Once"}
    assert read([USER, begun], continues=True)[-2:] == (RoleStart("assistant"), "Once")
    with pytest.raises(ParameterError) as caught:
        read([USER], continues=True)
    assert caught.value.field == "continue_final_message"


def test_calls_of_a_history_are_written_in_the_format_of_the_model() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "2"}
    parts = read([USER, call(), result], tool_format="hermes", mark_ids=lambda mark: (len(mark),))
    assert parts[3:] == (
        RoleStart("assistant"),
        TokenIds((11,)),
        '\n{"name": "f", "arguments": {"a":  1}}\n',
        TokenIds((12,)),
        RoleEnd(),
        *(RoleStart("tool"), "2", RoleEnd()),
        RoleStart("assistant"),
    )
    spelled = read([USER, call()], tool_format="hermes", mark_ids=lambda mark: (1, 2))
    assert "".join(map(str, spelled[4:-2])) == '<tool_call>\n{"name": "f", "arguments": {"a":  1}}\n</tool_call>'
    plain = read([USER, call("", content="So:")])
    assert plain[4:7] == ("So:", "\n", '{"name": "f", "arguments": {}}')


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        (None, "messages"),
        ([], "messages"),
        (["Hi"], "messages[0]"),
        ([{"content": "Hi"}], "messages[0].role"),
        ([{"role": "robot", "content": "Hi"}], "messages[0].role"),
        ([USER, {"role": "user"}], "messages[1].content"),
        ([{"role": "user", "content": 3}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        ([USER | {"prefix": True}], "messages[0].prefix"),
        ([USER | {"tool_calls": [{}]}], "messages[0].tool_calls"),
        ([{"role": "tool", "content": "2"}], "messages[0].tool_call_id"),
        ([call("[1]")], "messages[0].tool_calls[0].function.arguments"),
        ([call("{")], "messages[0].tool_calls[0].function.arguments"),
        ([call(tool_calls=[{"type": "custom"}])], "messages[0].tool_calls[0].type"),
        ([call(tool_calls=[{"function": {"arguments": "{}"}}])], "messages[0].tool_calls[0].function.name"),
    ],
)
def test_a_malformed_message_is_named_by_its_path(messages: Any, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read(messages)
    assert caught.value.field == field
