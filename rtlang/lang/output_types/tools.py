"""Output types for tool calls and reasoning, in the format of the model.

The default format is the format of the runtime's model, so a type is complete only when it is recorded for a runtime.
"""

from __future__ import annotations

import ast
import datetime
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.graph.tool_list import tools_to_text
from rtlang.contract.request_graph import RoleStart
from rtlang.lang.output_types.forms import json_style
from rtlang.lang.output_types.kinds import STR, Kind, Listed, Member, NullableKind, Reading, Record, reading_of_json
from rtlang.lang.output_types.signatures import Signature, signature_of
from rtlang.lang.output_types.tool_calls import BoundTool, Function, ToolCall, ToolReply, typed_reply
from rtlang.lang.output_types.types import OutputType, ToolUse
from rtlang_grammars import Constraint, GrammarError, JsonStyle
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import Span, ToolFormat
from rtlang_grammars.formats.parsing import parse_output
from rtlang_grammars.formats.reasoning import PLAIN_FORMAT
from rtlang_grammars.formats.tool_grammar import Reasoning, reasoning_part, tool_grammar
from rtlang_grammars.formats.tools import Tool, read_tools
from rtlang_grammars.formats.tools import ToolChoice as ToolChoice

_T = TypeVar("_T")
_THINK = Span("<think>", "</think>")
"""The reasoning of models whose format has none."""


def tools(
    given: Iterable[Any],
    *,
    choice: ToolChoice | Callable[..., Any] = "auto",
    parallel: bool = True,
    reasoning: str = Reasoning.OPTIONAL,
    format: str | None = None,
    order: Literal["any", "declared", "declared_then_others", "required_first"] = "declared_then_others",
    numbers: Literal["plain", "any"] = "plain",
) -> OutputType:
    """Text with calls of tools. The value is a `ToolReply` with `content`, `reasoning` and `calls`.

    Args:
        given: functions with annotated parameters, maps in the form of the OpenAI API, `Tool` objects, or the tools of `rt.mcp(...)`.
        choice: "auto" (content, or calls with content before them), "none", "required", or a function, the name of a tool or
            {"name": ...} for one call of that tool.
        parallel: False: at most one call.
        reasoning: "optional", "required" or "forbidden" reasoning before everything else; "opened": the prompt has begun it. Ignored by
            formats without reasoning, unless it is required.
        format: its name; default: the format of the model's chat template, else "json", one object with name and arguments a line.
        order, numbers: how arguments are written; as for `json_text`.
    Raises:
        ParameterError: an argument is invalid; names it.
    """
    return _tool_type(given, choice, parallel, reasoning, format, json_style(order, numbers), _whole)


def tool_calls(
    given: Iterable[Any],
    choice: ToolChoice | Callable[..., Any] | None,
    parallel: bool | None,
    *,
    has_reasoned: bool = False,
) -> OutputType:
    """The type of `gen(tools=..., tool_choice=..., parallel=...)`. Errors and arguments as for `tools`.

    With `has_reasoned`, a generation before it is the reasoning, and this one has none.

    The value is a `ToolCall`, with parallel=True a list of them, and with a choice that allows content ("auto", "none") a `ToolReply`.
    """
    choice = "required" if choice is None else choice
    if parallel is not None and not isinstance(parallel, bool):
        raise ParameterError("parallel", parallel, "expected True or False")
    allows_content = isinstance(choice, str) and choice in ("auto", "none")
    value = _whole if allows_content else _all_calls if parallel else _one_call
    reasoning = Reasoning.FORBIDDEN if has_reasoned else Reasoning.OPTIONAL
    return _tool_type(given, choice, bool(parallel), reasoning, None, JsonStyle(), value)


def _whole(reply: ToolReply) -> ToolReply:
    return reply


def _all_calls(reply: ToolReply) -> list[ToolCall]:
    return list(reply.calls)


def _one_call(reply: ToolReply) -> ToolCall:
    return reply.calls[0]


def _kind_and_path(
    value: Callable[[ToolReply], Any], listed: tuple[Tool, ...], functions: Mapping[str, Function]
) -> tuple[Kind, tuple[str | int, ...]]:
    """The kind of what `value` makes of a reply, and where it is in the reply."""
    call = _record(
        {
            "name": Member("name", STR),
            "id": Member("id", NullableKind(STR), is_certain=False),
            "arguments": Member("arguments", Record(lambda name: _argument(name, listed), by_key=True)),
            "args": Member("arguments", Record(lambda name: _typed_argument(name, listed, functions), by_key=True)),
        }
    )
    if value is _one_call:
        return call, ("calls", 0)
    if value is _all_calls:
        return Listed(call), ("calls",)
    content, reasoning = Member("content", STR), Member("reasoning", STR)
    return _record({"content": content, "reasoning": reasoning, "calls": Member("calls", Listed(call))}), ()


def _record(members: Mapping[str, Member]) -> Record:
    return Record(members.get, by_key=False)


def _argument(name: str, listed: tuple[Tool, ...]) -> Member | None:
    """An argument as it is written, if it has one kind in all tools that have it."""
    found: list[Member | None] = []
    for tool in listed:
        reading = reading_of_json(tool.parameters)
        member = reading.kind.field(name) if reading is not None and isinstance(reading.kind, Record) else None
        found += [member] if member is not None else [None] if name in tool.properties else []
    return _common(found, len(listed))


def _typed_argument(name: str, listed: tuple[Tool, ...], functions: Mapping[str, Function]) -> Member | None:
    """An argument of the type of the functions, if that has one kind in all tools that have it."""
    found = [
        functions[tool.name].signature.kind_of(name) if tool.name in functions else _argument(name, (tool,))
        for tool in listed
        if name in tool.properties
    ]
    return _common(found, len(listed))


def _common(found: list[Member | None], count: int) -> Member | None:
    first = found[0] if found else None
    if first is None or any(each is None or each[:3] != first[:3] for each in found):
        return None
    return first if len(found) == count else first._replace(is_certain=False)


def _tool_type(given: Any, *options: Any) -> OutputType:
    """The type of tools. It is made once for the same functions and options, since that takes a millisecond."""
    given = _as_tuple(given)
    try:
        return _cached_tool_type(datetime.date.today(), given, *options)
    except TypeError:  # a map is not hashable, so not cached
        return _made_tool_type(given, *options)


def _as_tuple(given: Any) -> Any:
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else given


def _made_tool_type(
    given: Any,
    choice: ToolChoice | Callable[..., Any],
    parallel: bool,
    reasoning: str,
    format: str | None,
    style: JsonStyle,
    value: Callable[[ToolReply], Any],
) -> OutputType:
    listed, functions = _tools(given)
    chosen = _choice(choice, listed)
    options = {"tools": list(given), "tool_choice": choice, "reasoning": reasoning, "format": format}

    @functools.cache
    def resolve(tool_format: str | None) -> OutputType:
        name = format or tool_format or PLAIN_FORMAT
        how: Any = {"tool_choice": chosen, "parallel": parallel, "reasoning": reasoning}

        def written() -> Constraint:
            found = format_named(name)
            own = replace(style, whitespace=found.whitespace)
            return tool_grammar(found, listed, style=own, **how)

        constraint = _checked(options, written)

        def parse(text: str) -> Any:
            output = parse_output(name, text, listed, is_reasoning=reasoning == Reasoning.OPENED)
            return value(typed_reply(output, functions))

        def reading() -> Reading:
            args = (name, tools_to_text(listed), reasoning == Reasoning.OPENED)
            kind, path = _kind_and_path(value, listed, functions)
            return Reading("parse_tools", kind, args, path)

        names, own = tuple(tool.name for tool in listed), tuple(each.call for each in functions.values())
        calls = ToolUse(names, are_many=value is not _one_call, functions=own)
        return OutputType(constraint, parse, reading=functools.cache(reading), calls=calls)

    return _resolved_or_later(resolve, format)


@functools.lru_cache(maxsize=256)
def _cached_tool_type(today: datetime.date, given: Any, *options: Any) -> OutputType:
    """The type of tools; by day, because dates of the past or future are compared with today."""
    return _made_tool_type(given, *options)


def thoughts(*, format: str | None = None, opened: bool = False) -> OutputType:
    """The reasoning of a model, between the marks of its format; the value is the text between them.

    Its token budget is `max_tokens` of the generation: the closing mark follows in time.

    Args:
        format: as for `tools`. Formats without reasoning use `<think>` and `</think>`.
        opened: the prompt ends with the opening mark.
    """

    def resolve(tool_format: str | None) -> OutputType:
        options = {"format": format}
        found = _with_reasoning(_checked(options, lambda: format_named(format or tool_format or PLAIN_FORMAT)))
        kind = Reasoning.OPENED if opened else Reasoning.REQUIRED
        constraint = _checked(options, lambda: reasoning_part(found, kind, None))
        return OutputType(constraint, lambda text: parse_output(found, text, is_reasoning=opened).reasoning)

    return _resolved_or_later(resolve, format)


def _with_reasoning(found: ToolFormat) -> ToolFormat:
    return found if found.reasoning is not None else replace(found, reasoning=_THINK)


def _resolved_or_later(resolve: Callable[[str | None], OutputType], name: str | None) -> OutputType:
    """The type, if its format is named; else one that is resolved with the format of the model. Errors are raised at once."""
    now = resolve(name)
    return now if name is not None else replace(now, for_format=resolve)


def tool_list(given: Iterable[Any] | None) -> str | None:
    """Tools as `tools` takes them, as JSON text for the chat template; maps are taken as they are.

    Raises:
        ParameterError: `given` is no list of tools, or a tool is invalid.
    """
    if given is None:
        return None
    listed = _as_tuple(given)
    try:
        return _cached_tool_list(listed)
    except TypeError:  # a map is not hashable, so not cached
        return _made_tool_list(listed)


def message_start(role: str, tools: Iterable[Any] | None = None, template: TemplateOptions | None = None) -> RoleStart:
    """The start of a message, with the tools and template options of a conversation that begins with it.

    Raises:
        ParameterError: `tools` is no list of tools, a tool is invalid, or `template` is something else.
    """
    if template is not None and not isinstance(template, TemplateOptions):
        raise ParameterError("template", template, "expected rt.TemplateOptions(...)")
    return RoleStart(role, tool_list(tools), None if template is None else template.text)


def _made_tool_list(listed: Any) -> str:
    made = _tools(listed)[0]
    try:
        return tools_to_text(
            each if isinstance(each, Mapping) else tool for each, tool in zip(listed, made, strict=True)
        )
    except ValueError as error:
        raise ParameterError("tools", list(listed), str(error)) from error


_cached_tool_list = functools.lru_cache(maxsize=256)(_made_tool_list)


def _tools(given: Iterable[Any]) -> tuple[tuple[Tool, ...], dict[str, Function]]:
    """The tools, and by name those that have a function."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ParameterError("tools", given, "expected a list of functions, maps or Tool objects")
    listed: list[Any] = []
    functions: dict[str, Function] = {}
    for each in given:
        if isinstance(each, BoundTool):
            listed.append(each.tool)
            functions[each.tool.name] = Function(each.call, _plain_signature(each.tool))
            continue
        if not inspect.isroutine(each):
            listed.append(each)
            continue
        signature = signature_of(each, "tools")
        listed.append(_checked({}, lambda: Tool(each.__name__, signature.schema, signature.description)))  # noqa: B023
        functions[each.__name__] = Function(each, signature)
    return _checked({"tools": given}, lambda: read_tools(listed)), functions


def _plain_signature(tool: Tool) -> Signature:
    """The signature of a tool whose arguments are plain JSON data."""
    return Signature(tool.schema, tool.description, json.loads, lambda name: _argument(name, (tool,)))


def _choice(choice: Any, listed: tuple[Tool, ...]) -> ToolChoice:
    """A choice as the grammar library takes it."""
    if inspect.isroutine(choice):
        return {"name": choice.__name__}
    is_name = isinstance(choice, str) and choice in {tool.name for tool in listed}
    return {"name": choice} if is_name and choice not in ("auto", "none", "required") else choice


def _checked(options: Mapping[str, Any], make: Callable[[], _T]) -> _T:
    """Call `make`. Its errors name the option and the value that was given for it."""
    try:
        return make()
    except GrammarError as error:
        name, reason = error.location or "tools", error.reason
        said = re.fullmatch(r"\w+ = (.+?): (.+)", reason, re.DOTALL)
        if name in options and said is None:
            raise ParameterError(name, options[name], reason) from error
        if said is not None:
            try:
                value = options[name] if name in options else ast.literal_eval(said[1])
            except (ValueError, SyntaxError):
                value = said[1]
            raise ParameterError(name, value, said[2]) from error
        raise ParameterError(name, list(options.get("tools", ())), reason) from error
