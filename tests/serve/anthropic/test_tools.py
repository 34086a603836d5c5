"""Tools and choices of the Messages API as those of the chat route; calls of the typed tools are held to schemas of ours."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.anthropic.content_blocks import CacheHints
from rtlang.serve.anthropic.tools import chat_choice, chat_tools

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOL = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}
FUNCTION = {"name": "look", "description": "Looks.", "parameters": SCHEMA}


def parameters(kind: str, name: str) -> dict[str, Any]:
    (tool,) = chat_tools([{"type": kind, "name": name}], CacheHints())
    function = tool["function"]
    assert (tool["type"], function["name"]) == ("function", name)
    assert function["description"]
    found: dict[str, Any] = function["parameters"]
    return found


def test_tools_of_the_client_become_functions() -> None:
    hints = CacheHints()
    more = {"type": "custom", "strict": True, "eager_input_streaming": True, "allowed_callers": ["direct"]}
    control = {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "defer_loading": False}
    assert chat_tools([TOOL, {**TOOL, **more, **control}], hints) == [{"type": "function", "function": FUNCTION}] * 2
    assert hints.keep_s == 3600.0
    examples = [{"a": 1}]
    (tool,) = chat_tools([{**TOOL, "input_examples": examples}], hints)
    assert tool["function"]["parameters"] == {**SCHEMA, "examples": examples}
    assert "examples" not in SCHEMA


def test_typed_tools_take_the_inputs_of_their_protocol() -> None:
    old = {"command": "insert", "path": "/a", "insert_line": 0, "new_str": "x"}
    new = {"command": "insert", "path": "/a", "insert_line": 2, "insert_text": "x"}
    undo = {"command": "undo_edit", "path": "/a"}
    editing = [
        {"command": "view", "path": "/a"},
        {"command": "view", "path": "/a", "view_range": [1, -1]},
        {"command": "create", "path": "/a", "file_text": "x"},
        {"command": "str_replace", "path": "/a", "old_str": "x", "new_str": "y"},
    ]
    moving = [{"command": "delete", "path": "/a"}, {"command": "rename", "old_path": "/a", "new_path": "/b"}]
    for kind, name, valid, invalid in (
        ("bash_20250124", "bash", [{"command": "ls"}, {"restart": True}], [{"command": 3}, {"cmd": "ls"}]),
        ("text_editor_20241022", "str_replace_editor", [*editing, old, undo], [new, {"command": "open", "path": "/a"}]),
        ("text_editor_20250124", "str_replace_editor", [*editing, old, undo], [new, {"path": "/a"}]),
        ("text_editor_20250728", "str_replace_based_edit_tool", [*editing, new], [old, undo]),
        ("memory_20250818", "memory", [*editing, new, *moving], [undo, {"command": "delete"}]),
    ):
        schema = parameters(kind, name)
        for value in valid:
            jsonschema.validate(value, schema)
        for value in invalid:
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(value, schema)


def test_other_tools_are_refused_by_name() -> None:
    for tool, field in (
        (3, "tools[0]"),
        ({"name": "look"}, "tools[0].input_schema"),
        ({**TOOL, "input_schema": []}, "tools[0].input_schema"),
        ({**TOOL, "name": 3}, "tools[0].name"),
        ({**TOOL, "description": 3}, "tools[0].description"),
        ({**TOOL, "strict": "yes"}, "tools[0].strict"),
        ({**TOOL, "parameters": {}}, "tools[0].parameters"),
        ({**TOOL, "defer_loading": True}, "tools[0].defer_loading"),
        ({**TOOL, "allowed_callers": ["code_execution_20250825"]}, "tools[0].allowed_callers"),
        ({**TOOL, "cache_control": 3}, "tools[0].cache_control"),
        ({"type": "web_search_20250305", "name": "web_search"}, "tools[0].type"),
        ({"type": "tool_search_tool_regex_20251119", "name": "x"}, "tools[0].type"),
        ({"type": "computer_20250124", "name": "computer", "display_width_px": 1}, "tools[0].type"),
        ({"type": "mcp_toolset", "mcp_server_name": "a"}, "tools[0].type"),
        ({"type": "other"}, "tools[0].type"),
        ({"type": ["custom"]}, "tools[0].type"),
        ({"type": "bash_20250124", "name": "bash", "input_schema": {}}, "tools[0].input_schema"),
        ({"type": "text_editor_20250728", "name": "e", "max_characters": 0}, "tools[0].max_characters"),
    ):
        with pytest.raises(ParameterError) as caught:
            chat_tools([tool], CacheHints())
        assert caught.value.field == field, tool


def test_each_choice_has_its_counterpart() -> None:
    named = {"type": "function", "function": {"name": "look"}}
    assert chat_choice({"type": "auto"}) == {"tool_choice": "auto"}
    assert chat_choice({"type": "none"}) == {"tool_choice": "none"}
    assert chat_choice({"type": "any", "disable_parallel_tool_use": True}) == {
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    assert chat_choice({"type": "tool", "name": "look"}) == {"tool_choice": named}
    for choice, field in (
        ("auto", "tool_choice"),
        ({"type": "required"}, "tool_choice.type"),
        ({"type": "tool"}, "tool_choice.name"),
        ({"type": "any", "name": "look"}, "tool_choice.name"),
        ({"type": "any", "disable_parallel_tool_use": 1}, "tool_choice.disable_parallel_tool_use"),
        ({"type": "auto", "mode": "x"}, "tool_choice.mode"),
    ):
        with pytest.raises(ParameterError) as caught:
            chat_choice(choice)
        assert caught.value.field == field
