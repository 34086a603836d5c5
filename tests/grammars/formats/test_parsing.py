"""Parsing as text arrives: every split gives the same output; markers are never passed on; malformed calls are named."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rtlang_grammars import ANY_STYLE
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import ToolCall, ToolOutput, ToolParseError, ToolStream, parse_output
from rtlang_grammars.formats.tool_grammar import tool_grammar
from tests.grammars.formats.test_tool_grammar import drawn, matcher_of
from tests.support.long_tests import sized
from tests.support.schemas.tool_calls import random_call, random_tools
from tests.support.schemas.tool_templates import HAS_NO_CONTENT_BEFORE_CALLS, HAS_ONE_CALL, TEMPLATES, render


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_pieces_of_a_stream_do_not_matter(name: str) -> None:
    rng = random.Random(name)
    for _ in range(sized(10, usual=4)):
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


def _push_all(stream: ToolStream, text: str) -> None:
    for character in text:
        stream.push(character)
    stream.finish()


def _tagged(value: str) -> str:
    return f"<tool_call>\n<function=f>\n<parameter=x>\n{value}\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("json", '{"name": "f", "arguments": {"x": NaN}}', "NaN is no JSON value"),
        ("json", '{"name": "f", "arguments": {"x": [-Infinity]}}', "-Infinity is no JSON value"),
        ("json", '{"name": "f", "arguments": {"x": 1e999}}', "'x' has the number inf, which is not finite"),
        ("json", r'{"name": "f", "arguments": {"x": ["\ud83d"]}}', "'x' has half of a surrogate pair"),
        ("json", r'{"name": "f", "arguments": {"\udc00": 1}}', "has half of a surrogate pair"),
        ("llama-4", "[f(x=1e999)]", "'x' has the number inf"),
        ("llama-4", r"[f(x='\ud800')]", "'x' has half of a surrogate pair"),
        ("qwen-coder", _tagged("NaN"), "NaN is no JSON value"),
        ("qwen-coder", _tagged("1e999"), "'x' has the number inf"),
    ],
)
def test_values_that_json_does_not_have_are_refused_by_name(name: str, text: str, message: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"x": {"type": "number"}, "o": {"type": "object"}}}}]
    with pytest.raises(ToolParseError, match=message):
        parse_output(name, text, tools)
    with pytest.raises(ToolParseError, match=message):
        _push_all(ToolStream(name, tools), text)


@pytest.mark.parametrize(
    ("name", "text", "arguments"),
    [
        ("json", '{"name": "f", "arguments": {"x": 1, "x": 2}}', {"x": 2}),
        ("json", '{"name": "f", "arguments": {"o": {"y": 1, "y": 2}}}', {"o": {"y": 2}}),
        ("llama-4", "[f(x=1, x=2)]", {"x": 2}),
        ("llama-4", "[f(o={'y': 1, 'y': 2})]", {"o": {"y": 2}}),
        ("qwen-coder", _tagged("1").replace("</function>", "<parameter=x>\n2\n</parameter>\n</function>"), {"x": 2}),
        ("qwen-coder", _tagged('{"y": 1, "y": 2}').replace("=x>", "=o>"), {"o": {"y": 2}}),
    ],
)
def test_the_last_value_of_a_repeated_name_counts_as_with_json_loads(
    name: str, text: str, arguments: dict[str, Any]
) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"x": {"type": "number"}, "o": {"type": "object"}}}}]
    assert [each.arguments for each in parse_output(name, text, tools).calls] == [arguments]
    stream = ToolStream(name, tools)
    _push_all(stream, text)
    assert [each.arguments for each in stream.output.calls] == [arguments]


def test_an_integer_without_quotes_is_an_int_and_a_pair_of_surrogates_one_character() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}]
    for text, value in (("2.0", 2), ("1e3", 1000), ("-7", -7)):
        (call,) = parse_output("qwen-coder", _tagged(text), tools).calls
        assert call.arguments == {"x": value}
        assert type(call.arguments["x"]) is int
    (call,) = parse_output("json", r'{"name": "f", "arguments": {"x": "\ud83d\ude00"}}').calls
    assert call.arguments == {"x": "😀"}


def test_json_among_python_arguments_has_the_escapes_of_json() -> None:
    text = r"""[f(o={"a\/b": "\\/\/", "\ud83d\ude00": ["\ud83d\ude00\u00e9"]}, x='\\/')]"""
    (call,) = parse_output("llama-4", text, [{"name": "f"}]).calls
    assert call.arguments == {"o": {"a/b": "\\//", "😀": ["😀é"]}, "x": "\\/"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_call_under_way_grows_to_the_whole_call(name: str) -> None:
    rng, longest, is_json = random.Random(name), 0, False
    for _ in range(sized(10, usual=4)):
        tools = random_tools(rng, 3, python_names=True)
        calls = [
            random_call(rng, tools, ("</tool_call>", "<b>", "functools"))
            for _ in range(1 if name in HAS_ONE_CALL else 2)
        ]
        text = render(name, "", "why", calls)
        stream, at = ToolStream(name, tools), 0
        seen: dict[int, str] = {}
        whole: list[ToolCall] = []
        while at < len(text):
            size = rng.randrange(1, 6)
            whole += stream.push(text[at : at + size]).calls
            at += size
            call = stream.open_call()
            if call is not None:
                assert call.number == len(whole)
                assert call.name == calls[call.number][0]
                assert call.arguments.startswith(seen.get(call.number, ""))
                seen[call.number] = call.arguments
        whole += stream.finish().calls
        assert len(whole) == len(calls)
        for number, arguments in seen.items():
            assert whole[number].text.startswith(arguments)
        is_json = any(call.text for call in whole)
        assert not is_json or all(json.loads(call.text) == call.arguments for call in whole)
        longest = max(longest, *map(len, seen.values())) if seen else longest
    assert (longest > 10) is is_json


def test_calls_are_content_where_they_are_not_read() -> None:
    text = '{"a": 1}<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    for options in ({"reads_calls": False}, {"reads_calls_in_content": False}):
        stream = ToolStream("hermes", [{"name": "f"}], **options)
        stream.push(text)
        stream.finish()
        assert stream.output == ToolOutput(text)
    stream = ToolStream("hermes", [{"name": "f"}], reads_calls_in_content=False)
    stream.push(text[8:])
    assert len(stream.output.calls) == 1


SCALARS = (
    *(
        'it\'s "q" \\ x',
        "a\nb",
        "日本 é😀",
        "<b>&amp;</b>",
        "",
        " x ",
        "\n",
        "x\n",
        "C:\\new\\table",
        "\\",
        "/",
        "a\tb",
        "'",
        '"',
    ),
    *("5", "true", "null", "None", '{"a": 1', "[1]", "a, b=c(d) [e]: {f}", "<![CDATA[x]]", "```"),
    *(0, 7, -12, 0.5, -1.25, 100000, True, False, None),
)
"""Values that a format may confuse with its own marks, or with values of another type."""


def some_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.choice(["scalar", "scalar", "array", "object"] if depth < 3 else ["scalar"])
    if kind == "array":
        return [some_value(rng, depth + 1)] * rng.randrange(3)
    if kind == "object":
        return {name: some_value(rng, depth + 1) for name in rng.sample(["x", "on", "b1"], rng.randrange(3))}
    return rng.choice(SCALARS)


def schema_of(value: Any) -> dict[str, Any]:
    """A schema that allows one value alone, of the keywords that every format follows."""
    match value:
        case dict():
            properties = {name: schema_of(each) for name, each in value.items()}
            return {
                "type": "object",
                "properties": properties,
                "required": list(value),
                "additionalProperties": False,
            }
        case []:
            return {"type": "array", "maxItems": 0}
        case list():
            return {"type": "array", "items": schema_of(value[0]), "minItems": len(value), "maxItems": len(value)}
    return {"const": value}


@pytest.mark.parametrize("name", FORMATS)
def test_every_text_of_a_mask_is_read_as_the_call_that_it_allows(name: str) -> None:
    """The schemas allow one value for each argument, so the calls of every walk are known beforehand."""
    rng = random.Random(name)
    for style in (None, ANY_STYLE) * sized(20, usual=1):
        meant = {tool: {key: some_value(rng) for key in rng.sample("pqr", rng.randrange(1, 4))} for tool in ("f", "g2")}
        tools = [{"name": tool, "parameters": schema_of(each)} for tool, each in meant.items()]
        matcher = matcher_of(tool_grammar(name, tools, tool_choice="required", style=style))
        for _ in range(4):
            text = drawn(matcher, rng, rng.randrange(100))
            read = parse_output(name, text, tools)
            assert read.calls
            for call in read.calls:  # true is 1 in Python, but not in JSON
                written = [json.dumps(each, sort_keys=True) for each in (call.arguments, meant[call.name])]
                assert call.arguments == meant[call.name], text
                assert written[0] == written[1] or style is not None, text
            stream, at = ToolStream(name, tools), 0
            while at < len(text):
                size = rng.randrange(1, 9)
                stream.push(text[at : at + size])
                at += size
            stream.finish()
            assert stream.output == read, text
