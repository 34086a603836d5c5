"""Bodies of `/v1/messages` and `/v1/messages/count_tokens` as bodies of `/v1/chat/completions`.

Fields get the names and shapes of the chat route, whose translation then does the rest. Source: the types of the `anthropic` package,
version 2.14.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import MAX_MAX_TOKENS
from rtlang.serve.anthropic.content_blocks import CacheHints, Message, chat_messages
from rtlang.serve.anthropic.errors import THREAD
from rtlang.serve.anthropic.tools import chat_choice, chat_tools
from rtlang.serve.openai.fields import SALTS, FieldTable, check_inner, read_int, read_list, rename_field

HINTS = frozenset(
    (
        "metadata",
        "service_tier",
        "inference_geo",
        "speed",
        "diagnostics",
        "user_profile_id",
        "workspace_id",
        "betas",
        "billing_policy",
        "fallback_credit_token",
        "anthropic_version",
        "anthropic_beta",
    )
)
"""Fields that never change the text: names for accounts, wishes for speed and place, versions of the API."""
SAME_NAME = ("model", "stream", "temperature", "top_p", "top_k", "seed", "priority", *SALTS)
"""Fields that mean the same in both routes; those after `top_k` are extensions."""
_OF_PROMPT = ("messages", "system", "tools", "tool_choice", "thinking", "cache_control", "context_management")
FIELDS = FieldTable(
    accepted=frozenset((*SAME_NAME, *_OF_PROMPT, "max_tokens", "stop_sequences", "output_config", "output_format")),
    fixed={"mcp_servers": ([],), "fallbacks": ([],)},
    refused={
        "container": "not supported: this server runs no code",
        "compaction": "not supported; send the summary as text",
        THREAD: "not supported; send the whole conversation",
    },
    hints=HINTS,
)
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """A body as one of the chat route, and the settings of its reply.

    Attributes:
        chat: the body of the chat route.
        keep_s: seconds for which `cache_control` asks to keep the prompt; None if it does not.
        shows_thought: whether the reply has the text of the thought, besides its signature.
        stops: the stop sequences.
        is_prefill: nothing is generated: the request computes the prompt for later ones.
        edits_context: the request has `context_management`, so the reply reports it.
        unedited: the messages of the chat route without these edits; None if they change nothing.
        num_cleared: turns of the assistant whose thoughts the edits leave out.
    """

    chat: dict[str, Any]
    keep_s: float | None = None
    shows_thought: bool = True
    stops: tuple[str, ...] = ()
    is_prefill: bool = False
    edits_context: bool = False
    unedited: list[Message] | None = None
    num_cleared: int = 0


def read_messages_request(body: Mapping[str, Any], *, counts: bool = False, key: str | None = None) -> MessagesRequest:
    """Read a body.

    Args:
        counts: it asks for the number of tokens of its prompt only: `max_tokens` may be missing, and nothing binds the output.
        key: the client's name for the conversation.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given, hints = FIELDS.given(body), CacheHints()
    hints.read(given, "")
    chat: dict[str, Any] = {name: given[name] for name in SAME_NAME if name in given}
    chat["messages"] = messages = chat_messages(given, hints)
    if messages[-1]["role"] == "assistant":
        if "tool_calls" in messages[-1]:
            last = len(given["messages"]) - 1
            raise ParameterError(
                f"messages[{last}]", "tool_use", "expected a user message with the results of its calls"
            )
        chat["continue_final_message"] = True
    if "tools" in given:
        chat["tools"] = chat_tools(given["tools"], hints)
    if "tool_choice" in given:
        chat |= chat_choice(given["tool_choice"])
    stops = _stops(given)
    if stops:
        chat["stop"] = list(stops)
    effort, schema = _output(given)
    if schema is not None:
        chat["response_format"] = {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}
    thinking, shows_thought = _thinking(given)
    if thinking is not None:
        chat["thinking"] = thinking
    if effort is not None and (thinking or {}).get("type") != "disabled":
        chat["reasoning_effort"] = effort
    if key is not None:
        chat["prompt_cache_key"] = key
    max_tokens = read_int(given, "max_tokens", 0, MAX_MAX_TOKENS)
    if max_tokens is None and not counts:
        raise ParameterError("max_tokens", None, f"expected an integer from 0 to {MAX_MAX_TOKENS}")
    chat["max_completion_tokens"] = max_tokens or 1
    is_prefill = max_tokens == 0
    if is_prefill or counts:
        chat.pop("response_format", None)
        if "tools" in chat:
            chat["tool_choice"] = "none"  # they stand in the prompt, and nothing has to be called
    keep = _read_edits(given["context_management"]) if "context_management" in given else None
    chat["messages"], num_cleared = (messages, 0) if keep is None else _without_thoughts(messages, keep)
    return MessagesRequest(
        chat,
        hints.keep_s,
        shows_thought,
        stops,
        is_prefill,
        "context_management" in given,
        messages if num_cleared else None,
        num_cleared,
    )


def _stops(given: Mapping[str, Any]) -> tuple[str, ...]:
    stops = read_list(given, "stop_sequences") if "stop_sequences" in given else []
    for i, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise ParameterError(f"stop_sequences[{i}]", stop, "expected a string")
    return tuple(stops)


def _output(given: Mapping[str, Any]) -> tuple[str | None, Any]:
    """The effort and the schema of the output; None for each that is not given."""
    config = given.get("output_config", {})
    inner = check_inner("output_config", config, ("effort", "format"), ("task_budget",))
    effort = inner.get("effort")
    if effort is not None and effort not in _EFFORTS:
        raise ParameterError("output_config.effort", effort, f"expected one of {', '.join(_EFFORTS)}")
    if "format" in inner and "output_format" in given:
        raise ParameterError("output_format", given["output_format"], "not together with output_config.format")
    where = "output_config.format" if "format" in inner else "output_format"
    form = inner.get("format", given.get("output_format"))
    if form is None:
        return effort, None
    fields = check_inner(where, form, ("type", "schema"), ("name",))
    if fields.get("type") != "json_schema":
        raise ParameterError(f"{where}.type", fields.get("type"), "expected json_schema")
    if not isinstance(fields.get("schema"), Mapping):
        raise ParameterError(f"{where}.schema", fields.get("schema"), "expected a JSON schema (an object)")
    return effort, fields["schema"]


def _thinking(given: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """The thought as the chat route asks for it, and whether its text is shown. Without the field, the model's own default holds."""
    if "thinking" not in given:
        return None, True
    inner = check_inner("thinking", given["thinking"], ("type", "budget_tokens", "display"))
    kind, display = inner.get("type"), inner.pop("display", "summarized")
    if display not in ("summarized", "omitted"):
        raise ParameterError("thinking.display", display, "expected summarized or omitted")
    if kind not in ("enabled", "adaptive", "disabled", "between_tools"):
        raise ParameterError("thinking.type", kind, "expected enabled, adaptive, disabled or between_tools")
    if kind == "between_tools":  # progress reports of the makers' own models; the thought itself is off
        inner["type"] = "disabled"
    if kind != "enabled" and "budget_tokens" in inner:
        raise ParameterError("thinking.budget_tokens", inner["budget_tokens"], "allowed only with type = enabled")
    return inner, display == "summarized"


def _read_edits(value: Any) -> int | None:
    """The number of the newest turns that keep their thoughts; None for all."""
    inner = check_inner("context_management", value, ("edits",))
    found: int | None = None
    for i, edit in enumerate(read_list(inner, "edits", "context_management.") if "edits" in inner else ()):
        where = f"context_management.edits[{i}]"
        given = check_inner(where, edit, ("type", "keep"))
        if given.get("type") != "clear_thinking_20251015":
            raise ParameterError(
                f"{where}.type", given.get("type"), "not supported: send the history that is to be read"
            )
        keep = given.get("keep", {"type": "thinking_turns", "value": 1})
        if keep in ("all", {"type": "all"}):
            continue
        turns = keep.get("value") if isinstance(keep, Mapping) and keep.get("type") == "thinking_turns" else None
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
            allowed = 'expected "all", or {"type": "thinking_turns", "value": 1 or more}'
            raise ParameterError(f"{where}.keep", keep, allowed)
        found = turns if found is None else min(found, turns)
    return found


def _without_thoughts(messages: list[Message], keep: int) -> tuple[list[Message], int]:
    """The messages without the thoughts before the newest `keep` turns that have one, and the number of turns that lose theirs.

    A turn of the assistant lasts until the user's next text, over all calls and results in between.
    """
    found: list[Message] = []
    num_turns, is_counted = 0, False
    for message in reversed(messages):
        if message["role"] == "user":
            is_counted = False
        elif "reasoning_content" in message:
            num_turns += not is_counted
            is_counted = True
            if num_turns > keep:
                message = {name: value for name, value in message.items() if name != "reasoning_content"}
        found.append(message)
    return found[::-1], max(0, num_turns - keep)


_NAMES = (
    ("max_completion_tokens", "max_tokens"),
    ("reasoning_effort", "output_config.effort"),
    ("response_format.json_schema.schema", "output_config.format.schema"),
    ("response_format", "output_config.format"),
    ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
    ("continue_final_message", "messages"),
    ("stop", "stop_sequences"),
)


def renamed_error(error: ParameterError) -> ParameterError:
    """An error of the chat request with the name that its field has in this route."""
    names = list(_NAMES)
    tool, _, rest = error.field.partition(".function")
    if rest and (tool == "tool_choice" or tool.startswith("tools[")):
        here = rest.replace(".parameters", ".input_schema", 1)
        names.insert(0, (f"{tool}.function{rest}", f"{tool}{here}"))
    return rename_field(error, names)
