"""Chat messages in the form of the OpenAI API, and sequences of earlier runs, as expressions.

A message has a role and a content; a message of the assistant may have calls of tools, which are written in the format of the model, as the
model would have written them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.request_graph import ROLES, TokenIds
from rtlang.contract.service.text_service import text_service_of
from rtlang.lang.lazy_values.values import real
from rtlang.lang.output_types.tool_calls import ToolCall
from rtlang.lang.output_types.tools import message_start
from rtlang.lang.program_state.expr import Expr, Pieces, Recorded, Role, content_of, described, tool_content
from rtlang.lang.program_state.lost_expressions import check_kept
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.recording import Recording
from rtlang_grammars.formats import parsing
from rtlang_grammars.formats.reasoning import PLAIN_FORMAT
from rtlang_grammars.formats.rendering import rendered_calls

_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
_LEFT_OUT = (
    *("reasoning_content", "reasoning", "reasoning_details", "thinking"),
    *("refusal", "annotations", "audio", "function_call", "id", "created"),
)
"""Fields of answers of the OpenAI API that are no part of later prompts."""


@dataclass(frozen=True, slots=True)
class Message:
    """A chat message.

    Attributes:
        given: the message as the program gave it.
    """

    role: str
    content: tuple[Expr, ...]
    calls: tuple[parsing.ToolCall, ...]
    given: Any


def messages(source: Any, *, tools: Iterable[Any] | None = None, template: TemplateOptions | None = None) -> Expr:
    """Chat messages, appended one after the other; or the whole sequence of an earlier run.

    Args:
        source: a list of messages in the form of the OpenAI API: maps with `role`, `content` (text, numbers, generated values or
            expressions, a list of text parts, or None) and for the assistant `tool_calls`, or objects with such fields. Or a `Result`, one
            of its `forks`, or one of its nodes (`result.at(path)`), with which the sequence then ends: on the same model the sequence
            has exactly the tokens that the run computed, so that the prefix cache holds them if nothing stands before.
        tools, template: of the conversation, as for `rt.system`; with a list only, a `Result` has its own.
    Raises:
        ParameterError: a message is malformed, names the field; or tools are given with a `Result`.
        TraceError: when it is appended, as appending the messages one by one.
    """
    history_of = getattr(type(source), "_rt_history", None)
    if history_of is not None:
        for name, value in (("tools", tools), ("template", template)):
            if value is not None:
                raise ParameterError(name, value, "expected None beside a result, whose first message has its own")
        made = Recorded(lambda record: append_history(record, history_of(source)), "rt.messages(...)")
    else:
        listed = read_messages(source)
        start = message_start("system", tools, template)  # checks them
        made = Recorded(
            lambda record: append_messages(record, listed, start.tools, start.template_options), "rt.messages(...)"
        )
    check_kept(made, described)
    return made


def append_history(record: StateRecord, history: Any) -> None:
    """Append a `History`."""
    record.sequence.append_pieces(history.pieces_for(record.recording.driver.target))


def append_messages(
    record: StateRecord, listed: Sequence[Message], tools: str | None, template_options: str | None
) -> None:
    """Append messages; the first has these tools and options."""
    for message in listed:
        start = message_start(message.role)
        if message is listed[0] and (tools is not None or template_options is not None):
            start = type(start)(message.role, tools, template_options)
        record.record(Role(start, message_content(message, record.recording)))


def message_content(message: Message, recording: Recording) -> tuple[Expr, ...]:
    """The content of a message, with its calls in the format of the model."""
    if not message.calls:
        return message.content
    driver = recording.driver
    service = text_service_of(driver.target)
    pieces: list[Any] = ["\n"] if message.content else []
    for text, is_mark in rendered_calls(driver.tool_format or PLAIN_FORMAT, message.calls):
        ids = service.encode(text, adds_start=False, allow_special=True) if is_mark and service is not None else ()
        # The tokenizer is in this process: a mark that is a token of its own becomes that token, as the model writes it.
        pieces.append(TokenIds((ids[0],), text) if len(ids) == 1 else text)
    return (*message.content, Pieces(tuple(pieces)))


def read_messages(source: Any) -> tuple[Message, ...]:
    """The messages of a list.

    Raises:
        ParameterError: it is no list of messages; names the field by its path.
    """
    source = real(source)
    if isinstance(source, (str, bytes, Mapping)) or not isinstance(source, Iterable):
        raise ParameterError("messages", source, "expected a list of messages, or a Result")
    return tuple(_read(each, f"messages[{number}]") for number, each in enumerate(source))


def _read(given: Any, where: str) -> Message:
    fields = _fields(given, where)
    role = real(fields.get("role"))
    role = "system" if role == "developer" else role
    if role not in ROLES:
        raise ParameterError(f"{where}.role", role, f"expected one of {', '.join(ROLES)}")
    for name, value in fields.items():
        if name not in _FIELDS and name not in _LEFT_OUT and value is not None:
            raise ParameterError(f"{where}.{name}", value, f"expected only the fields {', '.join(_FIELDS)}")
    calls = real(fields.get("tool_calls")) or ()
    if calls and role != "assistant":
        raise ParameterError(f"{where}.tool_calls", calls, "only messages of the assistant have calls")
    if isinstance(calls, (str, Mapping)) or not isinstance(calls, Iterable):
        raise ParameterError(f"{where}.tool_calls", calls, "expected a list of calls")
    read = tuple(_read_call(each, f"{where}.tool_calls[{number}]") for number, each in enumerate(calls))
    content = fields.get("content")
    if content is None and not read and role != "assistant":
        raise ParameterError(f"{where}.content", None, "expected text, a generated value or a list of text parts")
    return Message(role, _content(content, role, f"{where}.content"), read, given)


def _fields(given: Any, where: str) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    dump = getattr(type(given), "model_dump", None)  # a message of the client library of OpenAI
    if dump is None:
        raise ParameterError(where, given, "expected a map with role and content")
    found: dict[str, Any] = dump(given, exclude_none=True)
    return found


def _content(content: Any, role: str, where: str) -> tuple[Expr, ...]:
    if content is None:
        return ()
    if isinstance(content, list) and all(isinstance(each, Mapping) and "type" in each for each in content):
        pieces = []
        for number, part in enumerate(content):
            if part["type"] not in ("text", "input_text", "output_text"):
                raise ParameterError(f"{where}[{number}].type", part["type"], "only text parts are supported")
            pieces.append(part.get("text"))
    else:
        pieces = [content]
    if role == "tool":
        pieces = list(tool_content(pieces))
    found = content_of(pieces, lambda number: where)
    return tuple(each for each in found if not (isinstance(each, Pieces) and all(map(_is_empty, each.pieces))))


def _is_empty(piece: object) -> bool:
    return isinstance(piece, str) and not piece


def _read_call(given: Any, where: str) -> parsing.ToolCall:
    if isinstance(given, ToolCall):
        return parsing.ToolCall(given.name, given.arguments, given.id)
    fields = _fields(given, where)
    function = real(fields.get("function"))
    if fields.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ParameterError(where, given, 'expected a map with type "function" and function')
    name, arguments = real(function.get("name")), real(function.get("arguments", "{}"))
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{where}.function.name", name, "expected a name")
    text = arguments.strip() if isinstance(arguments, str) else None
    values: Any = arguments
    if text is not None:
        try:
            values = json.loads(text or "{}")
        except (ValueError, RecursionError):
            values = None
    if not isinstance(values, Mapping):
        raise ParameterError(f"{where}.function.arguments", arguments, "expected a map, or the JSON text of an object")
    return parsing.ToolCall(name, dict(values), real(fields.get("id")), text or "")
