"""Bodies of `/v1/responses` as bodies of `/v1/chat/completions`, whose translation then does the rest.

Fields without a counterpart there are refused by name; fields that only describe the request are hints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import MAX_MAX_TOKENS
from rtlang.serve.openai import reasoning
from rtlang.serve.openai.fields import (
    IGNORED,
    SALTS,
    FieldTable,
    check_inner,
    read_bool,
    read_int,
    read_list,
    read_text,
    rename_field,
)
from rtlang.serve.openai.sampling import FILTER_FIELDS
from rtlang.serve.responses.client_tools import ClientTools
from rtlang.serve.responses.input_items import ChatHistory, Item, Opener, without_old_thoughts

LOGPROBS, ENCRYPTED = "message.output_text.logprobs", "reasoning.encrypted_content"
INCLUDED = (
    LOGPROBS,
    ENCRYPTED,
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
)
"""Allowed entries of `include`. All but the first two are about items that this server never makes."""
SAME_NAME = (
    "model",
    "temperature",
    "top_p",
    "stream",
    "seed",
    "stop",
    "parallel_tool_calls",
    "top_logprobs",
    "priority",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "top_k",
    "min_p",
    "ignore_eos",
    "include_stop_str_in_output",
    "truncate_prompt_tokens",
    "json_style",
    *sorted(FILTER_FIELDS),
    *SALTS,
)
"""Fields that mean the same in both routes; the last ones are extensions."""
FIELDS = FieldTable(
    accepted=frozenset(
        (
            *SAME_NAME,
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "text",
            "include",
            "background",
            "conversation",
            "max_output_tokens",
            "max_tool_calls",
            "previous_response_id",
            "stream_options",
            "truncation",
            *reasoning.FIELDS,
        )
    ),
    refused={
        "prompt": "not supported; send the input",
        "context_management": "not supported; use POST /v1/responses/compact",
        "moderation": "not supported: this server has no moderation model",
    },
    hints=IGNORED | {"client_metadata", "access_programs", "background_options", "image"},
)
COUNT_FIELDS = FieldTable(
    accepted=frozenset(
        (
            *("model", "input", "instructions", "tools", "tool_choice", "text", "reasoning", "truncation"),
            *("conversation", "previous_response_id", "parallel_tool_calls", "chat_template_kwargs"),
        )
    ),
    hints=FIELDS.hints | {"personality"},
)
"""The fields of `/v1/responses/input_tokens`."""
COMPACT_FIELDS = FieldTable(
    accepted=frozenset(("model", "input", "instructions", "previous_response_id")),
    hints=FIELDS.hints | {"tools", "parallel_tool_calls", "reasoning", "text"},
)
"""The fields of `/v1/responses/compact`. The last hints belong to later responses; some clients send them here."""
VERBOSITIES = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class ReadBody:
    """A body as the body of a chat, and the facts that the response needs.

    Attributes:
        chat: the body of the chat request.
        num_pinned: the number of messages at the beginning that are instructions.
        origins: for each message, the path of the field that it comes from.
        tools: the tools of the request.
        seals_thoughts: whether reasoning items carry their thought as an opaque text.
        truncates: whether the oldest messages may be left out.
    """

    chat: dict[str, Any]
    num_pinned: int
    origins: Sequence[str]
    tools: ClientTools
    seals_thoughts: bool
    truncates: bool


def without_metadata(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body that are not null, without those whose name says that they are metadata of the client."""
    return {
        name: value
        for name, value in body.items()
        if value is not None and (name == "metadata" or not name.endswith("metadata"))
    }


def read_body(
    body: Mapping[str, Any], earlier: Sequence[Item], new: Sequence[Item], opened: Opener, fields: FieldTable = FIELDS
) -> ReadBody:
    """Read a body.

    Args:
        earlier: the items of the conversation so far.
        new: the items of the input.
        opened: opens sealed texts.
        fields: the fields of the route.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = fields.given(without_metadata(body))
    chat: dict[str, Any] = {name: given[name] for name in (*SAME_NAME, *sorted(reasoning.FIELDS)) if name in given}
    context = "auto"
    if "reasoning" in given:
        chat["reasoning"], context = _reasoning(given["reasoning"])
    tools = ClientTools()
    if "tools" in given:
        tools.add(read_list(given, "tools"), "tools")
    history = ChatHistory(tools, opened)
    history.add(earlier, "input")
    history.add(new, "input")
    messages, origins = history.messages, history.origins
    if context == "current_turn":
        messages = without_old_thoughts(messages)
    if "instructions" in given:
        messages = [{"role": "system", "content": read_text(given, "instructions")}, *messages]
        origins = ["instructions", *origins]
    if not messages:
        raise ParameterError("input", body.get("input"), "expected text, or a list of items that is not empty")
    chat["messages"] = messages
    pinned = next((i for i, each in enumerate(messages) if each["role"] not in ("system", "developer")), len(messages))
    _read_tools(given, chat, tools)
    if "max_output_tokens" in given:
        chat["max_completion_tokens"] = given["max_output_tokens"]
    read_int(given, "max_tool_calls", 0, MAX_MAX_TOKENS)  # it limits hosted tools, which are never called
    if "text" in given:
        chat |= _format(given["text"], given)
    included = _included(given)
    if LOGPROBS in included or given.get("top_logprobs"):
        chat["logprobs"] = True
    key = body.get("prompt_cache_key") or _conversation(given.get("conversation"))
    if key is not None:
        chat["prompt_cache_key"] = key  # the client's name of the session
    if "stream_options" in given:
        check_inner("stream_options", given["stream_options"], (), ignored=("include_obfuscation", "include_usage"))
    read_bool(given, "stream")
    truncation = given.get("truncation", "disabled")
    if truncation not in ("auto", "disabled"):
        raise ParameterError("truncation", truncation, "expected auto or disabled")
    return ReadBody(chat, pinned, origins, tools, ENCRYPTED in included, truncation == "auto")


def _conversation(value: Any) -> Any:
    return value.get("id") if isinstance(value, Mapping) else value


def _reasoning(value: Any) -> tuple[dict[str, Any], str]:
    """The fields that the chat route reads, and which thoughts of the conversation the model sees again."""
    if not isinstance(value, Mapping):
        raise ParameterError("reasoning", value, "expected an object")
    found = {name: inner for name, inner in value.items() if inner is not None}
    for name in ("summary", "generate_summary"):
        if name in found and found[name] not in ("auto", "concise", "detailed", "none"):
            raise ParameterError(f"reasoning.{name}", found[name], "expected auto, concise or detailed")
    context = found.pop("context", "auto")
    if context not in ("auto", "current_turn", "all_turns"):
        raise ParameterError("reasoning.context", context, "expected auto, current_turn or all_turns")
    mode = found.pop("mode", "standard")
    if mode != "standard":
        raise ParameterError("reasoning.mode", mode, "only 'standard' is supported")
    return found, context


def _read_tools(given: Mapping[str, Any], chat: dict[str, Any], tools: ClientTools) -> None:
    if tools.listed:
        chat["tools"] = tools.chat_tools
    if "tool_choice" in given:
        chat["tool_choice"] = tools.chat_choice(given["tool_choice"])
    if not tools.listed and chat.get("tool_choice") not in (None, "auto", "none"):
        raise ParameterError("tool_choice", given["tool_choice"], "allowed only with tools that can be called")


def _included(given: Mapping[str, Any]) -> list[Any]:
    included = read_list(given, "include") if "include" in given else []
    for name in included:
        if name not in INCLUDED:
            raise ParameterError("include", name, f"expected {' or '.join(INCLUDED)}")
    return included


def _format(text: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The format of the text and its verbosity, which is a variable of the chat template."""
    inner = check_inner("text", text, ("format", "verbosity"))
    chat: dict[str, Any] = {}
    if "verbosity" in inner:
        if inner["verbosity"] not in VERBOSITIES:
            raise ParameterError("text.verbosity", inner["verbosity"], f"expected one of {', '.join(VERBOSITIES)}")
        variables = given.get("chat_template_kwargs", {})
        if isinstance(variables, Mapping):
            chat["chat_template_kwargs"] = {"verbosity": inner["verbosity"], **variables}
    if "format" in inner:
        plain = inner["format"]
        if isinstance(plain, Mapping) and plain.get("type") == "json_schema":
            names = ("type", "name", "schema", "strict", "description")
            schema = check_inner("text.format", plain, names)
            schema.pop("type")
            if "schema" not in schema:
                raise ParameterError("text.format.schema", None, "expected a JSON schema")
            plain = {"type": "json_schema", "json_schema": schema}
        chat["response_format"] = plain
    return chat


_PLACE = re.compile(r"(?P<list>messages|tools)\[(?P<index>[0-9]+)\](?:\.tool_calls\[[0-9]+\])?(?:\.function)?")
_CHAT_NAMES = {
    "max_completion_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "messages": "input",
}


def field_here(name: str | None) -> str | None:
    """The name of a field of the chat request in this route."""
    return None if name is None else _CHAT_NAMES.get(name, name)


def renamed_error(error: ParameterError, read: ReadBody) -> ParameterError:
    """An error of the chat request with the name that its field has in this route."""
    return rename_field(error, (*_places(error.field, read), *_CHAT_NAMES.items()))


def _places(field: str, read: ReadBody) -> list[tuple[str, str]]:
    """The path of a message or tool of the chat request, and the path of the item or tool here."""
    found = _PLACE.match(field)
    if found is None:
        return []
    index = int(found["index"])
    if found["list"] == "messages":
        return [(found[0], read.origins[index])] if index < len(read.origins) else []
    return [(found[0], read.tools.listed[index].where)] if index < len(read.tools.listed) else []
