"""Parses a model's text into reasoning, content and tool calls, at once or as it arrives.

The parser reads the markers of a format. Sections that cannot be told yet are kept until more text arrives; text that may be the beginning
of a marker is not passed on before it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from rtlang_grammars.formats.arguments.argument_reading import read_arguments, read_name
from rtlang_grammars.formats.arguments.value_reading import Incomplete, Malformed, skip_blanks
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import (
    ArgumentStyle,
    Atoms,
    Blanks,
    Pieces,
    Slot,
    ToolFormat,
    atoms,
    triggers,
    without_last_blanks,
)
from rtlang_grammars.formats.json_scan import JsonScan
from rtlang_grammars.formats.reasoning import PromptEnd
from rtlang_grammars.formats.tools import Tool, read_tools


class ToolParseError(ValueError):
    """The text breaks the format within a tool call. `position` is the character at which the call begins."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"at character {position}: {message}")
        self.position = position


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call.

    Attributes:
        id: the id that the model wrote, if the format has ids.
        text: the arguments as they are written, if that is JSON; else empty.
    """

    name: str
    arguments: dict[str, Any]
    id: str | None = None
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is being written.

    Attributes:
        number: the number of calls before it.
        arguments: the beginning of the arguments as JSON text; empty for formats that write them in another way.
    """

    number: int
    name: str
    id: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a model's text says."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """What new text adds: a piece of reasoning, a piece of content, and complete calls."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[ToolCall, ...] = ()


def parse_output(
    tool_format: ToolFormat | str,
    text: str,
    tools: Iterable[Tool | Mapping[str, Any]] = (),
    *,
    is_reasoning: bool = False,
) -> ToolOutput:
    """Parse a whole text.

    Args:
        text: with the names of special tokens, without the end token.
        tools: give the types of values that a format writes without quotes.
        is_reasoning: the prompt has begun the reasoning.
    Raises:
        GrammarError: the format is unknown or a tool is malformed.
        ToolParseError: a call is malformed or incomplete.
    """
    stream = ToolStream(tool_format, tools, is_reasoning=is_reasoning)
    stream.push(text)
    stream.finish()
    return stream.output


class _Where(Enum):
    START = auto()
    REASONING = auto()
    PREAMBLE = auto()
    CONTENT = auto()
    PLAIN = auto()  # content without a section of its own
    FIRST_CALL = auto()
    NEXT_CALL = auto()
    END = auto()


class ToolStream:
    """Parses a text as it arrives. Used by one thread at a time."""

    def __init__(
        self,
        tool_format: ToolFormat | str,
        tools: Iterable[Tool | Mapping[str, Any]] = (),
        *,
        is_reasoning: bool = False,
        reads_calls: bool = True,
        reads_calls_in_content: bool = True,
        start: PromptEnd = PromptEnd.UNDECIDED,
        is_exact: bool = False,
    ) -> None:
        """Arguments and errors as for `parse_output`.

        Args:
            reads_calls: False: calls are content.
            reads_calls_in_content: False: what begins as content is content to its end.
            start: the state of the reasoning at the end of the prompt; `PromptEnd.OPEN` is the same as `is_reasoning`.
            is_exact: content keeps its line breaks, as a constraint on it demands, except line breaks after reasoning.
        """
        self._format = format_named(tool_format) if isinstance(tool_format, str) else tool_format
        listed = list(tools)
        self._tools = {tool.name: tool for tool in read_tools(listed)} if listed else {}
        self._may_reason, self._is_exact = start is PromptEnd.UNDECIDED, is_exact
        self._has_reasoned = is_reasoning or start is PromptEnd.OPEN
        self._where = _Where.REASONING if self._has_reasoned else _Where.START
        self._content_end = self._format.content.end if self._format.content is not None else ""
        if start is PromptEnd.CONTENT:
            self._where = _Where.PLAIN if self._format.content is None else _Where.CONTENT
        self._content_start: int | None = None
        self._reasoning_range: tuple[int, int] | None = None
        self._text, self._num_dropped = "", 0
        self._parts: dict[_Where, list[str]] = {_Where.REASONING: [], _Where.CONTENT: []}
        self._calls: list[ToolCall] = []
        self._new = ToolDelta()
        self._held = ""  # line breaks that belong to a section only if more of it follows
        self._triggers = {
            text: around
            for around in self._format.around
            if reads_calls
            for text in triggers(self._format, around, self._tools)
        }
        self._reads_calls_in_content = reads_calls_in_content
        self._around = self._format.around[0]
        self._is_partial = False  # the text may go on to be a mark
        self._open: tuple[int, str, str | None, JsonScan | None] | None = None  # number, name, id and arguments

    @property
    def output(self) -> ToolOutput:
        """Everything so far."""
        content, reasoning = ("".join(self._parts[key]) for key in (_Where.CONTENT, _Where.REASONING))
        return ToolOutput(content, reasoning, tuple(self._calls))

    @property
    def content_start(self) -> int | None:
        """Where in the text content or the first call begins, in characters; None as long as neither has begun."""
        return self._content_start

    @property
    def num_read(self) -> int:
        """Number of characters whose section is known."""
        return self._num_dropped - len(self._held)

    @property
    def reasoning_range(self) -> tuple[int, int] | None:
        """Where in the text the reasoning so far begins and ends, in characters, without its marks; None without reasoning."""
        return self._reasoning_range

    @property
    def rest(self) -> str:
        """The end of the text so far that belongs to no section yet."""
        return self._held + self._text

    def push(self, text: str) -> ToolDelta:
        """Add text; returns what it adds to the output.

        Raises:
            ToolParseError: a call is malformed.
        """
        self._text += text
        if self._where in (_Where.FIRST_CALL, _Where.NEXT_CALL) and not _CLOSERS.intersection(text):
            return ToolDelta()  # no call ends here
        return self._run(is_whole=False)

    def open_call(self) -> OpenCall | None:
        """The call that the text so far is within, once its name is complete."""
        if self._where not in (_Where.FIRST_CALL, _Where.NEXT_CALL):
            return None
        number = len(self._calls)
        if self._open is None or self._open[0] != number:
            self._open = self._begun_call(number)
            if self._open is None:
                return None
        _, name, call_id, scan = self._open
        return OpenCall(number, name, call_id, "" if scan is None else scan.value(self._text))

    def _begun_call(self, number: int) -> tuple[int, str, str | None, JsonScan | None] | None:
        """The call at the beginning of the text, if it is in one spelling up to its arguments and in no other."""
        before = self._around.opening if self._where is _Where.FIRST_CALL else self._format.between or ()
        found: tuple[int, str, str | None, JsonScan | None] | None = None
        for spelling in self._format.call:
            pieces = atoms((*before, *spelling))
            try:
                call, at = self._match(pieces[: pieces.index(Slot.ARGUMENTS)], 0)
            except Incomplete:
                return None  # it may still be this spelling
            except Malformed:
                continue
            is_json = self._format.arguments is ArgumentStyle.JSON
            if found is None:
                found = number, call.name, call.id, JsonScan(at) if is_json else None
        return found

    def finish(self) -> ToolDelta:
        """End the text; returns the text held back.

        Raises:
            ToolParseError: a call is malformed or incomplete.
        """
        return self._run(is_whole=True)

    def _run(self, *, is_whole: bool) -> ToolDelta:
        self._new = ToolDelta()
        try:
            while self._step(is_whole):
                pass
        except Incomplete:
            if is_whole:
                raise ToolParseError("the text ends within a tool call", self._num_dropped) from None
        except Malformed as error:
            raise ToolParseError(str(error), self._num_dropped) from None
        return self._new

    def _step(self, is_whole: bool) -> bool:
        """Read a section or a part of one. Returns False if nothing more can be told."""
        spans = self._format
        match self._where:
            case _Where.START:
                return self._begin(is_whole)
            case _Where.REASONING:
                assert spans.reasoning is not None
                return self._section(_Where.REASONING, spans.reasoning.end, _Where.START, is_whole)
            case _Where.PREAMBLE:
                assert spans.preamble is not None
                return self._section(_Where.CONTENT, spans.preamble.end, _Where.START, is_whole)
            case _Where.CONTENT:
                return self._section(_Where.CONTENT, self._content_end, _Where.END, is_whole)
            case _Where.PLAIN:
                return self._plain(is_whole)
            case _Where.FIRST_CALL:
                if self._content_start is None:
                    self._content_start = self._num_dropped
                self._call(self._around.opening)
                self._where = _Where.NEXT_CALL
                return True
            case _Where.NEXT_CALL:
                return self._behind_call(is_whole)
            case _Where.END:
                self._show(_Where.CONTENT, self._text if self._text.strip() else "")
                self._drop(len(self._text))
                return False

    def _begin(self, is_whole: bool) -> bool:
        """Tell which section begins here."""
        if not self._is_exact or self._has_reasoned:
            self._drop(len(self._text) - len(self._text.lstrip("\n")))
        spans = self._format
        if spans.joint and self._begins(spans.joint):
            self._drop(len(spans.joint))
            return True
        for begin, end, where, blanks in self._sections():
            num_blanks = len(self._text) - len(self._text.lstrip(blanks)) if blanks else 0
            if self._begins(begin, num_blanks):
                self._drop(num_blanks + len(begin))
                self._where = where
                self._has_reasoned = self._has_reasoned or where is _Where.REASONING
                if where is _Where.CONTENT:
                    self._content_end = end
                return True
        for trigger, around in self._triggers.items():
            if self._begins(trigger):
                self._around, self._where = around, _Where.FIRST_CALL
                return True
        if self._is_partial and not is_whole:
            self._is_partial = False
            return False
        if not self._text:
            return False
        self._where = _Where.PLAIN
        return True

    def _sections(self) -> Iterator[tuple[str, str, _Where, str]]:
        """The sections that may begin here: beginning, end, kind, and the blanks that may stand before it."""
        spans = self._format
        if spans.reasoning is not None and self._may_reason and (not self._has_reasoned or spans.joint):
            yield spans.reasoning.begin, spans.reasoning.end, _Where.REASONING, "\n"
        if spans.preamble is not None:
            yield spans.preamble.begin, spans.preamble.end, _Where.PREAMBLE, ""
        if spans.content is not None:
            for begin in (spans.content.begin, *spans.content_begins):
                yield begin, spans.content.end, _Where.CONTENT, ""
        if spans.answer is not None and self._has_reasoned:
            yield spans.answer.begin, spans.answer.end, _Where.CONTENT, " \n"

    def _begins(self, mark: str, at: int = 0) -> bool:
        if self._text.startswith(mark, at):
            self._is_partial = False
            return True
        self._is_partial = self._is_partial or mark.startswith(self._text[at:])
        return False

    def _section(self, where: _Where, end: str, following: _Where, is_whole: bool) -> bool:
        """Pass on the text of a section, up to its end."""
        at = self._text.find(end) if end else -1
        if at >= 0:
            self._show(where, self._text[:at])
            self._drop(at + len(end))
            self._held, self._where = "", following
            return True
        kept = 0 if is_whole else _overlap(self._text, (end,) if end else ())
        self._show(where, self._text[: len(self._text) - kept])
        self._drop(len(self._text) - kept)
        return False

    def _plain(self, is_whole: bool) -> bool:
        """Pass on content up to the first call."""
        sought = self._triggers if self._reads_calls_in_content else {}
        found = [(at, text) for text in sought if (at := self._text.find(text)) >= 0]
        if found:
            at, text = min(found)
            self._show(_Where.CONTENT, self._text[:at])
            self._drop(at)
            self._held, self._around, self._where = "", self._triggers[text], _Where.FIRST_CALL
            return True
        kept = 0 if is_whole else _overlap(self._text, sought)
        self._show(_Where.CONTENT, self._text[: len(self._text) - kept])
        self._drop(len(self._text) - kept)
        return False

    def _show(self, where: _Where, text: str) -> None:
        """Add text to the output, except for line breaks at the beginning and at the end of a section."""
        text, end = self._held + text, self._num_dropped + len(text)
        is_content, keeps = where is _Where.CONTENT, self._is_exact and where is _Where.CONTENT
        if not self._parts[where] and not keeps:
            text = text.lstrip("\n")
        shown = text if keeps else text.rstrip("\n")
        self._held = text[len(shown) :]
        if shown:
            begin, end = end - len(text), end - len(self._held)
            if is_content:
                self._content_start = begin if self._content_start is None else self._content_start
            else:
                self._reasoning_range = (begin if self._reasoning_range is None else self._reasoning_range[0], end)
            self._parts[where].append(shown)
            self._new = ToolDelta(
                self._new.reasoning + ("" if is_content else shown),
                self._new.content + (shown if is_content else ""),
                self._new.calls,
            )

    def _drop(self, num_chars: int) -> None:
        self._text, self._num_dropped = self._text[num_chars:], self._num_dropped + num_chars

    def _behind_call(self, is_whole: bool) -> bool:
        """Read another call, or what closes the calls."""
        if not self._text.strip():
            if is_whole and self._around.closing and not self._format.closing_is_optional:
                raise Incomplete
            return False
        try:
            end = self._match(atoms(self._around.closing), 0)[1]
            is_closed = bool(self._around.closing)
        except Malformed:
            is_closed = False
        if is_closed:
            self._drop(end)
            self._where = _Where.END
            return True
        try:
            if self._format.between is None:
                raise Malformed("this format allows one call only")
            self._call((Slot.BLANKS, *self._format.between))
        except (Malformed, Incomplete) as error:
            if self._around.closing or (isinstance(error, Incomplete) and not is_whole):
                raise
            self._where = _Where.END  # text after the calls
        return True

    def _call(self, before: Pieces) -> None:
        """Read one call, in whichever spelling."""
        waits: Incomplete | None = None
        error = Malformed("expected a tool call")
        for spelling in self._format.call:
            try:
                call, end = self._match(atoms((*before, *spelling)), 0)
            except Incomplete as wait:
                waits = wait
            except Malformed as wrong:
                error = wrong
            else:
                self._drop(end)
                self._calls.append(call)
                self._new = ToolDelta(self._new.reasoning, self._new.content, (*self._new.calls, call))
                return
        raise waits or error

    def _match(self, found: Atoms, at: int) -> tuple[ToolCall, int]:
        """Match atoms; returns the call that they contain, and the position after them."""
        name, call_id, arguments, text, written = "", None, dict[str, Any](), self._text, ""
        for atom in without_last_blanks(found):
            match atom:
                case Blanks():
                    at = skip_blanks(text, at)
                case Slot.NAME:
                    name, at = read_name(text, at)
                case Slot.ID:
                    call_id, at = read_name(text, at)
                case Slot.ARGUMENTS:
                    begin = at
                    arguments, at = read_arguments(self._format, self._tools.get(name), text, at)
                    if self._format.arguments is ArgumentStyle.JSON:
                        written = text[begin:at].strip()
                case str():
                    at = _read_fixed(text, at, atom)
        return ToolCall(name, arguments, call_id, written), at


_CLOSERS = frozenset('}])>"')
"""Characters, one of which ends a call or what follows it."""


def _read_fixed(text: str, at: int, fixed: str) -> int:
    """The position after a fixed text, whose line breaks may be other blanks or missing."""
    inner = fixed.strip("\n")
    if fixed.startswith("\n"):
        at = skip_blanks(text, at)
    if not text.startswith(inner, at):
        if inner.startswith(text[at:]):
            raise Incomplete
        raise Malformed(f"expected {inner!r}, not {text[at : at + 20]!r}")
    at += len(inner)
    return skip_blanks(text, at) if fixed.endswith("\n") else at


def _overlap(text: str, marks: Iterable[str]) -> int:
    """Length of the longest end of the text that begins a mark."""
    longest = 0
    for mark in marks:
        for size in range(min(len(mark) - 1, len(text)), longest, -1):
            if text.endswith(mark[:size]):
                longest = size
                break
    return longest
