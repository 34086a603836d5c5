"""Detection of a format from chat templates, special tokens, or neither."""

from __future__ import annotations

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.catalogue import FORMATS, detect_format, format_named
from tests.support.schemas.tool_templates import TEMPLATES

_UNSAID = ("phi-4-mini", "granite-3", "json", "llama-3", "llama-4", "xlam", "mimo")
"""Formats that show in the instructions of the published templates, or not at all, and not in how they render calls."""


@pytest.mark.parametrize("name", [each for each in TEMPLATES if each not in _UNSAID])
def test_a_template_shows_its_format(name: str) -> None:
    found = detect_format(TEMPLATES[name])
    assert found is FORMATS[name]


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("<|start_header_id|>assistant {'name': function name, 'parameters': ...}", "llama-3"),
        ("<|header_start|>system Use exact format: [func_name1(param1=value1), ...]", "llama-4"),
        ("prefix function calls with functools marker", "phi-4-mini"),
        ("write <|tool_call|> followed by a JSON list of tools", "granite-3"),
        ("<|im_start|>{{ message }}<|im_end|>", None),
        (None, None),
    ],
)
def test_instructions_show_the_format(template: str | None, name: str | None) -> None:
    found = detect_format(template)
    assert (found.name if found else None) == name


def test_special_tokens_show_the_format_where_the_template_does_not() -> None:
    names = ["<|im_end|>", "<|tool_calls_section_begin|>"]
    assert detect_format("{{ messages }}", names) is FORMATS["kimi-k2"]
    assert detect_format("<tool_call></tool_call>", names) is FORMATS["hermes"]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(GrammarError, match="format = 'xml': expected one of hermes, qwen-coder"):
        format_named("xml")
