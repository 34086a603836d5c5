"""Messages become parts: roles, text parts, calls of a history in the model's format, results of tools; errors name the path."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.serve.openai.messages import read_messages
from tests.support.programs.fake_text_service import FakeTextService

USER = {"role": "user", "content": "Hi"}


def read(messages: Any, tools: str | None = None, tool_format: str | None = None, **options: Any) -> tuple[Part, ...]:
    return read_messages({"messages": messages}, tools, tool_format, None, **options)


class Texts(FakeTextService):
    """Keeps what the template is given."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def chat_prompt(
        self, messages: Any, tools: Any, end: Any, template_options: Any = None, max_tokens: Any = None
    ) -> list[int]:
        self.asked.append((messages, tools, end, template_options))
        return [1, 2]


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


def test_without_a_tokenizer_calls_of_a_history_are_written_in_the_format_of_the_model() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "2"}
    parts = read([USER, call(), result], tool_format="hermes")
    assert parts[3] == RoleStart("assistant")
    assert "".join(map(str, parts[4:7])) == '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    assert parts[7:] == (RoleEnd(), RoleStart("tool"), "2", RoleEnd(), RoleStart("assistant"))
    plain = read([USER, call("", content="So:")])
    assert plain[4:7] == ("So:", "\n", '{"name": "f", "arguments": {}}')


def test_what_litellm_adds_to_an_answer_is_ignored() -> None:
    added = {"provider_specific_fields": {"reasoning": "a"}}
    answer = call(thinking_blocks=[{"type": "thinking", "thinking": "a"}], **added)
    answer["tool_calls"][0] |= added
    answer["tool_calls"][0]["function"] |= added
    result = {"role": "tool", "tool_call_id": "c1", "content": "2"}
    known, found = ([USER, each, result] for each in (call(), answer))
    assert read(found, tool_format="hermes") == read(known, tool_format="hermes")


def test_the_chat_template_gets_the_messages_as_they_are_sent() -> None:
    texts = Texts()
    messages = [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be"}, {"type": "text", "text": " kind"}]},
        {"role": "user", "content": " Hi\n", "name": "ann"},
        call(reasoning_content="I look it up", refusal=None),
        {"role": "tool", "tool_call_id": "c1", "content": "", "name": "f"},
        {"role": "assistant", "content": None, "annotations": []},
    ]
    given = {"messages": messages}
    prompt = read_messages(given, "[]", "hermes", texts, end="open", template_options='{"chat_template_kwargs": {}}')
    assert prompt == (TokenIds((1, 2)),)
    function = {"name": "f", "arguments": {"a": 1}}
    assert texts.asked == [
        (
            [
                {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": " kind"}]},
                {"role": "user", "content": " Hi\n", "name": "ann"},
                {
                    "role": "assistant",
                    "reasoning_content": "I look it up",
                    "tool_calls": [{"id": "c1", "type": "function", "function": function}],
                },
                {"role": "tool", "content": "", "name": "f", "tool_call_id": "c1"},
                {"role": "assistant"},
            ],
            "[]",
            "open",
            '{"chat_template_kwargs": {}}',
        )
    ]


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
        ([{"role": "user", "content": None}], "messages[0].content"),
        ([{"role": "user", "content": "x", "name": 3}], "messages[0].name"),
        ([{"role": "assistant", "content": "x", "reasoning_content": {}}], "messages[0].reasoning_content"),
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


def test_notes_stand_for_images_in_results_of_tools_alone() -> None:
    parts = [{"type": "text", "text": "2"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    texts = Texts()
    read_messages(
        {"messages": [USER, call(), {"role": "tool", "tool_call_id": "c1", "content": parts}]}, None, None, texts
    )
    ((messages, *_),) = texts.asked
    assert [part["text"] for part in messages[-1]["content"]] == ["2", "[image left out: the model reads text only]"]
    for role in ("user", "system", "assistant"):
        with pytest.raises(ParameterError) as caught:
            read([{"role": role, "content": parts}])
        assert caught.value.field == "messages[0].content[1].type"
