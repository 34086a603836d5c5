"""Bodies of `/v1/responses` as bodies of `/v1/chat/completions`.

Input items become messages, tools and formats get the shape of the chat route, whose translation then does the rest. Fields without a
counterpart there are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai import reasoning
from rtlang.serve.openai.fields import SALTS, FieldTable, check_inner, read_bool, read_list, read_text
from rtlang.serve.openai.messages import content_text
from rtlang.serve.openai.sampling import FILTER_FIELDS

Message = dict[str, Any]
INCLUDED = ("message.output_text.logprobs", "reasoning.encrypted_content")
"""Allowed entries of `include`. Encrypted reasoning is accepted and never sent: reasoning is text."""
SAME_NAME = (
    "model",
    "temperature",
    "top_p",
    "stream",
    "seed",
    "stop",
    "parallel_tool_calls",
    "tool_choice",
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
_FIELDS = FieldTable(
    accepted=frozenset(
        (
            *SAME_NAME,
            "input",
            "instructions",
            "tools",
            "text",
            "include",
            "max_output_tokens",
            "previous_response_id",
            "stream_options",
            *reasoning.FIELDS,
        )
    ),
    fixed={
        "background": (False,),
        "truncation": ("disabled",),
    },
    refused={
        "conversation": "not supported; use previous_response_id",
        "prompt": "not supported; send the input",
        "max_tool_calls": "not supported: there are no built-in tools",
    },
)


def chat_body(body: Mapping[str, Any], earlier: Sequence[Message]) -> tuple[dict[str, Any], list[Message]]:
    """The body of the chat request, and the messages of the input without the instructions.

    Args:
        earlier: the messages of the response that this one continues, and its output.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = _FIELDS.given(body)
    chat: dict[str, Any] = {name: given[name] for name in (*SAME_NAME, *sorted(reasoning.FIELDS)) if name in given}
    new = input_messages(given.get("input", []))
    before: list[Message] = []
    if "instructions" in given:
        before = [{"role": "system", "content": read_text(given, "instructions")}]
    chat["messages"] = [*before, *earlier, *new]
    if not chat["messages"]:
        raise ParameterError("input", given.get("input"), "expected text, or a list of items that is not empty")
    if "tools" in given:
        chat["tools"] = [_tool(tool, f"tools[{i}]") for i, tool in enumerate(read_list(given, "tools"))]
    if "max_output_tokens" in given:
        chat["max_completion_tokens"] = given["max_output_tokens"]
    if "text" in given:
        chat |= _format(given["text"])
    included = read_list(given, "include") if "include" in given else []
    for name in included:
        if name not in INCLUDED:
            raise ParameterError("include", name, f"expected {' or '.join(INCLUDED)}")
    if INCLUDED[0] in included or given.get("top_logprobs"):
        chat["logprobs"] = True
    if "stream_options" in given:
        check_inner("stream_options", given["stream_options"], (), ignored=("include_obfuscation",))
    read_bool(given, "stream")
    return chat, [*earlier, *new]


def input_messages(value: Any) -> list[Message]:
    """Input items as chat messages. Calls of functions join the assistant's message before them.

    Raises:
        ParameterError: an item is malformed or of a kind that is not supported; names it.
    """
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise ParameterError("input", value, "expected text or a list of items")
    messages: list[Message] = []
    thought = ""  # of the assistant's message that follows
    for i, item in enumerate(value):
        where = f"input[{i}]"
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        match kind:
            case "message":
                given = check_inner(where, item, ("type", "role", "content"), ("id", "status", "phase"))
                content = _content(given.get("content", ""), f"{where}.content")
                messages.append({"role": given.get("role"), "content": content})
                if thought and given.get("role") == "assistant":
                    messages[-1]["reasoning_content"] = thought
                thought = ""
            case "function_call":
                given = check_inner(where, item, ("type", "call_id", "name", "arguments"), ("id", "status"))
                function = {
                    "name": read_text(given, "name", f"{where}."),
                    "arguments": read_text(given, "arguments", f"{where}."),
                }
                call = {"id": read_text(given, "call_id", f"{where}."), "type": "function", "function": function}
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None})
                    if thought:
                        messages[-1]["reasoning_content"] = thought
                thought = ""
                messages[-1].setdefault("tool_calls", []).append(call)
            case "function_call_output":
                given = check_inner(where, item, ("type", "call_id", "output"), ("id", "status"))
                output = _content(given.get("output", ""), f"{where}.output")
                messages.append(
                    {"role": "tool", "tool_call_id": read_text(given, "call_id", f"{where}."), "content": output}
                )
            case "reasoning":
                names = ("type", "summary", "content", "encrypted_content")
                given = check_inner(where, item, names, ("id", "status"))
                parts = given.get("content") or given.get("summary") or []
                thought = _thought_text(parts, f"{where}.content")
            case _:
                raise ParameterError(
                    f"{where}.type", kind, "expected message, function_call, function_call_output or reasoning"
                )
    return messages


def _thought_text(parts: Any, where: str) -> str:
    if not isinstance(parts, list):
        raise ParameterError(where, parts, "expected a list")
    return "\n".join(
        read_text(check_inner(f"{where}[{i}]", part, ("type", "text")), "text", f"{where}[{i}].")
        for i, part in enumerate(parts)
    )


def _content(content: Any, where: str) -> str:
    if isinstance(content, list):  # a refusal is the assistant's own text
        content = [
            {"type": "output_text", "text": check_inner(f"{where}[{i}]", part, ("type", "refusal")).get("refusal", "")}
            if isinstance(part, Mapping) and part.get("type") == "refusal"
            else part
            for i, part in enumerate(content)
        ]
    return content_text(content, where)


def _tool(tool: Any, where: str) -> dict[str, Any]:
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if kind != "function":
        raise ParameterError(f"{where}.type", kind, "only 'function' is supported")
    if "function" in tool:  # the shape of the chat route
        return dict(tool)
    given = check_inner(where, tool, ("type", "name", "description", "parameters", "strict"))
    del given["type"]
    return {"type": "function", "function": given}


def _format(text: Any) -> dict[str, Any]:
    given = check_inner("text", text, ("format", "verbosity"))
    chat: dict[str, Any] = {}
    if "verbosity" in given:
        chat["verbosity"] = given["verbosity"]
    if "format" in given:
        plain = given["format"]
        if isinstance(plain, Mapping) and plain.get("type") == "json_schema":
            names = ("type", "name", "schema", "strict", "description")
            inner = check_inner("text.format", plain, names)
            inner.pop("type")
            if "schema" not in inner:
                raise ParameterError("text.format.schema", None, "expected a JSON schema")
            plain = {"type": "json_schema", "json_schema": inner}
        chat["response_format"] = plain
    return chat
