"""Tools: which texts the constraint allows, how replies are read piece by piece in every format, and refusals by name."""

from __future__ import annotations

import json
import random
from itertools import count
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.runtime.texts.shortest_text import allows
from rtlang.serve.openai.structured import read_structured
from rtlang.serve.openai.tools import ReplyPlan, ReplyReader, plan_reply, read_tool_request
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.reasoning import PromptEnd
from rtlang_grammars.formats.rendering import rendered_calls
from tests.support.schemas.tool_calls import random_call, random_tools
from tests.support.schemas.tool_templates import HAS_ONE_CALL, TEMPLATES, render

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "d", "parameters": CITY, "strict": True}},
    {"type": "function", "function": {"name": "now"}},
]
WEATHER = '{"name": "weather", "arguments": {"city": "Oslo"}}'
NOW = '{"name": "now", "arguments": {}}'


def plan_of(tool_format: str | None = None, **body: Any) -> ReplyPlan:
    body = {"tools": TOOLS} | body
    return plan_reply(read_tool_request(body), read_structured(body), tool_format)


def is_allowed(plan: ReplyPlan, text: str) -> bool:
    assert plan.constraint is not None
    return allows(plan.constraint, text) is None


PAIR = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["b", "a"]}


@pytest.mark.parametrize("tool_format", [None, *FORMATS])
@pytest.mark.parametrize("is_loose", [False, True])
def test_arguments_come_in_declared_order_unless_the_request_says_otherwise(
    tool_format: str | None, is_loose: bool
) -> None:
    tools = [{"type": "function", "function": {"name": "put", "parameters": PAIR}}]
    style = {"json_style": {"order": "any", "numbers": "any"}} if is_loose else {}
    plan = plan_of(tool_format, tools=tools, tool_choice="required", **style)
    calls = [
        ToolCall("put", arguments, "0") for arguments in ({"b": 2, "a": "x"}, {"a": "x", "b": 2}, {"b": 2.0, "a": "x"})
    ]
    texts = ["".join(text for text, _ in rendered_calls(tool_format or "json", [call])) for call in calls]
    assert [is_allowed(plan, text) for text in texts] == [True, is_loose, is_loose]


def test_content_of_a_schema_beside_tools_has_the_style_of_the_request() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": PAIR}}
    plans = [plan_of(response_format=form), plan_of(response_format=form, json_style={"order": "any"})]
    assert [is_allowed(plan, '{"b": 2, "a": "x"}') for plan in plans] == [True, True]
    assert [is_allowed(plan, '{"a": "x", "b": 2}') for plan in plans] == [False, True]


@pytest.mark.parametrize(
    ("choice", "parallel", "allowed", "refused"),
    [
        (
            "auto",
            True,
            ["Hello", WEATHER, f"Hi {WEATHER}\n{NOW}"],
            ['{"name": "weather", "arguments": {"town": "Oslo"}}'],
        ),
        ("required", True, [WEATHER, f"{WEATHER}\n{NOW}"], ["Hello", ""]),
        ("required", False, [WEATHER, NOW], [f"{WEATHER}\n{NOW}"]),
        ({"type": "function", "function": {"name": "now"}}, True, [NOW], [WEATHER, "Hi", f"{NOW}\n{NOW}"]),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "now"}}]},
            },
            True,
            [NOW, f"{NOW}\n{NOW}"],
            [WEATHER, "Hi"],
        ),
    ],
    ids=str,
)
def test_the_choice_decides_which_texts_are_possible(
    choice: Any, parallel: bool, allowed: list[str], refused: list[str]
) -> None:
    plan = plan_of(tool_choice=choice, parallel_tool_calls=parallel)
    assert [text for text in allowed if not is_allowed(plan, text)] == []
    assert [text for text in refused if is_allowed(plan, text)] == []


def test_no_tool_may_be_called_with_none() -> None:
    assert plan_of(tool_choice="none") == plan_of(tools=[])
    assert plan_of(tool_choice="none").constraint is None


@pytest.mark.parametrize("name", [None, "hermes", "llama-3", "harmony", "mistral", "command-r7b"])
def test_with_a_response_schema_a_reply_is_calls_or_content_of_the_schema(name: str | None) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    plan = plan_of(name, response_format=form)
    found = FORMATS[name or "json"]
    calls = "".join(piece for piece, _ in rendered_calls(found, [ToolCall("weather", {"city": "Oslo"}, "a12345678")]))
    content = (
        '{"name": "Bob"}' if found.content is None else found.content.begin + '{"name": "Bob"}' + found.content.end
    )
    assert is_allowed(plan, calls)
    assert is_allowed(plan, content)
    assert not is_allowed(plan, "Hello")
    assert not is_allowed(plan, content.replace("name", "nome"))
    assert not is_allowed(plan, calls.replace("city", "town"))
    assert read_whole(plan, calls).calls[0]["function"]["name"] == "weather"
    assert read_whole(plan, content).content == '{"name": "Bob"}'
    nested = '{"name": "x", "more": [{"name": "now", "arguments": {}}]}'
    if found.content is None:
        assert read_whole(plan, nested).content == nested


def read_whole(plan: ReplyPlan, text: str) -> ReplyReader:
    reader = ReplyReader(plan, lambda: "id")
    reader.push(text)
    reader.finish()
    return reader


def test_a_schema_for_the_content_leaves_no_way_around_the_schemas_of_the_tools() -> None:
    for name, member in ((None, "arguments"), ("llama-3", "parameters")):
        plan = plan_of(name, response_format={"type": "json_object"})
        assert not is_allowed(plan, json.dumps({"name": "weather", member: {"town": "Oslo"}}))
        assert is_allowed(plan, json.dumps({"name": "weather", member: {"city": "Oslo"}}))
        assert is_allowed(plan, json.dumps({"name": "weather"}))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_reply_in_pieces_adds_up_to_the_message(name: str) -> None:
    rng = random.Random(name)
    for _ in range(6):
        tools = random_tools(rng, 3, python_names=True)
        calls = [
            random_call(rng, tools, ("</tool_call>", "functools")) for _ in range(1 if name in HAS_ONE_CALL else 2)
        ]
        text = render(name, "", "why", calls)
        plan = plan_of(name, tools=tools)
        ids = map(str, count())
        reader = ReplyReader(plan, lambda: next(ids))  # noqa: B023
        deltas, at = [], 0
        while at < len(text):
            size = rng.randrange(1, 7)
            deltas += reader.push(text[at : at + size])
            at += size
        deltas += reader.finish()
        message = reader.message()
        whole = read_whole(plan, text).message()
        assert [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]
        ] == calls
        assert [call["function"] for call in message["tool_calls"]] == [
            call["function"] for call in whole["tool_calls"]
        ]
        assert (message["content"], message.get("reasoning_content")) == (
            whole["content"],
            whole.get("reasoning_content"),
        )
        assert "".join(delta.get("content", "") for delta in deltas) == reader.content
        pieces: dict[int, str] = {}
        for delta in deltas:
            for call in delta.get("tool_calls", ()):
                assert ("id" in call) is (call["index"] not in pieces)
                pieces[call["index"]] = pieces.get(call["index"], "") + call["function"].get("arguments", "")
        assert list(pieces.values()) == [call["function"]["arguments"] for call in message["tool_calls"]]


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ('Hi<tool_call>\n{"name": "weather", "argum', 'Hi<tool_call>\n{"name": "weather", "argum', []),
        ('Hi<tool_call>\n{"name": "weather", "arguments": {"ci', "Hi", ['{"ci']),
        ("Hi<tool_call>\nnothing</tool_call> there", "Hi<tool_call>\nnothing</tool_call> there", []),
        ("Hi <tool", "Hi <tool", []),
    ],
)
def test_a_reply_that_breaks_off_or_breaks_the_format_loses_no_text(text: str, content: str, calls: list[str]) -> None:
    for size in (1, 5, 100):
        reader = ReplyReader(plan_of("hermes"), lambda: "id")
        for at in range(0, len(text), size):
            reader.push(text[at : at + size])
        reader.finish()
        assert reader.content == content
        assert [call["function"]["arguments"] for call in reader.calls] == calls


def test_reasoning_is_told_apart_without_tools() -> None:
    reader = read_whole(plan_of("hermes", tools=[]), "<think>\nhm\n</think>\n\n<tool_call> is a tag")
    assert reader.message() == {
        "role": "assistant",
        "content": "<tool_call> is a tag",
        "refusal": None,
        "reasoning_content": "hm",
        "reasoning": "hm",
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [3]}, "tools[0]"),
        ({"tools": [{"type": "custom", "function": {"name": "f"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": 1}}]}, "tools[0].function.strict"),
        ({"tools": [{"type": "function", "function": {"name": "f", "cost": 1}}]}, "tools[0].function.cost"),
        ({"tools": [*TOOLS, *TOOLS]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"required": 3}}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "maybe"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice.function.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": None, "name": "f", "x": 1}}, "tool_choice.x"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
            "tool_choice.allowed_tools",
        ),
        ({"tools": TOOLS, "parallel_tool_calls": 1}, "parallel_tool_calls"),
    ],
)
def test_malformed_tools_are_refused_by_name(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plan_reply(read_tool_request(body), None, "hermes")
    assert caught.value.field == field


def test_a_reply_whose_reasoning_the_prompt_has_begun_goes_on_inside() -> None:
    form = {"type": "json_object"}
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    for more, end, content in (
        ({"response_format": form, "tools": []}, '{"a": 1}', '{"a": 1}'),
        ({"response_format": form}, '{"a": 1}', '{"a": 1}'),
        ({"response_format": form}, call, ""),
        ({"tool_choice": "required"}, call, ""),
        ({}, f"So:{call}", "So:"),
    ):
        body = {"tools": TOOLS} | more
        plan = plan_reply(read_tool_request(body), read_structured(body), "hermes", start=PromptEnd.OPEN)
        text = f"hm\n</think>\n\n{end}"
        assert is_allowed(plan, text)
        reader = read_whole(plan, text)
        assert (reader.reasoning, reader.content, len(reader.calls)) == ("hm", content, end.count("now"))
    plan = plan_reply(read_tool_request({}), None, "hermes", start=PromptEnd.OPEN)
    assert plan.constraint is None
    assert read_whole(plan, "hm</think>Hi").message()["reasoning_content"] == "hm"
