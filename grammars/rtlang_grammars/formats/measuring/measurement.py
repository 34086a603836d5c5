"""Measures the format of tool calls that a chat template writes: a call, two calls, a call after content, a thought.

The template renders messages with chosen names and values, which are found again in its text; the texts around them are the marks of a
format. The format must read the calls back, also with quotes, line breaks and other scripts in their values, and write them as the
template does, up to blanks. Otherwise the template is ambiguous, and the error quotes the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from rtlang_grammars.formats.catalogue import FORMATS, MARKS
from rtlang_grammars.formats.description import CDATA, ArgumentStyle, Calls, Json, Pieces, Slot, Span, ToolFormat
from rtlang_grammars.formats.measuring.argument_measure import (
    ARGUMENTS,
    MeasuredArguments,
    common_end,
    common_start,
    measured_arguments,
)
from rtlang_grammars.formats.parsing import ToolCall, ToolParseError, parse_output
from rtlang_grammars.formats.rendering import rendered_calls
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.formats.written_format import written_name
from rtlang_grammars.spec.constraint import Whitespace

Render: TypeAlias = Callable[[Sequence[Mapping[str, Any]], bool], str]
"""Writes a conversation with a template; the second argument asks for the beginning of an answer. Raises ValueError where it refuses."""

FIRST, SECOND, CONTENT, THOUGHT = "zqalpha", "zqbeta", "zqcontent", "zqthought"
IDS = ("zqid00001", "zqid00002")
_USER = {"role": "user", "content": "zquser"}
_PROPERTIES = {
    "zqfirst": {"type": "string"},
    "zqsecond": {"type": "string"},
    "zqnumber": {"type": "integer"},
    "zqtruth": {"type": "boolean"},
    "zqobject": {"type": "object", "properties": {"zqinner": {"type": "string"}}},
    "zqlist": {"type": "array", "items": {"type": "string"}},
    "zqend": {"type": "string"},
}
TOOLS = (
    Tool(FIRST, {"type": "object", "properties": _PROPERTIES, "required": ["zqfirst"]}, "a tool"),
    Tool(SECOND, {"type": "object", "properties": {}}, "a tool"),
)
"""The tools of the conversation, which the template must know."""
_HARD: tuple[dict[str, Any], ...] = (
    {"zqfirst": 'it\'s "quoted" \\ and\ttabbed\nin two lines', "zqnumber": -5},
    {"zqfirst": "日本語 😀 é", "zqlist": ["a, b", "(c)"], "zqtruth": False},
    {"zqfirst": "", "zqobject": {"zqinner": "{}[]: ,"}},
)
_OF_XML = "<&>\n"
"""Characters that templates of tags may not write as they are."""
_MARK = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Za-z_]{2,40}\]|◁[^▷]{1,30}▷")


_TURN_END = re.compile(r"eos|eot|eom|im_end|end_of|end▁of", re.IGNORECASE)


class UnclearFormatError(ValueError):
    """The format of a template cannot be measured; quotes the text that the template wrote."""


def measure_format(render: Render) -> ToolFormat:
    """The format of the calls that a template writes: one of the catalogue if it writes the same, else one of its own.

    Raises:
        UnclearFormatError: the template writes no calls, or they are ambiguous.
    """
    measured = _Measurement(render).format()
    for known in FORMATS.values():
        if known.reasoning == measured.reasoning and are_alike(known, measured, is_exact=True):
            return known
    for marks, span in MARKS.items():
        for known in FORMATS.values():
            if span == measured.reasoning and known.content is None and are_alike(known, measured, is_exact=True):
                return replace(known, name=f"{known.name}+{marks}", reasoning=span)
    return replace(measured, name=written_name(measured))


def are_alike(known: ToolFormat, other: ToolFormat, *, is_exact: bool = False) -> bool:
    """Whether two formats read the calls that the other one writes, and write the same; unless `is_exact`, but for blanks.

    A format of the catalogue with several spellings of a call may write any of them.
    """
    return any(_are_alike(replace(known, call=(call,)), known, other, is_exact) for call in known.call)


def reads(known: ToolFormat, other: ToolFormat) -> bool:
    """Whether a format reads the calls that another one writes."""
    calls = [ToolCall(FIRST, ARGUMENTS, IDS[0]), ToolCall(SECOND, {}, IDS[1])]
    calls = calls if known.between is not None and other.between is not None else calls[:1]
    return _read(known, _text(other, calls)) == [ToolCall(call.name, call.arguments) for call in calls]


def _are_alike(written: ToolFormat, known: ToolFormat, other: ToolFormat, is_exact: bool) -> bool:
    calls = [ToolCall(FIRST, ARGUMENTS, IDS[0]), ToolCall(SECOND, {}, IDS[1])]
    calls = calls if known.between is not None and other.between is not None else calls[:1]
    if known.between == (Slot.BLANKS,) and other.between in ((), ("\n",)):  # any blanks are allowed there
        written = replace(written, between=other.between)
    texts = [_text(replace(each, closing_is_optional=False), calls) for each in (written, other)]
    sections = [None if each.content is None else each.content.begin for each in (known, other)]
    if is_exact and texts[0] != texts[1]:
        return False
    if "".join(texts[0].split()) != "".join(texts[1].split()) or sections[0] != sections[1]:
        return False
    read = [_read(each, text) for each, text in zip((other, known), texts, strict=True)]
    return read[0] == read[1] == [ToolCall(call.name, call.arguments) for call in calls]


def _text(tool_format: ToolFormat, calls: Sequence[ToolCall]) -> str:
    return "".join(piece for piece, _ in rendered_calls(tool_format, calls))


def _read(tool_format: ToolFormat, text: str) -> list[ToolCall] | str:
    """The calls of a text, without their ids; or why they cannot be read."""
    try:
        found = parse_output(tool_format, text, TOOLS)
    except ToolParseError as error:
        return str(error)
    return [ToolCall(call.name, call.arguments) for call in found.calls]


class _Measurement:
    def __init__(self, render: Render) -> None:
        self._render = render
        self._shown = ""  # an answer without calls, and the message before it
        self._content: Span | None = None
        self._no_content: str | None = ""

    def format(self) -> ToolFormat:
        answer = self._written({"content": CONTENT})
        one = self._written({"content": "", "tool_calls": _calls(1)})
        if FIRST not in one.rpartition("zquser")[2]:  # some templates write calls only beside a content of none
            self._no_content = None
            one = self._written({"content": None, "tool_calls": _calls(1)})
        if FIRST not in one.rpartition("zquser")[2]:
            raise UnclearFormatError("the template writes no calls of tools")
        header = self._header_end(answer, one)
        ending = self._ending(answer, one)
        self._content = self._content_section(answer, header, ending)
        body = self._stripped(one[header : len(one) - len(ending)])
        self._shown = answer[answer.rfind(_USER["content"]) :]
        name_at = body.find(FIRST)
        if name_at < 0:
            raise UnclearFormatError(f"the name of the call is not in {body[:200]!r}")
        arguments = measured_arguments(body, name_at + len(FIRST))
        if isinstance(arguments, str):
            raise UnclearFormatError(arguments)
        two = self._two(header, ending)
        found = (
            self._json_format(body, two, arguments)
            if arguments.style is ArgumentStyle.JSON and _encloses(body, name_at, arguments.end)
            else self._framed_format(body, two, name_at, arguments)
        )
        if found.tagged is not None:
            found = replace(found, tagged=replace(found.tagged, cdata=self._cdata()))
        found = replace(found, around=tuple(self._without_turn_end(each) for each in found.around))
        if _text(found, [ToolCall(FIRST, ARGUMENTS, IDS[0])]).strip() != body.strip():  # it writes JSON in other lines
            found = replace(found, whitespace=Whitespace.FREE)
        found = self._with_sections(found, answer, header, ending)
        self._verify(found, header, ending)
        return found

    def _cdata(self) -> str:
        """The characters for which the template puts a string in a CDATA section."""

        def wraps(text: str) -> bool:
            function = {"name": FIRST, "arguments": {"zqfirst": text}}
            calls = [{"id": IDS[0], "type": "function", "function": function}]
            return CDATA.begin in self._written({"content": self._no_content, "tool_calls": calls})

        return "".join(filter(wraps, _OF_XML)) if wraps(_OF_XML) else ""

    def _written(self, message: Mapping[str, Any]) -> str:
        try:
            return self._render([_USER, {"role": "assistant", **message}], False)
        except ValueError as error:
            raise UnclearFormatError(
                f"the template refuses {'calls' if 'tool_calls' in message else 'an answer'}: {error}"
            ) from None

    def _header_end(self, answer: str, one: str) -> int:
        """Where the text of the answer begins."""
        try:
            prompt = self._render([_USER], True)
        except ValueError:
            prompt = ""
        if (
            prompt
            and prompt.rstrip("\n ")
            and one.startswith(prompt.rstrip("\n "))
            and answer.startswith(prompt.rstrip("\n "))
        ):
            return len(prompt) if one.startswith(prompt) else len(prompt.rstrip("\n "))
        return len(common_start(answer, one))

    def _ending(self, answer: str, one: str) -> str:
        """The text of the template after an answer."""
        return common_end(answer[answer.rindex(CONTENT) + len(CONTENT) :], one)

    def _thought_end(self, body: str) -> int:
        """Where the text after an empty thought begins, which templates write before an answer."""
        for span in MARKS.values():
            found = re.match(rf"\s*(?:{re.escape(span.begin.strip())}\s*)?{re.escape(span.end.strip())}\s*", body)
            if found is not None:
                return found.end()
        return len(body) - len(body.lstrip() if body.lstrip()[:1] in ("<", "[", "{") else body.lstrip("\n"))

    def _without_turn_end(self, around: Calls) -> Calls:
        """Without marks that end the turn: marks that other messages have, too, and all marks if nothing opens the calls."""
        closing = around.closing
        while closing and isinstance(closing[-1], str) and not isinstance(closing[-1], Json):
            text = closing[-1].rstrip()
            marks = list(_MARK.finditer(text))
            if not marks or marks[-1].end() != len(text) or text[: marks[-1].start()][-1:].isalnum():
                break
            if marks[-1][0] not in self._shown and around.opening and not _TURN_END.search(marks[-1][0]):
                break
            text = text[: marks[-1].start()]
            closing = (*closing[:-1], text) if text.strip() else closing[:-1]
        return Calls(around.opening, closing)

    def _stripped(self, body: str) -> str:
        """An answer without an empty thought and an empty section of content before its calls."""
        body = body[self._thought_end(body) :]
        if self._content is None:
            return body
        return body.removeprefix(self._content.begin + self._content.end)

    def _content_section(self, answer: str, header: int, ending: str) -> Span | None:
        """The texts around content; None if it stands alone."""
        at = answer.rindex(CONTENT)
        before = answer[header:at]
        before = before[self._thought_end(before) :]
        is_thought = any(span.begin.strip() in before for span in MARKS.values())
        if is_thought or not _MARK.search(before):
            return None
        return Span(before, answer[at + len(CONTENT) : len(answer) - len(ending)])

    def _two(self, header: int, ending: str) -> str | None:
        """The text of an answer with two calls; None if the template writes one at most."""
        try:
            text = self._render(
                [_USER, {"role": "assistant", "content": self._no_content, "tool_calls": _calls(2)}], False
            )
        except ValueError:
            return None
        body = text[header : len(text) - len(ending)] if ending else text[header:]
        if not text.endswith(ending) or SECOND not in body or (ending.strip() and ending.strip() in body):
            return None
        return self._stripped(body)

    def _json_format(self, body: str, two: str | None, arguments: MeasuredArguments) -> ToolFormat:
        """Calls that are objects, in an array or one after the other."""
        begin, value, end = _container(body, body.find(FIRST), arguments.end)
        is_array = isinstance(value, list)
        call = value[0] if is_array else value
        opening, closing = body[:begin].lstrip("\n"), body[end:]
        pieces, pattern = _object_pieces(call)
        around = Calls()
        between: Pieces | None
        if is_array:
            before, first, after = _blanks_in_array(body, begin, end)
            bracket = Json(f"{opening[len(opening.rstrip()) :]}[{before}")
            around = Calls(
                (opening.rstrip(), bracket) if opening.strip() else (bracket,),
                (Json(f"{after}]"), closing) if closing.strip() else (Json(f"{after}]"),),
            )
            comma = re.match(r"\s*,(\s*)", two[first:]) if two is not None else None
            blanks = comma[1] if comma is not None and comma[1] != " " else ""
            between = (Json(f",{blanks}"),) if two is not None else None
        elif two is None:
            pieces = (*_texts(opening), *pieces, *_texts(closing))
            between = None
        else:
            second = two.find(SECOND)
            start, _, stop = _container(two, second, two.find("{}", second) + 2)
            inner = two[len(opening) + (end - begin) : start] if two.startswith(opening) else ""
            before, after = common_end(opening, inner), common_start(closing, inner)
            if opening and before == opening and two[stop:] == closing and len(after) + len(before) <= len(inner):
                after = closing
                gap = (
                    inner[len(after) : len(inner) - len(before)]
                    if inner.startswith(closing)
                    else inner[: len(inner) - len(before)]
                )
                pieces = (*_texts(before), *pieces, *_texts(after if inner.startswith(closing) else ""))
                if not inner.startswith(closing):
                    raise UnclearFormatError(f"between two calls is {inner!r}, and after the last one {closing!r}")
                between = (Slot.BLANKS,) if gap and not gap.strip() else (gap,) if gap else ()
            else:
                around = Calls(_texts(opening), _texts(closing))
                between = (inner,) if inner else ()
        return ToolFormat("measured", (pieces,), (around,), between, id_pattern=pattern)

    def _framed_format(self, body: str, two: str | None, name_at: int, arguments: MeasuredArguments) -> ToolFormat:
        """Calls whose name and arguments stand between texts."""
        before = body[:name_at].lstrip("\n")
        middle = body[name_at + len(FIRST) : arguments.begin]
        after = body[arguments.end :]
        pattern, first_id = "", 0
        opening, between, closing = "", None, ""
        call_before, call_after = before, after
        if two is not None:
            second = two.find(SECOND)
            skipped = len(two) - len(two.lstrip("\n"))
            inner = two[skipped + len(before) + len(FIRST) + (arguments.end - name_at - len(FIRST)) : second]
            head, _ = _numbered(before, 0)
            inner_head, _ = _numbered(inner, 1)
            call_before = common_end(head, inner_head)
            opening = head[: len(head) - len(call_before)]
            rest = inner_head[: len(inner_head) - len(call_before)]
            call_after = common_start(after, rest)
            closing = after[len(call_after) :]
            line = call_after[
                len(call_after.rstrip("\n")) :
            ]  # after each call, the last one too: it belongs to what follows
            call_after = call_after.removesuffix(line)
            closing = line + closing if closing.strip() else ""
            gap = line + rest[len(call_after) + len(line) :]
            between = (Slot.BLANKS,) if gap and not gap.strip() and not opening else (gap,) if gap else ()
        pieces: list[Any] = []
        for text in (call_before, Slot.NAME, middle, Slot.ARGUMENTS, call_after):
            if isinstance(text, Slot):
                pieces.append(text)
                continue
            part, found_first = _with_id(text)
            pieces += part
            if found_first is not None:
                first_id = found_first
                pattern = "[0-9]{1,4}" if found_first >= 0 else r"[A-Za-z0-9_.\-]{1,64}"
        around = Calls(_texts(opening), _texts(closing))
        if not opening and not call_before.strip():
            raise UnclearFormatError(f"nothing tells a call from content in {body[:200]!r}")
        return ToolFormat(
            "measured",
            (tuple(pieces),),
            (around,),
            between,
            arguments=arguments.style,
            tagged=arguments.tagged,
            literals=arguments.literals,
            id_pattern=pattern,
            first_id=max(first_id, 0),
        )

    def _with_sections(self, found: ToolFormat, answer: str, header: int, ending: str) -> ToolFormat:
        """The format with its sections of content and of reasoning."""
        if self._content is not None:
            found = replace(found, content=self._content)
            try:
                message = {"content": CONTENT, "tool_calls": _calls(1)}
                both = self._render([_USER, {"role": "assistant", **message}], False)
            except ValueError:
                both = ""
            if f"{self._content.begin}{CONTENT}{self._content.end}" in both:
                found = replace(found, preamble=found.content)
        message = {"role": "assistant", "content": CONTENT, "reasoning_content": THOUGHT}
        try:
            text = self._render([_USER, message], False)
        except ValueError:
            return found
        at = text.rfind(THOUGHT)
        if at < 0 or CONTENT not in text[at:]:
            return found
        begin, after = text[header:at].strip(), text[at + len(THOUGHT) : text.index(CONTENT, at)].strip()
        begin = begin if text[:header] == answer[:header] else text[:at].strip()
        for span in MARKS.values():
            if text[:at].rstrip().endswith(span.begin.strip()) and after.startswith(span.end.strip()):
                return replace(found, reasoning=span)
        marks = list(_MARK.finditer(begin))
        begin = begin if text[:header] == answer[:header] else marks[-1][0] if marks else ""
        joint = ""
        if found.content is not None and after.endswith(found.content.begin):
            after = after.removesuffix(found.content.begin)
            end = _MARK.match(after)
            if end is not None and after.startswith("<|", end.end()):
                after, joint = end[0], after[end.end() :]
        return replace(found, reasoning=Span(begin, after), joint=joint) if begin and after else found

    def _verify(self, found: ToolFormat, header: int, ending: str) -> None:
        """Read back the output of the template.

        Raises:
            UnclearFormatError: something else is read, or the format writes something else than the template.
        """
        cases: list[list[tuple[str, dict[str, Any]]]] = [
            [(FIRST, ARGUMENTS)],
            *([(FIRST, hard)] for hard in _HARD),
            [(SECOND, {})],
        ]
        if found.between is not None:
            cases += [[(FIRST, ARGUMENTS), (SECOND, {})], [(SECOND, {}), (FIRST, _HARD[0])]]
        if found.arguments is ArgumentStyle.PYTHON:  # templates write quotes without escapes there, models do not
            cases = [
                [(name, {**given, "zqfirst": "text"} if "zqfirst" in given else given) for name, given in case]
                for case in cases
            ]
        for case in cases:
            calls = [ToolCall(*each) for each in case]
            listed = [
                {"id": IDS[i], "type": "function", "function": {"name": name, "arguments": arguments}}
                for i, (name, arguments) in enumerate(case)
            ]
            text = self._written({"content": self._no_content, "tool_calls": listed})
            body = text[header : len(text) - len(ending)] if ending else text[header:]
            read = _read(found, self._stripped(body))
            if read != calls:
                raise UnclearFormatError(f"{body!r} is read as {read!r}")
        own = _text(found, [ToolCall(FIRST, ARGUMENTS)])
        if _read(found, own) != [ToolCall(FIRST, ARGUMENTS)]:
            raise UnclearFormatError(f"{own!r} is not read back")


def _calls(count: int) -> list[dict[str, Any]]:
    each = ((FIRST, ARGUMENTS), (SECOND, {}))[:count]
    return [
        {"id": IDS[i], "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(each)
    ]


def _encloses(body: str, name_at: int, end: int) -> bool:
    """Whether the name is in a JSON value with the arguments."""
    return _container(body, name_at, end)[2] > end


def _container(text: str, name_at: int, end: int) -> tuple[int, Any, int]:
    """The outermost JSON array or object around a name and its arguments: begin, value, end; end is 0 if there is none."""
    decoder = json.JSONDecoder()
    for mark in re.finditer(r"[\[{]", text[:name_at]):
        try:
            value, stop = decoder.raw_decode(text, mark.start())
        except ValueError:
            continue
        if stop >= end and _is_call(value[0] if isinstance(value, list) and value else value):
            return mark.start(), value, stop
    return 0, None, 0


def _blanks_in_array(text: str, begin: int, end: int) -> tuple[str, int, str]:
    """The blanks before the first element of an array, the end of this element, and the blanks before the closing bracket."""
    at = begin + 1 + len(text[begin + 1 :]) - len(text[begin + 1 :].lstrip())
    _, first = json.JSONDecoder().raw_decode(text, at)
    inner = text[begin : end - 1]
    return text[begin + 1 : at], first, inner[len(inner.rstrip()) :]


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and (
        FIRST in value or SECOND in value or FIRST in value.values() or SECOND in value.values()
    )


def _object_pieces(call: Mapping[str, Any]) -> tuple[Pieces, str]:
    """The pieces of a call that is an object, and the pattern of its id."""
    pieces: list[Any] = []
    written, pattern = "{", ""

    def add(slot: Slot, before: str, after: str) -> str:
        pieces.extend((Json(before), slot))
        return after

    for i, (key, value) in enumerate(call.items()):
        written += ", " * bool(i)
        if key in (FIRST, SECOND):
            written = add(Slot.NAME, written + '"', '": ')
            written = add(Slot.ARGUMENTS, written, "")
        elif value in (FIRST, SECOND):
            written = add(Slot.NAME, f'{written}{json.dumps(key)}: "', '"')
        elif value in (ARGUMENTS, {}):
            written = add(Slot.ARGUMENTS, f"{written}{json.dumps(key)}: ", "")
        elif value in (*IDS, "0", "1"):
            pattern = "[0-9]{1,4}" if value in ("0", "1") else r"[A-Za-z0-9_.\-]{1,64}"
            written = add(Slot.ID, f'{written}{json.dumps(key)}: "', '"')
        else:
            written += f"{json.dumps(key)}: {json.dumps(value)}"
    pieces.append(Json(written + "}"))
    if pieces.count(Slot.NAME) != 1 or pieces.count(Slot.ARGUMENTS) != 1:
        raise UnclearFormatError(f"{dict(call)!r} has no place for a name and its arguments")
    return tuple(pieces), pattern


def _texts(text: str) -> Pieces:
    """A text in pieces: a mark at its beginning is a piece of its own, so that it alone begins calls in content."""
    if not text:
        return ()
    mark = _MARK.match(text)
    return (text,) if mark is None or mark.end() == len(text) else (mark[0], text[mark.end() :])


_COUNTER = re.compile(r"(?<![\w])[0-2](?![\w])|zqid0000[12]")


def _numbered(text: str, number: int) -> tuple[str, int | None]:
    """A text with a counter or an id replaced by a sign, so that texts of two calls are the same."""
    found = _COUNTER.search(text)
    return (text, None) if found is None else (text[: found.start()] + "\0" + text[found.end() :], number)


def _with_id(text: str) -> tuple[list[Any], int | None]:
    """A text in pieces with a slot for a counter or an id, and the first number: -1 for an id, None without either."""
    found = _COUNTER.search(text)
    sign = text.find("\0")
    if sign >= 0:
        return [each for each in (text[:sign], Slot.ID, text[sign + 1 :]) if each], -1
    if found is None:
        return list(_texts(text)), None
    first = -1 if found[0].startswith("zq") else int(found[0])
    return [each for each in (text[: found.start()], Slot.ID, text[found.end() :]) if each], first
