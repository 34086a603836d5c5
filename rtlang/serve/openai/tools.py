"""Tools of a request: the constraint on the reply, and the reading of the reply as content, reasoning and calls.

Calls are written in the format of the model's chat template and held to the schemas of the tools. With a response schema, the reply is
either calls or content of that schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.tool_list import tools_to_text
from rtlang.serve.openai.fields import check_inner, read_bool, read_list, read_text
from rtlang.serve.openai.messages import PLAIN_FORMAT
from rtlang.serve.openai.structured import Structured, read_style
from rtlang_grammars import GrammarError, JsonStyle
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.description import Json, Slot, ToolFormat
from rtlang_grammars.formats.parsing import ToolParseError, ToolStream
from rtlang_grammars.formats.tool_grammar import Reasoning, reasoning_part, tool_grammar
from rtlang_grammars.formats.tools import Tool, read_tools
from rtlang_grammars.spec.structures import any_of, sequence

FIELDS = frozenset(("tools", "tool_choice", "parallel_tool_calls"))
"""The fields that `read_tool_request` reads."""
MAX_TOOLS = 128
_LINES = Constraint(ConstraintKind.REGEX, "\n{0,4}")


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The tools of a request.

    Attributes:
        listed: the tools in the prompt.
        choice: auto, none or required; for `required`, `allowed` may be one tool.
        allowed: the tools that may be called.
        max_is_one: at most one call.
    """

    listed: tuple[Tool, ...] = ()
    choice: str = "none"
    allowed: tuple[Tool, ...] = ()
    max_is_one: bool = False
    text: str | None = None
    """The tools as JSON text for the chat template."""
    style: JsonStyle = field(default_factory=JsonStyle)
    """How arguments are written."""


@dataclass(frozen=True, slots=True)
class ReplyPlan:
    """The constraint of a reply and the way to read it.

    Attributes:
        field: the field that an error of the constraint is about.
        tool_format: the format of reasoning and calls; None if the text is content as it is.
        is_either: calls follow no content: content has a form of its own, in which texts that look like calls are content.
        is_reasoning: the prompt has begun the reasoning.
    """

    constraint: Constraint | None
    field: str | None = None
    tool_format: ToolFormat | None = None
    tools: tuple[Tool, ...] = ()
    reads_calls: bool = False
    is_either: bool = False
    is_reasoning: bool = False


def read_tool_request(given: Mapping[str, Any]) -> ToolRequest:
    """Read tools, tool_choice and parallel_tool_calls.

    Raises:
        ParameterError: a tool or the choice is malformed or not supported; names it.
    """
    parallel = read_bool(given, "parallel_tool_calls", True)
    plain = read_list(given, "tools") if "tools" in given else []
    choice = given.get("tool_choice", "auto" if plain else "none")
    if not plain:
        if choice not in ("auto", "none"):
            raise ParameterError("tool_choice", choice, "allowed only with tools")
        return ToolRequest()
    if len(plain) > MAX_TOOLS:
        raise ParameterError("tools", plain, f"expected at most {MAX_TOOLS} tools")
    for i, tool in enumerate(plain):
        _check_tool(tool, f"tools[{i}]")
    try:
        listed = read_tools(plain)
        text = tools_to_text(plain)
    except GrammarError as error:
        raise ParameterError("tools", plain, error.reason) from None
    except ValueError as error:
        raise ParameterError("tools", plain, str(error)) from None
    mode, names = _read_choice(choice, [tool.name for tool in listed])
    allowed = tuple(tool for tool in listed if tool.name in names)
    is_named = isinstance(choice, Mapping) and choice.get("type") != "allowed_tools"
    return ToolRequest(listed, mode, allowed, is_named or not parallel, text, read_style(given))


def _check_tool(tool: Any, where: str) -> None:
    given = check_inner(where, tool, ("type", "function"))
    if given.get("type", "function") != "function":
        raise ParameterError(f"{where}.type", given["type"], "only 'function' is supported")
    function = check_inner(f"{where}.function", given.get("function"), ("name", "description", "parameters", "strict"))
    read_text(function, "name", f"{where}.function.")
    read_bool(function, "strict", where=f"{where}.function.")


def _read_choice(choice: Any, names: list[str]) -> tuple[str, list[str]]:
    """The mode, and the names of the tools that may be called."""
    if choice in ("auto", "none", "required"):
        return choice, names
    if isinstance(choice, Mapping) and choice.get("type", "function") == "function":
        function = choice.get("function", choice)
        name = function.get("name") if isinstance(function, Mapping) else None
        if name in names:
            return "required", [name]
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        inner = choice.get("allowed_tools", choice)
        mode = inner.get("mode", "auto") if isinstance(inner, Mapping) else None
        tools = inner.get("tools") if isinstance(inner, Mapping) else None
        if mode in ("auto", "required") and isinstance(tools, list) and tools:
            return mode, [name for tool in tools for name in _read_choice(tool, names)[1]]
    raise ParameterError(
        "tool_choice", choice, f"expected auto, none, required, or a function named one of {', '.join(names)}"
    )


def plan_reply(
    asked: ToolRequest, structured: Structured | None, model_format: str | None, *, is_reasoning: bool = False
) -> ReplyPlan:
    """The constraint of a reply, and the format in which it is read.

    Args:
        model_format: the name of the format of the model; None if its chat template shows none.
        is_reasoning: the prompt ends with the mark that begins the reasoning.
    Raises:
        ParameterError: the tools do not fit the format.
    """
    if not asked.listed or asked.choice == "none":
        model = FORMATS.get(model_format or "")
        if structured is not None and (model is None or not is_reasoning):
            return ReplyPlan(structured.constraint, structured.field)
        if structured is not None and model is not None:
            content = _as_content(model, structured.constraint)
            constraint = _behind_reasoning(model, Reasoning.OPENED, content)
            return ReplyPlan(constraint, structured.field, model, is_reasoning=True)
        has_sections = model is not None and (model.reasoning is not None or model.content is not None)
        return ReplyPlan(None, tool_format=model if has_sections else None, is_reasoning=is_reasoning)
    found = FORMATS[model_format or PLAIN_FORMAT]
    try:
        reasoning = Reasoning.OPENED if is_reasoning else Reasoning.OPTIONAL
        constraint = _constraint(found, asked, structured, reasoning)
    except GrammarError as error:
        names = [tool.name for tool in asked.allowed]
        raise ParameterError(error.location or "tools", names, error.reason) from None
    field = "tools" if structured is None else structured.field
    return ReplyPlan(constraint, field, found, asked.listed, True, structured is not None, is_reasoning)


def _as_content(found: ToolFormat, constraint: Constraint) -> Constraint:
    return constraint if found.content is None else sequence(found.content.begin, constraint, found.content.end)


def _behind_reasoning(found: ToolFormat, reasoning: Reasoning, body: Constraint) -> Constraint:
    lines = _LINES if found.content is None else ""
    return sequence(reasoning_part(found, reasoning, None), lines, body)


def _constraint(
    found: ToolFormat, asked: ToolRequest, structured: Structured | None, reasoning: Reasoning
) -> Constraint:
    options: dict[str, Any] = {"parallel": not asked.max_is_one, "style": asked.style}
    if structured is None or asked.choice == "required":
        return tool_grammar(found, asked.allowed, tool_choice=asked.choice, reasoning=reasoning, **options)
    calls = tool_grammar(found, asked.allowed, tool_choice="required", reasoning=Reasoning.FORBIDDEN, **options)
    content = _unlike_calls(found, structured) if structured.is_json else structured.constraint
    body = any_of(_as_content(found, content), calls)
    return body if found.reasoning is None else _behind_reasoning(found, reasoning, body)


def _unlike_calls(found: ToolFormat, structured: Structured) -> Constraint:
    """The constraint on content that is JSON. Where calls are bare JSON objects, content lacks the member that holds their arguments."""
    spelling = found.call[0]
    before = spelling[spelling.index(Slot.ARGUMENTS) - 1]
    member = re.search(r'"(\w+)": $', before) if isinstance(before, Json) else None
    is_bare = any(not around.opening for around in found.around) and str(spelling[0]).startswith("{")
    schema = json.loads(structured.constraint.source)
    if not is_bare or member is None or schema is False:
        return structured.constraint
    schema = {} if schema is True else schema
    required, parts = schema.get("required", []), schema.get("allOf", [])
    if not isinstance(required, list) or member[1] in required or not isinstance(parts, list):
        return structured.constraint  # such content cannot be, or the schema is malformed, which its compilation tells
    schema["allOf"] = [*parts, {"properties": {member[1]: False}}]
    return replace(structured.constraint, source=json.dumps(schema, ensure_ascii=False))


class ReplyReader:
    """Reads one reply as it arrives; each piece gives deltas of the message.

    Args:
        new_id: makes the id of a call.
    """

    def __init__(self, plan: ReplyPlan, new_id: Callable[[], str]) -> None:
        self._stream: ToolStream | None = None
        if plan.tool_format is not None:
            self._stream = ToolStream(
                plan.tool_format,
                plan.tools,
                is_reasoning=plan.is_reasoning,
                reads_calls=plan.reads_calls,
                reads_calls_in_content=not plan.is_either,
            )
        self._new_id = new_id
        self.content = self.reasoning = ""
        self.calls: list[dict[str, Any]] = []
        """The calls so far, as in a message."""
        self._num_done = 0

    def push(self, text: str) -> list[dict[str, Any]]:
        """Add text; returns deltas of the message."""
        if self._stream is None:
            return self._add_content(text)
        try:
            delta = self._stream.push(text)
        except ToolParseError:
            return self._give_up()
        return self._read(delta.reasoning, delta.content, delta.calls)

    def finish(self) -> list[dict[str, Any]]:
        """End the text; returns the last deltas."""
        if self._stream is None:
            return []
        try:
            delta = self._stream.finish()
        except ToolParseError:  # the text was cut, or is not held to the format
            return self._give_up()
        return self._read(delta.reasoning, delta.content, delta.calls)

    def message(self) -> dict[str, Any]:
        """The whole message."""
        found: dict[str, Any] = {"role": "assistant", "content": self.content, "refusal": None}
        if self.reasoning:
            found["reasoning_content"] = self.reasoning
        if self.calls:
            found["content"] = self.content or None
            found["tool_calls"] = self.calls
        return found

    def _give_up(self) -> list[dict[str, Any]]:
        """Read the rest as content, unless it is within a call."""
        assert self._stream is not None
        output = self._stream.output  # with what the last text added before the error
        deltas = self._read(
            output.reasoning[len(self.reasoning) :],
            output.content[len(self.content) :],
            output.calls[self._num_done :],
        )
        rest = "" if len(self.calls) > self._num_done else self._stream.rest
        self._stream = None
        return deltas + self._add_content(rest)

    def _add_content(self, text: str) -> list[dict[str, Any]]:
        self.content += text
        return [{"content": text}] if text else []

    def _read(self, reasoning: str, content: str, calls: Any) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        if reasoning:
            self.reasoning += reasoning
            deltas.append({"reasoning_content": reasoning})
        deltas += self._add_content(content)
        for call in calls:
            text = call.text or json.dumps(call.arguments, ensure_ascii=False)
            deltas += self._add_call(call.name, call.id, text)
            self._num_done += 1
        assert self._stream is not None
        begun = self._stream.open_call()
        if begun is not None:
            deltas += self._add_call(begun.name, begun.id, begun.arguments)
        return deltas

    def _add_call(self, name: str, call_id: str | None, arguments: str) -> list[dict[str, Any]]:
        """The call behind those that are done, with its arguments so far."""
        index, deltas = self._num_done, []
        if index == len(self.calls):
            call = {"id": call_id or self._new_id(), "type": "function", "function": {"name": name, "arguments": ""}}
            self.calls.append(call)
            deltas.append({"tool_calls": [{"index": index, **call, "function": {"name": name, "arguments": ""}}]})
        function = self.calls[index]["function"]
        piece = arguments[len(function["arguments"]) :]
        if piece:
            function["arguments"] = arguments
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        return deltas
