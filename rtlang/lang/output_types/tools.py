"""Output types for tool calls and reasoning, in the format of the model.

The format is that of the runtime's model, unless one is named. So a type is complete only when it is recorded for a runtime.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rtlang.contract.errors import ParameterError
from rtlang.lang.output_types.types import OutputType, output_type
from rtlang_grammars import GrammarError
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import Span, ToolFormat
from rtlang_grammars.formats.parsing import ToolOutput, parse_output
from rtlang_grammars.formats.tool_grammar import Reasoning, reasoning_part, tool_grammar
from rtlang_grammars.formats.tools import Tool, ToolChoice, read_tools

_T = TypeVar("_T")
_PLAIN = "json"
"""The format of models whose template shows none."""
_THINK = Span("<think>", "</think>")
"""The reasoning of models whose format has none."""


def tools(
    given: Iterable[Any],
    *,
    choice: ToolChoice = "auto",
    parallel: bool = True,
    reasoning: str = Reasoning.OPTIONAL,
    format: str | None = None,
) -> OutputType:
    """Text with calls of tools. The value has `content`, `reasoning` and `calls`, each with `name`, `arguments` and `id`.

    Args:
        given: functions with annotated parameters, maps in the form of the OpenAI API, or `Tool` objects.
        choice: "auto" (content, or calls with content before them), "none", "required", or {"name": ...} for one call of that tool.
        parallel: False: at most one call.
        reasoning: "optional", "required" or "forbidden" reasoning before everything else; "opened": the prompt has begun it. Ignored by
            formats without reasoning, unless it is required.
        format: name of the format; default: that of the model's chat template, else "json", one object with name and arguments a line.
    Raises:
        ParameterError: an argument is invalid; names it.
    """
    listed = _tools(given)

    def resolve(tool_format: str | None) -> OutputType:
        name = format or tool_format or _PLAIN
        constraint = _checked(
            lambda: tool_grammar(name, listed, tool_choice=choice, parallel=parallel, reasoning=reasoning)
        )

        def parse(text: str) -> ToolOutput:
            return parse_output(name, text, listed, is_reasoning=reasoning == Reasoning.OPENED)

        return OutputType(constraint, parse)

    return _resolved_or_later(resolve, format)


def thoughts(*, format: str | None = None, opened: bool = False) -> OutputType:
    """The reasoning of a model, between the marks of its format; the value is the text between them.

    Its token budget is `max_tokens` of the generation: the closing mark follows in time.

    Args:
        format: as for `tools`. Formats without reasoning use `<think>` and `</think>`.
        opened: the prompt ends with the opening mark.
    """

    def resolve(tool_format: str | None) -> OutputType:
        found = _with_reasoning(_checked(lambda: format_named(format or tool_format or _PLAIN)))
        constraint = _checked(lambda: reasoning_part(found, Reasoning.OPENED if opened else Reasoning.REQUIRED, None))
        return OutputType(constraint, lambda text: parse_output(found, text, is_reasoning=opened).reasoning)

    return _resolved_or_later(resolve, format)


def _with_reasoning(found: ToolFormat) -> ToolFormat:
    return found if found.reasoning is not None else replace(found, reasoning=_THINK)


def _resolved_or_later(resolve: Callable[[str | None], OutputType], name: str | None) -> OutputType:
    """The type, if its format is named; else one that is resolved with the format of the model. Errors are raised at once."""
    now = resolve(name)
    return now if name is not None else OutputType(now.constraint, now.parse, for_format=resolve)


def _tools(given: Iterable[Any]) -> tuple[Tool, ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ParameterError("tools", given, "expected a list of functions, maps or Tool objects")
    listed = [_of_function(each) if inspect.isroutine(each) else each for each in given]
    return _checked(lambda: read_tools(listed))


def _of_function(function: Any) -> Tool:
    """A function as a tool: its name, its docstring, and the schema of its parameters."""
    constraint = output_type(type=function).constraint
    assert constraint is not None
    return _checked(lambda: Tool(function.__name__, json.loads(constraint.source), inspect.getdoc(function) or ""))


def _checked(make: Callable[[], _T]) -> _T:
    try:
        return make()
    except GrammarError as error:
        raise ParameterError(error.location or "tools", None, error.reason) from error
