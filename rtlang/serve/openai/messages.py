"""Chat messages as the prompt of a request.

The model's chat template writes the conversation as a whole, with all fields that it reads. Contents are plain text, which never becomes
special tokens. A target without a text service gets the messages one by one, each framed by its role; calls in a message of the assistant
are then written in the format of the model, and marks of the format become the tokens of their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.service.text_service import HistoryEnd, TextService
from rtlang.serve.openai.fields import check_inner, read_list, read_text
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.reasoning import PLAIN_FORMAT
from rtlang_grammars.formats.rendering import rendered_calls

MAX_MESSAGES = 10_000
_ROLES = ("system", "developer", "user", "assistant", "tool")
_TEXT_FIELDS = ("name", "reasoning_content", "reasoning", "thinking")
"""Fields of any message that templates may read."""
_OF_LITELLM = ("provider_specific_fields", "thinking_blocks")
"""What litellm adds to a message, of the same content; clients send it back through its proxy."""
_IGNORED = ("refusal", "annotations", "audio", "captures", "function_call", "reasoning_details", *_OF_LITELLM)
"""Ignored fields of messages: what assistants' messages of responses carry, mostly as null."""
_TEXT_TYPES = ("text", "input_text", "output_text")
_UNREAD_TYPES = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "audio": "recording",
    "input_audio": "recording",
    "video_url": "video",
}
"""Kinds of parts that only a model with other inputs can read, of all APIs, and words for them."""
_IGNORED_OF_PARTS = ("annotations", "logprobs", "cache_control", "prompt_cache_breakpoint")
"""Fields of text parts, such as those of an answer that is sent again; docs/serving.md publishes this list."""


def read_messages(
    given: Mapping[str, Any],
    tools: str | None,
    tool_format: str | None,
    texts: TextService | None,
    *,
    end: HistoryEnd = "prompt",
    template_options: str | None = None,
    max_tokens: int | None = None,
) -> tuple[Part, ...]:
    """The prompt of a chat, as parts of a text node.

    Args:
        given: the accepted fields of the body.
        tools, template_options: see `RoleStart`.
        tool_format: the format of the model's tool calls.
        texts: the tokenizer and chat template of the model; None if they are not known here.
        max_tokens: see `TextService.chat_prompt`.
        end: how the prompt ends; the last message is left open for the model to continue it, which must be the assistant's.
    Raises:
        ParameterError: a message is malformed; names the field by its path. Or the chat template refuses the conversation.
        ContextLengthError: there are more than `max_tokens` tokens.
    """
    plain = read_list(given, "messages")
    if not 1 <= len(plain) <= MAX_MESSAGES:
        raise ParameterError("messages", plain, f"expected 1 to {MAX_MESSAGES} messages")
    messages = [_message(message, f"messages[{i}]") for i, message in enumerate(plain)]
    if end == "open" and messages[-1]["role"] != "assistant":
        raise ParameterError("continue_final_message", True, "expected the last message to be the assistant's")
    if texts is None:
        return tuple(_framed(messages, tools, tool_format or PLAIN_FORMAT, end, template_options))
    return (TokenIds(tuple(texts.chat_prompt(messages, tools, end, template_options, max_tokens))),)


def _message(message: Any, where: str) -> dict[str, Any]:
    """A message as templates take it: with maps as arguments of calls."""
    if not isinstance(message, Mapping):
        raise ParameterError(where, message, "expected an object with role and content")
    role = message.get("role")
    if role not in _ROLES:
        raise ParameterError(f"{where}.role", role, f"expected one of {', '.join(_ROLES)}")
    own = {"assistant": ("tool_calls",), "tool": ("tool_call_id",)}.get(role, ())
    given = check_inner(where, message, ("role", "content", *_TEXT_FIELDS, *own), _IGNORED)
    found: dict[str, Any] = {"role": role}
    if "content" in given:
        found["content"] = _content(given["content"], f"{where}.content", of_tool=role == "tool")
    for name in _TEXT_FIELDS:
        if name in given:
            found[name] = read_text(given, name, f"{where}.")
    if role == "tool":
        found["tool_call_id"] = read_text(given, "tool_call_id", f"{where}.")
    if given.get("tool_calls"):
        found["tool_calls"] = [
            {
                **({} if call.id is None else {"id": call.id}),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in read_calls(given["tool_calls"], f"{where}.tool_calls")
        ]
    if "content" not in found and role != "assistant":
        raise ParameterError(f"{where}.content", None, "expected a string or a list of text parts")
    return found


def _content(content: Any, where: str, *, of_tool: bool = False) -> str | list[dict[str, Any]]:
    if isinstance(content, list):
        return [{"type": "text", "text": text} for text in _texts_of_parts(content, where, of_tool=of_tool)]
    return content_text(content, where)


def _framed(
    messages: Sequence[Mapping[str, Any]],
    tools: str | None,
    tool_format: str,
    end: HistoryEnd,
    template_options: str | None,
) -> list[Part]:
    """The messages one by one, each framed by its role."""
    parts: list[Part] = []
    for i, message in enumerate(messages):
        role = "system" if message["role"] == "developer" else message["role"]
        parts.append(RoleStart(role) if i else RoleStart(role, tools, template_options))
        text = content_text(message.get("content") or "", "content")
        calls = [
            ToolCall(call["function"]["name"], call["function"]["arguments"], call.get("id"))
            for call in message.get("tool_calls", ())
        ]
        if text:
            parts.append(text)
        if calls:
            parts += ["\n"] * bool(text) + [piece for piece, _ in rendered_calls(tool_format, calls)]
        parts.append(RoleEnd())
    if end == "prompt":
        return [*parts, RoleStart("assistant")]
    return parts if end == "closed" else parts[:-1]


def content_text(content: Any, where: str, *, of_tool: bool = False) -> str:
    """The text of a content: a string, or a list of text parts.

    Args:
        of_tool: whether it is the result of a call; `unread_note` stands for its images and files.
    Raises:
        ParameterError: it is neither, or has a part that is not text; names it.
    """
    return content if isinstance(content, str) else "".join(_texts_of_parts(content, where, of_tool=of_tool))


def unread_note(kind: str) -> str | None:
    """The text that stands for a part of a tool's result which the model cannot read; None for kinds of parts that are no such.

    An agent sends what its tools return, and sends it again with each turn: if the server refused an image there, no later turn could
    succeed. A user who sends an image asks about it, so that one is refused.
    """
    word = _UNREAD_TYPES.get(kind)
    return None if word is None else f"[{word} left out: the model reads text only]"


def _texts_of_parts(content: Any, where: str, *, of_tool: bool = False) -> list[str]:
    if not isinstance(content, list):
        raise ParameterError(where, content, "expected a string or a list of text parts")
    texts = []
    for i, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = part.get("type") if isinstance(part, Mapping) else None
        if of_tool and isinstance(kind, str) and (note := unread_note(kind)) is not None:
            texts.append(note)
            continue
        if kind not in _TEXT_TYPES:
            raise ParameterError(f"{where}[{i}].type", kind, "only text parts are supported")
        given = check_inner(f"{where}[{i}]", part, ("type", "text"), _IGNORED_OF_PARTS)
        texts.append(read_text(given, "text", f"{where}[{i}]."))
    return texts


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
        given = check_inner(at, call, ("id", "type", "function"), ("index", *_OF_LITELLM))
        if given.get("type", "function") != "function":
            raise ParameterError(f"{at}.type", given["type"], "only 'function' is supported")
        function = check_inner(f"{at}.function", given.get("function"), ("name", "arguments"), _OF_LITELLM)
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
