"""Formats measured on templates, with the catalogue as oracle: a template of each of its formats measures as that format."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import pytest

from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang_grammars.formats.catalogue import FORMATS, format_named
from rtlang_grammars.formats.description import ArgumentStyle, Span
from rtlang_grammars.formats.measuring.measurement import (
    Render,
    UnclearFormatError,
    are_alike,
    measure_format,
)
from rtlang_grammars.formats.parsing import ToolCall, parse_output
from rtlang_grammars.formats.rendering import rendered_calls
from rtlang_grammars.formats.tool_grammar import tool_grammar
from tests.grammars.formats.test_tool_grammar import accepts, matcher_of
from tests.support.schemas.tool_templates import TEMPLATES

WRITES_ONE_CALL_WITHOUT_SEPARATOR = "llama-3"
CONVERSATION = """
{%- for m in messages %}
{%- if m.role == 'assistant' %}{{ '<|turn|>assistant\\n' }}ANSWER{{ '<|over|>' }}
{%- else %}{{ '<|turn|>' ~ m.role ~ '\\n' ~ m.content ~ '<|over|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|turn|>assistant\\n' }}{% endif %}"""
EACH = "{%- for c in m.tool_calls %}{% set f = c.function %}"


def renderer(answer: str) -> Render:
    """Writes conversations with a template whose answers are written by `answer`, as in tool_templates.py."""
    environment = TemplateEnvironment(datetime.datetime(2025, 1, 1))
    template = environment.compiled(CONVERSATION.replace("ANSWER", answer))

    def render(messages: Sequence[Mapping[str, Any]], adds_prompt: bool) -> str:
        environment.begin()
        try:
            return str(template.render(messages=list(messages), add_generation_prompt=adds_prompt))
        except jinja2.TemplateError as error:
            raise ValueError(str(error)) from None

    return render


def test_templates_of_the_catalogue_measure_as_their_formats() -> None:
    found = {
        name: measure_format(renderer(template))
        for name, template in TEMPLATES.items()
        if name != WRITES_ONE_CALL_WITHOUT_SEPARATOR
    }
    assert [name for name, measured in found.items() if not are_alike(FORMATS[name], measured)] == []
    thoughts = {name for name, template in TEMPLATES.items() if "reasoning_content" in template} & found.keys()
    assert {name for name in thoughts if found[name].reasoning != FORMATS[name].reasoning} == set()


UNKNOWN: dict[str, tuple[str, ArgumentStyle, Span | None]] = {
    "json with an id before the name": (
        "{% if m.reasoning_content %}{{ '<ponder>' ~ m.reasoning_content ~ '</ponder>' }}{% endif %}{{ m.content }}"
        "{% if m.tool_calls %}{{ '<|uses|>' }}" + EACH + "{{ '<|use|>' ~ c.id ~ '<|name|>' ~ f.name ~ '<|args|>' }}"
        "{{ f.arguments | tojson ~ '<|done|>' }}{% endfor %}{{ '<|all_done|>' }}{% endif %}",
        ArgumentStyle.JSON,
        Span("<ponder>", "</ponder>"),
    ),
    "an array with other keys": (
        "{{ m.content }}{% if m.tool_calls %}{{ '[USES][' }}" + EACH + "{{ ', ' if not loop.first }}"
        "{{ '{\"tool\": \"' ~ f.name ~ '\", \"input\": ' ~ f.arguments | tojson ~ '}' }}{% endfor %}{{ '][/USES]' }}{% endif %}",
        ArgumentStyle.JSON,
        None,
    ),
    "tags with types": (
        "{{ m.content }}" + EACH + "{{ '<use tool=\"' ~ f.name ~ '\">\\n' }}{% for k, v in f.arguments.items() %}"
        "{{ '<arg key=\"' ~ k ~ '\" string=\"' ~ ('true' if v is string else 'false') ~ '\">' }}"
        "{{ (v if v is string else v | tojson) ~ '</arg>\\n' }}"
        "{% endfor %}{{ '</use>\\n' }}{% endfor %}",
        ArgumentStyle.TAGGED,
        None,
    ),
    "calls of Python, one a line": (
        "{{ m.content }}{% if m.tool_calls %}{{ '<run>\\n' }}"
        + EACH
        + "{{ f.name ~ '(' }}{% for k, v in f.arguments.items() %}"
        "{{ k ~ '=' ~ ('%r' | format(v)) }}{% if not loop.last %}{{ ', ' }}{% endif %}{% endfor %}{{ ')\\n' }}{% endfor %}"
        "{{ '</run>' }}{% endif %}",
        ArgumentStyle.PYTHON,
        None,
    ),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_template_is_measured_and_its_mask_accepts_what_it_writes(kind: str) -> None:
    template, style, reasoning = UNKNOWN[kind]
    measured = measure_format(renderer(template))
    assert format_named(measured.name) == measured
    assert (measured.arguments, measured.reasoning) == (style, reasoning)
    properties = {
        "s": {"type": "string"},
        "n": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "integer"}},
    }
    tools: list[dict[str, Any]] = [
        {"name": "f", "parameters": {"type": "object", "properties": properties}},
        {"name": "g"},
    ]
    matcher = matcher_of(tool_grammar(measured, tools, tool_choice="required", reasoning="forbidden"))
    calls = [ToolCall("f", {"s": "日本 a, b (c)", "n": -3, "l": [1, 2]}, "call-1"), ToolCall("g", {}, "call-2")]
    plain = [
        {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
        for each in calls
    ]
    text = renderer(template)([{"role": "assistant", "content": "", "tool_calls": plain}], False)
    text = text.removeprefix("<|turn|>assistant\n").removesuffix("<|over|>")
    assert accepts(matcher, text.strip()), text
    read = parse_output(measured, text, tools).calls
    assert [(each.name, each.arguments) for each in read] == [(each.name, each.arguments) for each in calls]
    assert "".join(piece for piece, _ in rendered_calls(measured, calls)).split() == text.split()
    named = tool_grammar(measured.name, tools, tool_choice="required", reasoning="forbidden")
    assert named.source == tool_grammar(measured, tools, tool_choice="required", reasoning="forbidden").source


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ("{{ m.content }}", "the template writes no calls"),
        ("{% if m.tool_calls %}{{ raise_exception('no tools here') }}{% endif %}{{ m.content }}", "no tools here"),
        (
            "{{ m.content }}" + EACH + "{{ f.name ~ '|' ~ f.arguments | length }}{% endfor %}",
            "no style of arguments fits",
        ),
        (
            "{{ m.content }}" + EACH + "{{ f.name ~ f.arguments | tojson }}{% endfor %}",
            "nothing tells a call from content",
        ),
        (
            "{{ m.content }}"
            + EACH
            + "{{ '<use>' ~ f.name ~ '<args>' ~ (f.arguments | tojson).replace('-5', '5') }}{% endfor %}",
            "is read as",
        ),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_was_seen(answer: str, seen: str) -> None:
    with pytest.raises(UnclearFormatError, match=seen):
        measure_format(renderer(answer))
