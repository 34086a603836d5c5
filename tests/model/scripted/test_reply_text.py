"""What the scripted model writes is read by the parser of its format, and its template writes the same for a history."""

from __future__ import annotations

import datetime
from itertools import product
from typing import Any

import pytest

from rtlang.contract.errors import ConfigError
from rtlang.model.scripted.reply_text import BEGIN, END, reply_text, template_of
from rtlang.model.scripted.script import ScriptedReply
from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import ToolCall, parse_output

ITEM = {"type": "object", "properties": {"x": {"type": "null"}, "y": {"type": "array"}}}
PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": ITEM},
    },
}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}]
CALL = ToolCall(
    "f",
    {"text": "two\nlines \"'<b> é", "number": 3, "flag": True, "list": [{"x": None, "y": ["z", 1.5, False]}, {}]},
    "abcdefgh1",
)
WITHOUT_MARKS = {"json", "llama-3", "llama-4", "mimo", "xlam"}
"""Formats without marks of their own in a template that writes a call."""


def usable() -> list[str]:
    found = []
    for name in FORMATS:
        try:
            template_of(name)
        except ConfigError:
            continue
        found.append(name)
    return found


def test_nearly_all_formats_have_a_template() -> None:
    assert set(FORMATS) - set(usable()) <= WITHOUT_MARKS
    with pytest.raises(ConfigError, match="format = 'json'"):
        template_of("json")


def test_replies_of_all_formats_are_read_back_and_written_again() -> None:
    environment = TemplateEnvironment(datetime.datetime(2026, 1, 1))
    for name in usable():
        found, template = FORMATS[name], environment.compiled(template_of(name))
        has_content_with_calls = found.content is None or found.preamble is not None
        for thought, content, calls in product(("", "hm\nhm"), ("", "Hello"), ((), (CALL,), (CALL, CALL))):
            if not (content or calls) or (thought and found.reasoning is None):
                continue
            if (content and calls and not has_content_with_calls) or (len(calls) > 1 and found.between is None):
                continue
            text = reply_text(found, ScriptedReply(thought, content, calls)).text
            read = parse_output(name, text, TOOLS)
            said = read.reasoning.strip(), read.content.strip(), [(call.name, call.arguments) for call in read.calls]
            assert said == (thought, content, [(call.name, call.arguments) for call in calls]), (name, text)
            message: dict[str, Any] = {"role": "assistant", "content": content, "reasoning_content": thought}
            named = [call.id if call.id is not None else CALL.id for call in read.calls]
            message["tool_calls"] = [
                {"id": each, "function": {"name": call.name, "arguments": call.arguments}}
                for each, call in zip(named, calls, strict=True)
            ]
            environment.begin()
            assert template.render(messages=[message]) == f"{BEGIN}assistant\n{text}{END}\n", name


def test_the_lengths_of_the_thought_are_told() -> None:
    for name in ("hermes", "harmony"):
        found = reply_text(FORMATS[name], ScriptedReply("because", "so"))
        whole = found.text[: found.end_of_thought].strip()
        assert whole.endswith("because")
        assert found.text[found.num_thought_chars :] in ("so", "<|channel|>final<|message|>so")
        assert reply_text(FORMATS[name], ScriptedReply("", "so")).num_thought_chars == 0
