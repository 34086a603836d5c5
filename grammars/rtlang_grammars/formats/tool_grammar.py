"""Constraints for texts with tool calls: optional reasoning, content, and calls as a format writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rtlang_grammars.formats.arguments.argument_grammar import call_arguments
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import (
    ArgumentStyle,
    Atoms,
    Blanks,
    Calls,
    Json,
    Slot,
    Span,
    ToolFormat,
    atoms,
    behind_text,
    first_text,
    triggers,
    without_last_blanks,
)
from rtlang_grammars.formats.tools import Tool, ToolChoice, chosen_tools, read_tools
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import any_of, define, defined, raw_text, repeat, sequence, tagged

_REST = "after the first call"
"""The name of a shared part; no name of a tool has blanks."""
_LINES = Constraint(ConstraintKind.REGEX, "\n{0,4}")


class Reasoning(StrEnum):
    """Whether a text has a section of reasoning."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"
    OPENED = "opened"  # the prompt has begun it; the text goes on inside


def tool_grammar(
    tool_format: ToolFormat | str,
    tools: Iterable[Tool | Mapping[str, Any]],
    *,
    tool_choice: ToolChoice = "auto",
    parallel: bool = True,
    reasoning: Reasoning | str = Reasoning.OPTIONAL,
    max_reasoning_chars: int | None = None,
    style: JsonStyle | None = None,
) -> Constraint:
    """The constraint on a model's text: reasoning, then content and calls as `tool_choice` says.

    Args:
        tool_format: a format of the catalogue, or its name.
        tools: tools, or maps in the form of the OpenAI API. Parameters that a schema does not declare are not allowed unless it says so.
        tool_choice: "auto": content, calls, or content and then calls. "none": content. "required": one call or more.
            A map with a name: one call of this tool.
        parallel: False: at most one call.
        reasoning: whether the text has a section of reasoning; ignored by formats without one.
        max_reasoning_chars: maximum length of the reasoning in characters. Masks within a counted section are slower where the length is
            new (about 20 ms with 150,000 tokens).
        style: how JSON is written; by default on one line, see `Whitespace.LINE`, unless the models of the format use several.
    Raises:
        GrammarError: an argument is not allowed, or a tool does not fit the format; names it.
    """
    found = format_named(tool_format) if isinstance(tool_format, str) else tool_format
    try:
        reasoning = Reasoning(reasoning)
    except ValueError:
        raise GrammarError(f"reasoning = {reasoning!r}: expected one of {', '.join(Reasoning)}", "reasoning") from None
    if found.reasoning is None:
        if reasoning in (Reasoning.REQUIRED, Reasoning.OPENED):
            raise GrammarError(f"reasoning = {reasoning}: the format {found.name} has no reasoning", "reasoning")
        reasoning = Reasoning.FORBIDDEN
    chosen, low, high = chosen_tools(read_tools(tools), tool_choice)
    if high is None and (not parallel or found.between is None):
        high = 1
    body = _Text(found, chosen, style or JsonStyle(found.whitespace), is_forced=low > 0 and len(chosen) == 1).body(
        low, high
    )
    if reasoning is Reasoning.FORBIDDEN or found.reasoning is None:
        return body
    return sequence(reasoning_part(found, reasoning, max_reasoning_chars), body)


def reasoning_part(tool_format: ToolFormat, reasoning: Reasoning, max_chars: int | None) -> Constraint:
    """The section of reasoning, up to the place where content or calls begin.

    Raises:
        GrammarError: `max_chars` is negative.
    """
    span = tool_format.reasoning
    assert span is not None
    if max_chars is not None and (not isinstance(max_chars, int) or max_chars < 0):
        raise GrammarError(f"max_reasoning_chars = {max_chars!r}: expected an integer from 0", "max_reasoning_chars")
    schema = True if max_chars is None else {"type": "string", "maxLength": max_chars}
    begin = "" if reasoning is Reasoning.OPENED else span.begin
    inside = raw_text(schema, excludes=[span.begin, span.end])
    section = sequence(_LINES if begin else "", begin, inside, span.end, tool_format.joint)
    return any_of("", section) if reasoning is Reasoning.OPTIONAL else section


class _Text:
    """Builds the constraint after the reasoning."""

    def __init__(
        self, tool_format: ToolFormat, tools: Sequence[Tool], style: JsonStyle, *, is_forced: bool = False
    ) -> None:
        """`is_forced`: there is one tool, and the text must call it."""
        self._format, self._tools, self._style = tool_format, tools, style
        self._is_forced = is_forced
        self._arguments: dict[str, Constraint] = {}
        self._shared: dict[str, Constraint] = {}

    def body(self, low: int, high: int | None) -> Constraint:
        """Content and `low` to `high` calls."""
        body = self._body(low, high)
        return define(self._shared, body) if self._shared else body

    def _body(self, low: int, high: int | None) -> Constraint:
        around = self._format.around
        if self._format.content is not None:
            return self._sections(self._format.content, low, high)
        if low:
            lines = _LINES if self._format.reasoning or self._format.has_line_before_calls else ""
            return sequence(lines, any_of(*(self._all_calls(each, high) for each in around)))
        tags = [(trigger, part, "") for each in around for trigger, part in self._tags(each, high)]
        reasoning = self._format.reasoning
        excludes = [reasoning.begin, reasoning.end] if reasoning else []
        return tagged(tags, excludes=excludes, high=1 if high is None else high, text_behind=False)

    def _sections(self, span: Span, low: int, high: int | None) -> Constraint:
        marks = _marks(self._format)
        content = sequence(span.begin, raw_text(excludes=marks), span.end)
        if high == 0:
            return content
        calls = any_of(*(self._all_calls(each, high) for each in self._format.around))
        before = self._format.preamble
        if before is not None:
            preamble = sequence(before.begin, raw_text(excludes=marks), before.end, self._format.joint)
            calls = sequence(any_of("", preamble), calls)
        return calls if low else any_of(content, calls)

    def _all_calls(self, around: Calls, high: int | None) -> Constraint:
        """All calls and the texts around them."""
        return any_of(*(sequence(trigger, part) for trigger, part in self._tags(around, high)))

    def _rest(self, around: Calls, high: int | None) -> Constraint:
        """What follows the first call."""
        closing = self._part(atoms(around.closing))
        if self._format.closing_is_optional:
            closing = any_of("", closing)
        if high == 1 or self._format.between is None:
            return closing
        following = any_of(*(self._part(atoms((*self._format.between, *call))) for call in self._format.call))
        return sequence(repeat(following), closing)

    def _tags(self, around: Calls, high: int | None) -> Iterator[tuple[str, Constraint]]:
        """Triggers, and what follows each."""
        rest, names = self._rest(around, high), [tool.name for tool in self._tools]
        if self._format.has_name_in_trigger and around == self._format.around[0]:
            self._shared[_REST], rest = rest, defined(_REST)
        for i, trigger in enumerate(triggers(self._format, around, names)):
            if self._format.has_name_in_trigger and around == self._format.around[0]:
                found = atoms((*around.opening, *self._format.call[0]))
                part = self._part(found[found.index(Slot.NAME) + 2 :], self._tools[i])
            else:
                calls = [call for call in self._format.call if around.opening or first_text(call) == trigger]
                behind = [behind_text(atoms((*around.opening, *call)), trigger) for call in calls]
                part = any_of(*map(self._part, behind))
            yield trigger, sequence(part, rest)

    def _part(self, found: Atoms, tool: Tool | None = None) -> Constraint:
        """Atoms of a call. From the name on there is an alternative for each tool."""
        parts: list[str | Constraint] = []
        found = without_last_blanks(found)
        for i, atom in enumerate(found):
            match atom:
                case Slot.NAME:
                    named = [sequence(each.name, self._part(found[i + 1 :], each)) for each in self._tools]
                    return sequence(*parts, any_of(*named))
                case Slot.ARGUMENTS:
                    assert tool is not None
                    parts.append(self._arguments_of(tool))
                case Slot.ID:
                    parts.append(Constraint(ConstraintKind.REGEX, self._format.id_pattern))
                case Blanks():
                    brings_own = self._style.free_blanks and found[i + 1 : i + 2] == (Slot.ARGUMENTS,)
                    pattern = "" if brings_own else atom.pattern(self._style.blanks)
                    parts.append(Constraint(ConstraintKind.REGEX, pattern) if pattern else "")
                case str():
                    parts.append(atom)
        return sequence(*parts)

    def _arguments_of(self, tool: Tool) -> Constraint:
        found = self._arguments.get(tool.name)
        if found is None:
            found = call_arguments(self._format, tool, self._style, is_forced=self._is_forced)
            if (
                self._format.arguments is not ArgumentStyle.JSON
            ):  # large, and written for the first call and for later ones
                self._shared[tool.name], found = found, defined(tool.name)
            self._arguments[tool.name] = found
        return found


def _marks(tool_format: ToolFormat) -> list[str]:
    """The texts that tell sections apart."""
    spans = [each for each in (tool_format.reasoning, tool_format.content, tool_format.preamble) if each]
    texts = [text for span in spans for text in (span.begin, span.end) if text]
    texts += tool_format.content_begins
    pieces = [each for around in tool_format.around for each in (*around.opening, *around.closing)]
    texts += [each for each in pieces if isinstance(each, str) and not isinstance(each, Json)]
    return list(dict.fromkeys(text for text in (*texts, tool_format.joint) if text.strip()))
