"""Parsing as text arrives: every split gives the same output; markers are never passed on; malformed calls are named."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.formats.parsing import ToolCall, ToolOutput, ToolParseError, ToolStream, parse_output
from tests.support.tool_calls import random_call, random_tools
from tests.support.tool_templates import HAS_NO_CONTENT_BEFORE_CALLS, HAS_ONE_CALL, TEMPLATES, render


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_pieces_of_a_stream_do_not_matter(name: str) -> None:
    rng = random.Random(name)
    for _ in range(10):
        tools = random_tools(rng, 3, python_names=True)
        avoid = ("</tool_call>", "<b>", "functools")
        calls = [random_call(rng, tools, avoid) for _ in range(1 if name in HAS_ONE_CALL else 2)]
        content = "" if name in HAS_NO_CONTENT_BEFORE_CALLS else "Some text.\n<b"
        text = render(name, content, "why", calls)
        whole = parse_output(name, text, tools)
        stream, at = ToolStream(name, tools), 0
        parts: list[tuple[str, str, tuple[ToolCall, ...]]] = []
        while at < len(text):
            size = rng.randrange(1, 6)
            delta = stream.push(text[at : at + size])
            parts.append((delta.content, delta.reasoning, delta.calls))
            at += size
        delta = stream.finish()
        parts.append((delta.content, delta.reasoning, delta.calls))
        assert stream.output == whole
        joined = ToolOutput(
            "".join(each[0] for each in parts), "".join(each[1] for each in parts), sum((each[2] for each in parts), ())
        )
        assert joined == whole


def test_text_behind_the_calls_is_content() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call> and more'
    assert parse_output("hermes", text) == ToolOutput(" and more", "", (ToolCall("f", {}),))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("hermes", 'a<tool_call>\n{"name": "f", "argu', "at character 1: the text ends within a tool call"),
        ("hermes", "a<tool_call>\nf(1)</tool_call>", "at character 1: expected"),
        ("hermes", '<tool_call>{"name": "f", "arguments": 3}</tool_call>', "expected a JSON object"),
        ("llama-4", "[f(1)]", "expected arguments with names"),
        ("llama-4", "[f(x=g())]", "expected a literal"),
        (
            "deepseek-v3.1",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
            "ends within",
        ),
    ],
)
def test_malformed_calls_are_named_with_their_place(name: str, text: str, message: str) -> None:
    with pytest.raises(ToolParseError, match=message):
        parse_output(name, text, [{"name": "f"}])


def test_values_without_quotes_have_the_types_of_the_schema() -> None:
    kinds = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "o": "object"}
    tools = [{"name": "f", "parameters": {"properties": {key: {"type": kind} for key, kind in kinds.items()}}}]
    values = {"s": "5", "i": "5", "n": "5.5", "b": "True", "o": '{"a": "</parameter>"}'}
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    text = f"<tool_call>\n<function=f>\n{inner}</function>\n</tool_call>"
    expected = {"s": "5", "i": 5, "n": 5.5, "b": True, "o": {"a": "</parameter>"}}
    assert parse_output("qwen-coder", text, tools).calls == (ToolCall("f", expected),)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", '{"name": "get", "arguments": ' + '{"a":' * 100_000),
        ("json", '{"name": "get", "arguments": {"a": ' + "[" * 5000 + "]" * 5000 + "}}"),
        ("llama-4", "[f(n=" + "-" * 50_000 + "1)]"),
        ("llama-4", "[f(n=" + "[" * 250 + "]" * 250 + ")]"),
    ],
)
def test_arguments_that_are_nested_too_deeply_are_named(name: str, text: str) -> None:
    tools = [{"type": "function", "function": {"name": each, "parameters": {}}} for each in ("f", "get")]
    with pytest.raises(ToolParseError, match="nested"):
        parse_output(name, text, tools)
