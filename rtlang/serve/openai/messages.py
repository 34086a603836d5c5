"""Chat messages as parts of a text node.

Contents are plain text, which never becomes special tokens. A conversation with calls of tools is written by the chat template as a
whole, as is one in a format whose contents have marks around them. Where the template cannot, the calls in a message of the assistant are
written in the format of the model, as the model wrote them, and marks of the format become the tokens of their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.text_service import HistoryEnd, TextService
from rtlang.serve.openai.fields import check_inner, read_list, read_text
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.rendering import rendered_calls

PLAIN_FORMAT = "json"
"""The format of models whose template shows none."""
MAX_MESSAGES = 10_000
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_IGNORED = ("name", "refusal", "reasoning_content", "reasoning", "annotations", "audio", "function_call")
"""Ignored fields of messages: participants' names, and what assistants' messages of responses carry, mostly as null."""
_TEXT_TYPES = ("text", "input_text", "output_text")


class _Message(NamedTuple):
    role: str
    text: str
    calls: Sequence[ToolCall] = ()
    call_id: str | None = None


def read_messages(
    given: Mapping[str, Any],
    tools: str | None,
    tool_format: str | None,
    texts: TextService | None,
    *,
    end: HistoryEnd = "prompt",
) -> tuple[Part, ...]:
    """The prompt of a chat.

    Args:
        given: the accepted fields of the body.
        tools: the tools as JSON text for the chat template.
        tool_format: the format of the model's tool calls.
        texts: the tokenizer and chat template of the model; None if they are not known here.
        end: how the prompt ends; the last message is left open for the model to continue it, which must be the assistant's.
    Raises:
        ParameterError: a message is malformed; names the field by its path.
    """
    plain = read_list(given, "messages")
    if not 1 <= len(plain) <= MAX_MESSAGES:
        raise ParameterError("messages", plain, f"expected 1 to {MAX_MESSAGES} messages")
    messages = [_message(message, f"messages[{i}]") for i, message in enumerate(plain)]
    if end == "open" and messages[-1].role != "assistant":
        raise ParameterError("continue_final_message", True, "expected the last message to be the assistant's")
    if texts is not None and _needs_template(messages, tool_format):
        parts = texts.history_parts([_for_template(message) for message in messages], tools, end)
        if parts is not None:
            return tuple(parts)
    return tuple(_framed(messages, tools, tool_format or PLAIN_FORMAT, texts, end))


def _message(message: Any, where: str) -> _Message:
    if not isinstance(message, Mapping):
        raise ParameterError(where, message, "expected an object with role and content")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise ParameterError(f"{where}.role", role, f"expected one of {', '.join(_ROLES)}")
    role = _ROLES[role]
    accepted = ["role", "content"] + ["tool_calls"] * (role == "assistant") + ["tool_call_id"] * (role == "tool")
    given = check_inner(where, message, accepted, _IGNORED)
    calls = read_calls(given.get("tool_calls") or [], f"{where}.tool_calls")
    call_id = read_text(given, "tool_call_id", f"{where}.") if role == "tool" else None
    if "content" not in given and not calls and role != "assistant":
        raise ParameterError(f"{where}.content", None, "expected a string or a list of text parts")
    return _Message(role, content_text(given.get("content", ""), f"{where}.content"), calls, call_id)


def _needs_template(messages: Sequence[_Message], tool_format: str | None) -> bool:
    """Whether the framing of these messages depends on more than their roles."""
    has_sections = tool_format in FORMATS and FORMATS[tool_format].content is not None
    return any(each.calls or each.role == "tool" or (each.role == "assistant" and has_sections) for each in messages)


def _for_template(message: _Message) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        plain["tool_calls"] = [{"id": each.id, "name": each.name, "arguments": each.text} for each in message.calls]
    if message.call_id is not None:
        plain["tool_call_id"] = message.call_id
    return plain


def _framed(
    messages: Sequence[_Message], tools: str | None, tool_format: str, texts: TextService | None, end: HistoryEnd
) -> list[Part]:
    """The messages one by one, each framed by its role."""
    parts: list[Part] = []
    for i, message in enumerate(messages):
        parts.append(RoleStart(message.role, None if i else tools))
        if message.text:
            parts.append(message.text)
        if message.calls:
            parts += ["\n"] * bool(message.text) + _calls(message.calls, tool_format, texts)
        parts.append(RoleEnd())
    if end == "prompt":
        return [*parts, RoleStart("assistant")]
    return parts if end == "closed" else parts[:-1]


def _calls(calls: Sequence[ToolCall], tool_format: str, texts: TextService | None) -> list[Part]:
    parts: list[Part] = []
    for piece, is_mark in rendered_calls(tool_format, calls):
        ids = texts.encode(piece, adds_start=False, allow_special=True) if is_mark and texts is not None else ()
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
