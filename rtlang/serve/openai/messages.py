"""Chat messages as parts of a text node.

Contents are plain text, which never becomes special tokens. The calls in a message of the assistant are written in the format of the model,
as the model wrote them; marks of the format become the tokens of their names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.serve.openai.fields import check_inner, read_list, read_text
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.rendering import rendered_calls

PLAIN_FORMAT = "json"
"""The format of models whose template shows none."""
MAX_MESSAGES = 10_000
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_IGNORED = ("name", "refusal", "reasoning_content", "reasoning", "annotations", "audio", "function_call")
"""Ignored fields of messages: participants' names, and what assistants' messages of responses carry, mostly as null."""
_TEXT_TYPES = ("text", "input_text", "output_text")

MarkIds = Callable[[str], Sequence[int]]
"""The tokens of a mark of a format, with the names of special tokens as these tokens."""


def read_messages(
    given: Mapping[str, Any], tools: str | None, tool_format: str | None, mark_ids: MarkIds | None, *, continues: bool
) -> tuple[Part, ...]:
    """The prompt of a chat.

    Args:
        given: the accepted fields of the body.
        tools: the tools as JSON text for the chat template.
        tool_format: the format of the model's tool calls.
        mark_ids: None if marks are to be written as plain text.
        continues: the model continues the last message, which must be the assistant's.
    Raises:
        ParameterError: a message is malformed; names the field by its path.
    """
    messages = read_list(given, "messages")
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise ParameterError("messages", messages, f"expected 1 to {MAX_MESSAGES} messages")
    parts: list[Part] = []
    role = ""
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if not isinstance(message, Mapping):
            raise ParameterError(where, message, "expected an object with role and content")
        role = _role(message, f"{where}.role")
        parts.append(RoleStart(role, tools if i == 0 else None))
        parts += _content(message, role, where, tool_format or PLAIN_FORMAT, mark_ids)
        parts.append(RoleEnd())
    if not continues:
        return (*parts, RoleStart("assistant"))
    if role != "assistant":
        raise ParameterError("continue_final_message", True, "expected the last message to be the assistant's")
    return tuple(parts[:-1])


def _role(message: Mapping[str, Any], where: str) -> str:
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise ParameterError(where, role, f"expected one of {', '.join(_ROLES)}")
    return _ROLES[role]


def _content(
    message: Mapping[str, Any], role: str, where: str, tool_format: str, mark_ids: MarkIds | None
) -> list[Part]:
    accepted = ["role", "content"] + ["tool_calls"] * (role == "assistant") + ["tool_call_id"] * (role == "tool")
    given = check_inner(where, message, accepted, _IGNORED)
    calls = read_calls(given.get("tool_calls") or [], f"{where}.tool_calls")
    if role == "tool":
        read_text(given, "tool_call_id", f"{where}.")
    if "content" not in given and not calls and role != "assistant":
        raise ParameterError(f"{where}.content", None, "expected a string or a list of text parts")
    text = content_text(given.get("content", ""), f"{where}.content")
    parts: list[Part] = [text] if text else []
    if calls:
        if text:
            parts.append("\n")
        for piece, is_mark in rendered_calls(tool_format, calls):
            ids = mark_ids(piece) if is_mark and mark_ids is not None else ()
            # A mark that is no single token is encoded together with the text around it, as in the rendered template.
            parts.append(TokenIds(tuple(ids)) if len(ids) == 1 else piece)
    return parts


def content_text(content: Any, where: str) -> str:
    """The text of a content: a string, or a list of text parts.

    Raises:
        ParameterError: it is neither, or has a part that is not text; names it.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ParameterError(where, content, "expected a string or a list of text parts")
    texts = []
    for i, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind not in _TEXT_TYPES:
            raise ParameterError(f"{where}[{i}].type", kind, "only text parts are supported")
        texts.append(read_text(part, "text", f"{where}[{i}]."))
    return "".join(texts)


def read_calls(calls: Any, where: str) -> list[ToolCall]:
    """The calls of a message of the assistant.

    Raises:
        ParameterError: a call is malformed; names the field by its path.
    """
    if not isinstance(calls, list):
        raise ParameterError(where, calls, "expected a list")
    found = []
    for i, call in enumerate(calls):
        at = f"{where}[{i}]"
        given = check_inner(at, call, ("id", "type", "function"), ("index",))
        if given.get("type", "function") != "function":
            raise ParameterError(f"{at}.type", given["type"], "only 'function' is supported")
        function = check_inner(f"{at}.function", given.get("function"), ("name", "arguments"))
        name = read_text(function, "name", f"{at}.function.")
        call_id = read_text(given, "id", f"{at}.") if "id" in given else None
        found.append(read_call(name, function.get("arguments", ""), call_id, f"{at}.function.arguments"))
    return found


def read_call(name: str, arguments: Any, call_id: str | None, where: str) -> ToolCall:
    """A call whose arguments are given as JSON text of an object; no text means no arguments."""
    text = arguments.strip() if isinstance(arguments, str) else None
    try:
        values = json.loads(text or "{}") if text is not None else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ParameterError(where, arguments, "expected the JSON text of an object")
    return ToolCall(name, values, call_id, text or "{}")
