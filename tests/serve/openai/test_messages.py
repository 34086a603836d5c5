"""Messages become parts: roles, text parts, calls of a history in the model's format, results of tools; errors name the path."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.serve.openai.messages import read_messages
from tests.support.fake_text_service import FakeTextService

USER = {"role": "user", "content": "Hi"}


def read(messages: Any, tools: str | None = None, tool_format: str | None = None, **options: Any) -> tuple[Part, ...]:
    return read_messages({"messages": messages}, tools, tool_format, options.pop("texts", None), **options)


class Texts(FakeTextService):
    """Marks have the given tokens."""

    def __init__(self, *ids: int, parts: list[Part] | None = None) -> None:
        self.ids, self.parts = list(ids), parts
        self.asked: list[Any] = []

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        assert (adds_start, allow_special) == (False, True)
        return self.ids

    def history_parts(self, messages: Any, tools: str | None, end: str) -> list[Part] | None:
        self.asked.append((messages, tools, end))
        return self.parts


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
    assert read([USER, begun], end="open")[-2:] == (RoleStart("assistant"), "Once")
    assert read([USER, begun], end="closed")[-2:] == ("Once", RoleEnd())
    with pytest.raises(ParameterError) as caught:
        read([USER], end="open")
    assert caught.value.field == "continue_final_message"


def test_calls_of_a_history_are_written_in_the_format_of_the_model() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "2"}
    parts = read([USER, call(), result], tool_format="hermes", texts=Texts(11))
    assert parts[3:] == (
        RoleStart("assistant"),
        TokenIds((11,)),
        '\n{"name": "f", "arguments": {"a":  1}}\n',
        TokenIds((11,)),
        RoleEnd(),
        *(RoleStart("tool"), "2", RoleEnd()),
        RoleStart("assistant"),
    )
    spelled = read([USER, call()], tool_format="hermes", texts=Texts(1, 2))
    assert "".join(map(str, spelled[4:-2])) == '<tool_call>\n{"name": "f", "arguments": {"a":  1}}\n</tool_call>'
    plain = read([USER, call("", content="So:")])
    assert plain[4:7] == ("So:", "\n", '{"name": "f", "arguments": {}}')


def test_the_chat_template_writes_conversations_whose_framing_depends_on_more_than_roles() -> None:
    answer = {"role": "assistant", "content": "Yes"}
    result = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "2"}]}
    texts = Texts(parts=[TokenIds((1,)), "whole"])
    assert read([USER, call(), result], "[]", "hermes", texts=texts) == (TokenIds((1,)), "whole")
    calls = [{"id": "c1", "name": "f", "arguments": '{"a":  1}'}]
    assert texts.asked.pop() == (
        [USER, {"role": "assistant", "content": "", "tool_calls": calls}, {**result, "content": "2"}],
        "[]",
        "prompt",
    )
    assert read([USER, answer], None, "harmony", texts=texts, end="open") == (TokenIds((1,)), "whole")
    assert texts.asked.pop() == ([USER, answer], None, "open")
    for tool_format in ("hermes", "json", None):
        assert read([USER, answer], None, tool_format, texts=texts)[0] == RoleStart("user")
    assert read([USER], None, "harmony", texts=texts)[0] == RoleStart("user")
    assert texts.asked == []


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
