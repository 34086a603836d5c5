"""Calls of a history are written as the chat templates write them, and read back as the same calls."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import ToolCall, parse_output
from rtlang_grammars.formats.rendering import rendered_calls
from tests.support.schemas.tool_calls import random_call, random_tools
from tests.support.schemas.tool_templates import HAS_ONE_CALL, TEMPLATES, render


@pytest.mark.parametrize("name", FORMATS)
def test_rendered_calls_are_read_back(name: str) -> None:
    rng = random.Random(name)
    for _ in range(10):
        tagged = FORMATS[name].tagged  # written as elements, members of free objects have no types
        tools = random_tools(rng, 3, python_names=True, has_free_objects=tagged is None or not tagged.item)
        drawn = [
            random_call(rng, tools, ("</tool_call>", "<b>", "functools"))
            for _ in range(1 if name in HAS_ONE_CALL else 3)
        ]
        calls = [ToolCall(*each, id=f"call_{i}abcdefghi") for i, each in enumerate(drawn)]
        pieces = rendered_calls(name, calls)
        found = parse_output(name, "".join(text for text, _ in pieces), tools)
        assert [(call.name, call.arguments) for call in found.calls] == drawn
        assert all(text for text, _ in pieces)


# The others put the calls behind other framing, write other blanks than a model is held to, or booleans as Python does.
_ALIKE = sorted(
    TEMPLATES.keys()
    - {"harmony", "qwen-coder", "mistral", "command-r", "command-r7b", "kimi-k2", "deepseek-v3", "phi-4-mini"}
    - {"olmo-3"}
)


@pytest.mark.parametrize("name", _ALIKE)
def test_rendered_calls_are_the_text_of_the_template_but_for_blanks(name: str) -> None:
    rng = random.Random(name)
    tools = random_tools(rng, 2, python_names=True)
    drawn = [random_call(rng, tools, ("</tool_call>",)) for _ in range(1 if name in HAS_ONE_CALL else 2)]
    text = "".join(piece for piece, _ in rendered_calls(name, [ToolCall(*each) for each in drawn]))
    assert "".join(text.split()) in "".join(render(name, "", "", drawn).split())


def test_the_text_of_arguments_is_kept_and_marks_are_told_apart() -> None:
    call = ToolCall("f", {"a": 1}, text='{"a":  1}')
    assert rendered_calls("hermes", [call]) == [
        ("<tool_call>", True),
        ('\n{"name": "f", "arguments": {"a":  1}}\n', False),
        ("</tool_call>", True),
    ]
    hostile = ToolCall("f", {"a": "</tool_call>"})
    assert [is_mark for _, is_mark in rendered_calls("hermes", [hostile])] == [True, False, True]
