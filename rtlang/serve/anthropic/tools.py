"""Tools and the choice among them, as tools of the chat route.

Tools of the client's own have a schema. Tools that the API defines and the client runs (`bash_*`, `text_editor_*`, `memory_*`) are named
by a type only, because models of its maker are trained for them: other models get a description and a schema. Tools that the maker's
servers run are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.anthropic.content_blocks import CacheHints
from rtlang.serve.openai.fields import check_inner, read_bool, read_list, read_text

_VERSIONED = re.compile(r"(?P<kind>[a-z_]+)_(?P<date>[0-9]{8})")
_OF_SERVERS = ("web_search", "web_fetch", "code_execution", "tool_search_tool_bm25", "tool_search_tool_regex", "mcp")
_OF_IMAGES = ("computer", "computer_toolset", "browser_toolset")
_STRING = {"type": "string"}
_LINES = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "First and last line to show, counted from 1; a last line of -1 means the end of the file.",
}
_OWN = ("type", "name", "description", "input_schema", "strict", "input_examples", "defer_loading", "allowed_callers")
_HINTS = ("cache_control", "eager_input_streaming")


def _command(name: str, *required: str, **optional: Any) -> dict[str, Any]:
    """The schema of one command of a tool: texts that it needs, and other properties."""
    texts = {each: _STRING for each in required if each not in optional}
    return {
        "type": "object",
        "properties": {"command": {"const": name}, **texts, **optional},
        "required": ["command", *required],
        "additionalProperties": False,
    }


def _bash() -> tuple[str, dict[str, Any]]:
    schema = {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command to run."},
            "restart": {"type": "boolean", "description": "True to restart the shell; no command is needed then."},
        },
        "additionalProperties": False,
    }
    return "Run a command in a bash shell that keeps its state between calls.", schema


def _text_editor(date: str) -> tuple[str, dict[str, Any]]:
    line = {"type": "integer", "minimum": 0, "description": "Insert after this line; 0 for the beginning of the file."}
    new_text = "insert_text" if date > "20250124" else "new_str"
    commands = [
        _command("view", "path", view_range=_LINES),
        _command("create", "path", "file_text"),
        _command("str_replace", "path", "old_str", new_str=_STRING),
        _command("insert", "path", "insert_line", new_text, insert_line=line),
    ]
    if date <= "20250124":
        commands.append(_command("undo_edit", "path"))
    about = (
        "View and edit files. view shows a file with line numbers, or lists a folder; create writes a file; str_replace "
        "replaces a text that stands in the file exactly once; insert adds text after a line."
    )
    return about, {"type": "object", "anyOf": commands}


def _memory() -> tuple[str, dict[str, Any]]:
    line = {"type": "integer", "minimum": 0, "description": "Insert after this line; 0 for the beginning of the file."}
    commands = [
        _command("view", "path", view_range=_LINES),
        _command("create", "path", "file_text"),
        _command("str_replace", "path", "old_str", "new_str"),
        _command("insert", "path", "insert_line", "insert_text", insert_line=line),
        _command("delete", "path"),
        _command("rename", "old_path", "new_path"),
    ]
    about = "Read and write files below /memories, which stay between conversations."
    return about, {"type": "object", "anyOf": commands}


def chat_tools(tools: Any, hints: CacheHints) -> list[dict[str, Any]]:
    """The tools of a body.

    Raises:
        ParameterError: a tool is malformed, or not supported; names it.
    """
    return [_tool(tool, f"tools[{i}]", hints) for i, tool in enumerate(read_list({"tools": tools}, "tools"))]


def _tool(tool: Any, where: str, hints: CacheHints) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        raise ParameterError(where, tool, "expected an object with name and input_schema")
    hints.read(tool, f"{where}.")
    kind = tool.get("type") or "custom"
    if kind == "custom":
        given = check_inner(where, tool, _OWN, _HINTS)
        schema = given.get("input_schema")
        if not isinstance(schema, Mapping):
            raise ParameterError(f"{where}.input_schema", schema, "expected a JSON schema (an object)")
        about = read_text(given, "description", f"{where}.") if "description" in given else None
    else:
        names = ("type", "name", "strict", "input_examples", "defer_loading", "allowed_callers", "max_characters")
        about, schema = _typed(kind, where)
        given = check_inner(where, tool, names, _HINTS)
        if "max_characters" in given:
            limit = given["max_characters"]
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise ParameterError(f"{where}.max_characters", limit, "expected an integer above 0")
    read_bool(given, "strict", where=f"{where}.")  # arguments always follow the schema
    if read_bool(given, "defer_loading", where=f"{where}."):
        raise ParameterError(f"{where}.defer_loading", True, "only false is supported: there is no tool search")
    if given.get("allowed_callers", ["direct"]) != ["direct"]:
        raise ParameterError(f"{where}.allowed_callers", given["allowed_callers"], 'only ["direct"] is supported')
    if "input_examples" in given:  # the schema is the place in which chat templates can show them
        schema = {**schema, "examples": read_list(given, "input_examples", f"{where}.")}
    function = {"name": read_text(given, "name", f"{where}."), "parameters": schema}
    return {"type": "function", "function": function | ({} if about is None else {"description": about})}


def _typed(kind: Any, where: str) -> tuple[str, dict[str, Any]]:
    """The description and the schema of a tool that the API defines."""
    found = _VERSIONED.fullmatch(kind) if isinstance(kind, str) else None
    match found and found["kind"]:
        case "bash":
            return _bash()
        case "text_editor":
            assert found is not None
            return _text_editor(found["date"])
        case "memory":
            return _memory()
        case name if name in _OF_IMAGES:
            allowed = "not supported: the served model reads no screenshots"
        case name if name in _OF_SERVERS or kind == "mcp_toolset":
            allowed = (
                "not supported: this server runs no tools of its own; run the tool in the client, with an input_schema"
            )
        case _:
            allowed = "expected custom, bash_*, text_editor_* or memory_*"
    raise ParameterError(f"{where}.type", kind, allowed)


def chat_choice(choice: Any) -> dict[str, Any]:
    """`tool_choice` as the fields of the chat route.

    Raises:
        ParameterError: it is malformed; names it.
    """
    accepted = ("type", "name", "disable_parallel_tool_use")
    given = check_inner("tool_choice", choice, accepted)
    found: dict[str, Any] = {}
    if "disable_parallel_tool_use" in given:
        found["parallel_tool_calls"] = not read_bool(given, "disable_parallel_tool_use", where="tool_choice.")
    kind = given.get("type")
    if "name" in given and kind != "tool":
        raise ParameterError("tool_choice.name", given["name"], "allowed only with type = tool")
    match kind:
        case "auto" | "none":
            found["tool_choice"] = kind
        case "any":
            found["tool_choice"] = "required"
        case "tool":
            name = read_text(given, "name", "tool_choice.")
            found["tool_choice"] = {"type": "function", "function": {"name": name}}
        case _:
            raise ParameterError("tool_choice.type", kind, "expected auto, any, tool or none")
    return found
