"""Tools of a request: the constraint on the reply, and the reading of the reply as content, reasoning and calls.

Calls are written in the format of the model's chat template and held to the schemas of the tools, whatever `strict` says. With a response
schema, the reply is either calls or content of that schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.tool_list import tools_to_text
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.serve.openai.fields import check_inner, read_bool, read_list, read_text
from rtlang.serve.openai.reasoning import ReasoningRequest, ThoughtPlace
from rtlang.serve.openai.sections import Sections
from rtlang.serve.openai.structured import STYLE, Structured, read_style, strict_schema
from rtlang_grammars import GrammarError, JsonStyle
from rtlang_grammars.formats.catalogue import FORMATS, format_named
from rtlang_grammars.formats.description import Json, Slot, ToolFormat
from rtlang_grammars.formats.parsing import ToolParseError, ToolStream
from rtlang_grammars.formats.reasoning import PLAIN_FORMAT, PromptEnd
from rtlang_grammars.formats.tool_grammar import Reasoning, reasoning_part, tool_grammar
from rtlang_grammars.formats.tools import Tool, read_tools
from rtlang_grammars.spec.structures import any_of, sequence

FIELDS = frozenset(("tools", "tool_choice", "parallel_tool_calls"))
"""The fields that `read_tool_request` reads."""
MAX_TOOLS = 128
NO_REASONING = ReasoningRequest()
"""The request of a body without fields of reasoning."""
_LINES = Constraint(ConstraintKind.REGEX, "\n{0,4}")
_BLANKS = Constraint(ConstraintKind.REGEX, "[ \n]{0,2}")


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
    """How calls are written."""
    has_whitespace: bool = False
    """Whether the request says which blanks they have; else the format does."""

    def style_of(self, found: ToolFormat) -> JsonStyle:
        """How calls of a format are written."""
        return self.style if self.has_whitespace else replace(self.style, whitespace=found.whitespace)


@dataclass(frozen=True, slots=True)
class Thought:
    """The thought of a reply.

    Attributes:
        kind: whether the constraint of the reply has a thought.
        marks: what begins and ends it; the first is empty if the prompt has begun it. Empty if nothing limits it.
        request: the fields of the request about it.
    """

    kind: Reasoning = Reasoning.FORBIDDEN
    marks: tuple[str, ...] = ()
    request: ReasoningRequest = NO_REASONING


@dataclass(frozen=True, slots=True)
class ReplyPlan:
    """The constraint of a reply and the way to read it.

    Attributes:
        field: the field that an error of the constraint is about.
        tool_format: the format of reasoning and calls; None if the text is content as it is.
        is_either: calls follow no content: content has a form of its own, in which texts that look like calls are content.
        start: the state of the thought at the end of the prompt.
        is_exact: the constraint of the request binds the content, so it is passed on as it is.
        thought: the thought before content and calls.
        place: where the thought stands in the response.
        shows_special: the text needs the names of special tokens although no constraint asks for them.
    """

    constraint: Constraint | None
    field: str | None = None
    tool_format: ToolFormat | None = None
    tools: tuple[Tool, ...] = ()
    reads_calls: bool = False
    is_either: bool = False
    start: PromptEnd = PromptEnd.UNDECIDED
    is_exact: bool = False
    thought: Thought = Thought()
    place: ThoughtPlace = ThoughtPlace.APART
    shows_special: bool = False

    def sampling(self, max_tokens: int) -> dict[str, Any]:
        """The parameters of `SamplingParams` that the thought of a reply of at most `max_tokens` tokens needs."""
        found: dict[str, Any] = {"shows_special": True} if self.shows_special else {}
        limit = self.thought.request.max_tokens(max_tokens)
        if self.thought.marks and (self.constraint is not None or limit is not None):
            found |= {"thought_marks": self.thought.marks, "max_thought_tokens": limit}
        return found


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
    style = read_style(given)
    has_whitespace = "whitespace" in given.get(STYLE, {})
    return ToolRequest(listed, mode, allowed, is_named or not parallel, text, style, has_whitespace)


def _check_tool(tool: Any, where: str) -> None:
    given = check_inner(where, tool, ("type", "function"))
    if given.get("type", "function") != "function":
        raise ParameterError(f"{where}.type", given["type"], "only 'function' is supported")
    function = check_inner(f"{where}.function", given.get("function"), ("name", "description", "parameters", "strict"))
    read_text(function, "name", f"{where}.function.")
    if "description" in function:
        read_text(function, "description", f"{where}.function.")
    if read_bool(function, "strict", where=f"{where}.function.") and isinstance(function.get("parameters"), Mapping):
        strict_schema({"type": "object", **function["parameters"]}, f"{where}.function.parameters")


def _read_choice(choice: Any, names: list[str], where: str = "tool_choice") -> tuple[str, list[str]]:
    """The mode, and the names of the tools that may be called."""
    if choice in ("auto", "none", "required"):
        return choice, names
    kind = choice.get("type", "function") if isinstance(choice, Mapping) else None
    if kind == "function":
        at, function = _within(where, choice, "function", ("name",))
        if function.get("name") in names:
            return "required", [function["name"]]
        raise ParameterError(f"{at}.name", function.get("name"), f"expected one of {', '.join(names)}")
    if kind == "allowed_tools" and where == "tool_choice":
        at, inner = _within(where, choice, "allowed_tools", ("mode", "tools"))
        mode, tools = inner.get("mode", "auto"), inner.get("tools")
        if mode in ("auto", "required") and isinstance(tools, list) and tools:
            return mode, [
                name for i, tool in enumerate(tools) for name in _read_choice(tool, names, f"{at}.tools[{i}]")[1]
            ]
        raise ParameterError(at, inner, "expected a mode, auto or required, and a list of tools")
    raise ParameterError(where, choice, f"expected auto, none, required, or a function named one of {', '.join(names)}")


def _within(where: str, choice: Any, name: str, accepted: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """The path and the fields of a choice, in the form of the chat route, in a map of their own, or in that of the responses."""
    if choice.get(name) is None:
        return where, check_inner(where, choice, ("type", *accepted))
    return f"{where}.{name}", check_inner(f"{where}.{name}", check_inner(where, choice, ("type", name))[name], accepted)


def plan_reply(
    asked: ToolRequest,
    structured: Structured | None,
    model_format: str | None,
    *,
    start: PromptEnd = PromptEnd.UNDECIDED,
    thinks: bool = True,
    hides_marks: bool = True,
    reasoning: ReasoningRequest = NO_REASONING,
) -> ReplyPlan:
    """The constraint of a reply, and the format in which it is read.

    Args:
        model_format: the name of the format of the model; None if its chat template shows none.
        start: the state of the thought at the end of the prompt.
        thinks: whether the model knows the marks of a thought; if not, a reply without tools has none, unless the prompt has begun it.
        hides_marks: marks of the format are special tokens, which free text does not show by itself.
        reasoning: the fields of the request about the thought.
    Raises:
        ParameterError: the tools do not fit the format.
    """
    found = None if model_format is None else format_named(model_format)
    has_tools = bool(asked.listed) and asked.choice != "none"
    if has_tools and found is None:
        found = FORMATS[PLAIN_FORMAT]
    if found is None:
        return ReplyPlan(None) if structured is None else ReplyPlan(structured.constraint, structured.field)
    thought = _thought(found, start, reasoning, may_begin=thinks or has_tools)
    plan = ReplyPlan(None, tool_format=found, start=start, thought=thought, place=reasoning.place)
    if has_tools:
        return _plan_tools(plan, found, asked, structured)
    if structured is None:
        if found.reasoning is None and found.content is None:
            return ReplyPlan(None)
        # Without a constraint the model may think although it shall not; such a thought is ended at once.
        limited = replace(thought, marks=_marks(found, start) if thinks or start is PromptEnd.OPEN else ())
        return replace(plan, thought=limited, shows_special=hides_marks and bool(thinks or found.content))
    body = _as_content(found, structured, start)
    if thought.kind is Reasoning.FORBIDDEN:
        if found.content is None:
            return ReplyPlan(structured.constraint, structured.field)
        plan = replace(plan, start=start if start is PromptEnd.CONTENT else PromptEnd.CLOSED)
    constraint = _behind_thought(found, thought.kind, body)
    return replace(plan, constraint=constraint, field=structured.field, is_exact=True)


def _thought(found: ToolFormat, start: PromptEnd, reasoning: ReasoningRequest, *, may_begin: bool) -> Thought:
    """The thought of a reply under a constraint."""
    if found.reasoning is not None and start is PromptEnd.OPEN:
        return Thought(Reasoning.OPENED, _marks(found, start), reasoning)
    if found.reasoning is not None and start is PromptEnd.UNDECIDED and may_begin and not reasoning.is_off:
        return Thought(Reasoning.OPTIONAL, _marks(found, start), reasoning)
    return Thought(Reasoning.FORBIDDEN, (), reasoning)


def _marks(found: ToolFormat, start: PromptEnd) -> tuple[str, ...]:
    if found.reasoning is None or start not in (PromptEnd.OPEN, PromptEnd.UNDECIDED):
        return ()
    return ("" if start is PromptEnd.OPEN else found.reasoning.begin, found.reasoning.end)


def _plan_tools(plan: ReplyPlan, found: ToolFormat, asked: ToolRequest, structured: Structured | None) -> ReplyPlan:
    if plan.start is PromptEnd.CONTENT and found.content is not None and asked.choice == "auto":
        # The reply goes on inside the content, after which this format has no calls.
        body = None if structured is None else sequence(structured.constraint, found.content.end)
        field = None if structured is None else structured.field
        return replace(plan, constraint=body, field=field, is_exact=structured is not None)
    try:
        constraint = _with_calls(found, asked, structured, plan.thought.kind)
    except GrammarError as error:
        names = [tool.name for tool in asked.allowed]
        raise ParameterError(error.location or "tools", names, error.reason) from None
    is_content = plan.start is PromptEnd.CONTENT and found.content is not None
    return replace(
        plan,
        start=PromptEnd.CLOSED if is_content else plan.start,
        constraint=constraint,
        field="tools" if structured is None else structured.field,
        tools=asked.listed,
        reads_calls=True,
        is_either=structured is not None,
        is_exact=structured is not None,
    )


def _as_content(found: ToolFormat, structured: Structured, start: PromptEnd) -> Constraint:
    """The constraint on content, between the marks of content if the format has any."""
    if found.content is None:
        return structured.constraint
    if start is PromptEnd.CONTENT:
        return sequence(structured.constraint, found.content.end)
    begins = (found.content.begin, *(found.content_begins if structured.is_json else ()))
    return sequence(any_of(*begins), structured.constraint, found.content.end)


def _behind_thought(found: ToolFormat, kind: Reasoning, body: Constraint) -> Constraint:
    """A text that may or must begin with a thought, and goes on with `body`."""
    if kind is Reasoning.FORBIDDEN:
        return body
    lines = _LINES if found.content is None else ""
    before = sequence(reasoning_part(found, Reasoning.REQUIRED if kind is Reasoning.OPTIONAL else kind, None), lines)
    if found.answer is not None:  # its marks stand only after a thought
        answer = sequence(_BLANKS, found.answer.begin, _LINES, body, _LINES, found.answer.end)
        whole = sequence(before, any_of(body, answer))
        return whole if kind is Reasoning.OPENED else any_of(body, whole)
    return sequence(before if kind is Reasoning.OPENED else any_of("", before), body)


def _with_calls(
    found: ToolFormat, asked: ToolRequest, structured: Structured | None, reasoning: Reasoning
) -> Constraint:
    # One constraint has one style: beside an answer in JSON, calls are written like the answer.
    is_json = structured is not None and structured.is_json and asked.choice != "required"
    style = asked.style if is_json else asked.style_of(found)
    options: dict[str, Any] = {"parallel": not asked.max_is_one, "style": style}
    if structured is None or asked.choice == "required":
        return tool_grammar(found, asked.allowed, tool_choice=asked.choice, reasoning=reasoning, **options)
    calls = tool_grammar(found, asked.allowed, tool_choice="required", reasoning=Reasoning.FORBIDDEN, **options)
    content = replace(structured, constraint=_unlike_calls(found, structured)) if structured.is_json else structured
    return _behind_thought(found, reasoning, any_of(_as_content(found, content, PromptEnd.CLOSED), calls))


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


_REASONING_NAMES = ("reasoning_content", "reasoning")
"""The names of the thought in messages: clients read one or the other."""


class ReplyReader:
    """Reads one reply as it arrives; each piece gives deltas of the message.

    Args:
        new_id: makes the id of a call.
    """

    def __init__(self, plan: ReplyPlan, new_id: Callable[[], str]) -> None:
        self._place = plan.place
        self._stream: ToolStream | None = None
        if plan.tool_format is not None:
            self._stream = ToolStream(
                plan.tool_format,
                plan.tools,
                reads_calls=plan.reads_calls,
                reads_calls_in_content=not plan.is_either,
                # Free text may have a thought although the prompt has closed one.
                start=PromptEnd.UNDECIDED if plan.start is PromptEnd.CLOSED and not plan.is_exact else plan.start,
                is_exact=plan.is_exact,
            )
        self._new_id = new_id
        self.sections = Sections(start=None if plan.tool_format is not None else 0)
        self.content = self.reasoning = ""
        self.calls: list[dict[str, Any]] = []
        """The calls so far, as in a message."""
        self._num_done = 0
        self._num_shown = 0  # of the characters before the content, where they stand in it

    def push(self, text: str) -> list[dict[str, Any]]:
        """Add text; returns deltas of the message."""
        self.sections.text += text
        if self._stream is None:
            return self._add_content(text)
        try:
            delta = self._stream.push(text)
        except ToolParseError:
            return self._give_up()
        return self._shown(self._read(delta.reasoning, delta.content, delta.calls))

    def finish(self) -> list[dict[str, Any]]:
        """End the text; returns the last deltas."""
        if self._stream is None:
            return []
        try:
            delta = self._stream.finish()
        except ToolParseError:  # the text was cut, or is not held to the format
            return self._give_up()
        return self._shown(self._read(delta.reasoning, delta.content, delta.calls))

    def message(self) -> dict[str, Any]:
        """The whole message."""
        content = self.content
        if self._place is ThoughtPlace.IN_CONTENT and self.sections.thought is not None:
            content = self.sections.text[: self.sections.start] + self.content
        found: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if self.reasoning and self._place is ThoughtPlace.APART:
            found |= dict.fromkeys(_REASONING_NAMES, self.reasoning)
        if self.calls:
            found["content"] = content or None
            found["tool_calls"] = self.calls
        return found

    def _shown(self, deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The deltas of the message, with the thought in its place; to be called after each piece."""
        stream, sections = self._stream, self.sections
        if stream is not None:
            sections.start, sections.num_read = stream.content_start, stream.num_read
            sections.thought = stream.reasoning_range
        if self._place is ThoughtPlace.APART:
            return deltas
        rest = [delta for delta in deltas if "reasoning_content" not in delta]
        if self._place is ThoughtPlace.IN_CONTENT and sections.thought is not None:
            end = len(sections.text) if sections.num_read is None else sections.num_read
            end = end if sections.start is None else sections.start
            before, self._num_shown = sections.text[self._num_shown : end], max(end, self._num_shown)
            return [{"content": before}, *rest] if before else rest
        return rest

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
        deltas = self._shown(deltas)
        self._stream, self.sections.num_read = None, None
        if self.sections.start is None and rest:
            self.sections.start = len(self.sections.text) - len(rest)
        return deltas + self._add_content(rest)

    def _add_content(self, text: str) -> list[dict[str, Any]]:
        self.content += text
        return [{"content": text}] if text else []

    def _read(self, reasoning: str, content: str, calls: Any) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        if reasoning:
            self.reasoning += reasoning
            deltas.append(dict.fromkeys(_REASONING_NAMES, reasoning))
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
