"""Descriptions of tool-call formats: plain data from which both the constraint and the parser are made.

A call is a tuple of pieces: fixed texts, JSON text whose blanks depend on the style, and slots for the name, the arguments and the id.
Fixed texts spell special tokens by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from rtlang_grammars.spec.constraint import Whitespace

JSON_BLANKS = r"(?: {0,2}|\n {0,80})"
"""Pattern of the blanks that the free style of JSON values allows."""


class Slot(Enum):
    """What differs between calls, and blanks."""

    NAME = auto()
    ARGUMENTS = auto()
    ID = auto()
    BLANKS = auto()


class Json(str):
    """Part of a JSON text, as the chat template writes it. The parser takes any blanks around its punctuation."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Blanks:
    """A place where blanks may stand.

    Attributes:
        written: the blanks that the chat template writes there.
        is_gap: it follows a comma or a colon.
    """

    written: str = ""
    is_gap: bool = False

    def pattern(self, allowed: Whitespace) -> str:
        """The pattern of the blanks that masks let through; on one line, those of the template, of `json.dumps` or none."""
        if allowed is Whitespace.FREE:
            return JSON_BLANKS
        texts = sorted({self.written, " " if self.is_gap else ""} - {""})
        if allowed is Whitespace.COMPACT or not texts:
            return ""
        return f"(?:{'|'.join(texts)})?".replace("\n", r"\n")


Piece: TypeAlias = str | Slot
"""A fixed text, a `Json` or a slot."""
Pieces: TypeAlias = tuple[Piece, ...]
Atom: TypeAlias = str | Slot | Blanks
"""A fixed text, a slot for the name, the arguments or the id, or a place for blanks."""
Atoms: TypeAlias = tuple[Atom, ...]


class ArgumentStyle(Enum):
    """How the arguments of a call are written."""

    JSON = auto()  # one JSON object
    PYTHON = auto()  # name=literal, separated by commas; strings in quotes with escapes, as Python writes them
    MARKED = auto()  # name:literal, separated by commas; strings between two marks, without escapes
    TAGGED = auto()  # each name and each value between texts; strings without quotes


@dataclass(frozen=True, slots=True)
class Literals:
    """How literals of the styles PYTHON and MARKED are written.

    Attributes:
        assign: between the name of an argument and its value.
        separator: between arguments, items and members.
        colon: between the key of a member and its value.
        constants: the words for true, false and null.
        quote: the mark around strings of the style MARKED.
    """

    assign: str = "="
    separator: str = ", "
    colon: str = ": "
    constants: tuple[str, str, str] = ("True", "False", "None")
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """The texts at the beginning and the end of a section."""

    begin: str
    end: str


CDATA = Span("<![CDATA[", "]]>")
"""The texts around a CDATA section of XML."""


@dataclass(frozen=True, slots=True)
class TaggedArguments:
    """The texts around arguments of style TAGGED.

    A type in `before_value` tells strings from other values, which are JSON then; without it the schema tells them.

    Attributes:
        before_name, before_value, behind_value: texts around each name and value. In `before_value`, {type} is the JSON type of the value
            (number for integers, too), and {is_string} is true or false; in `behind_value`, {name} is the name.
        excludes: texts that a value without quotes must not contain.
        item: objects are written as their members, and arrays as items of this name, each between the same texts; "": as JSON.
        blanks: pattern of the blanks that may stand around arguments and around values that are no strings, and in place of line breaks in
            the texts; "": none.
        cdata: a string with one of these characters stands in a CDATA section, and other values may; "": there are none.
    """

    before_name: str
    before_value: str
    behind_value: str
    excludes: tuple[str, ...]
    item: str = ""
    blanks: str = ""
    cdata: str = ""

    @property
    def has_types(self) -> bool:
        """Whether `before_value` tells the type of the value."""
        return "{type}" in self.before_value or "{is_string}" in self.before_value

    def value_begin(self, kind: str) -> str:
        """`before_value` of a value of a JSON type."""
        kind = "number" if kind == "integer" else kind
        is_string = "true" if kind == "string" else "false"
        return self.before_value.replace("{type}", kind).replace("{is_string}", is_string)

    def value_end(self, name: str) -> str:
        """`behind_value` of the value of a name."""
        return self.behind_value.replace("{name}", name)


@dataclass(frozen=True, slots=True)
class Calls:
    """The texts around all calls: before the first and after the last."""

    opening: Pieces = ()
    closing: Pieces = ()


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """How a family of models writes reasoning, content and tool calls.

    Attributes:
        name: in the catalogue.
        call: spellings of one call; the first is the one that the chat template renders.
        around: spellings of the texts around all calls; the first is the one that the chat template renders.
        between: pieces between two calls; None if a text has one call at most.
        closing_is_optional: the closing is an end token of the model, so that the text may lack it.
        has_line_before_calls: the template writes line breaks before the calls even where nothing precedes them.
        has_name_in_trigger: the opening is too common to begin a call in free text; the name of a tool and the text after it belong to
            the trigger.
        arguments, tagged, literals: how arguments are written.
        whitespace: the blanks in JSON by default; FREE for models that write calls over several lines.
        id_pattern: regular expression of ids, if calls have a slot for one.
        first_id: the id of the first call, where ids are numbers.
        listed_id: the id that the chat template expects of a call in a history, from {name} and {number}; empty for any id.
        reasoning: the section of reasoning, or None.
        content: the section of content; None if content is plain text before the calls.
        preamble: a section of content before the calls, for formats with content sections.
        joint: text between sections.
        content_begins: other spellings of the beginning of `content`.
        answer: texts that models write around content that follows reasoning, but not around other content.
    """

    name: str
    call: tuple[Pieces, ...]
    around: tuple[Calls, ...] = (Calls(),)
    between: Pieces | None = (Slot.BLANKS,)
    closing_is_optional: bool = False
    has_line_before_calls: bool = False
    has_name_in_trigger: bool = False
    arguments: ArgumentStyle = ArgumentStyle.JSON
    tagged: TaggedArguments | None = None
    literals: Literals = Literals()
    whitespace: Whitespace = Whitespace.LINE
    id_pattern: str = ""
    first_id: int = 0
    listed_id: str = ""
    reasoning: Span | None = None
    content: Span | None = None
    preamble: Span | None = None
    joint: str = ""
    content_begins: tuple[str, ...] = ()
    answer: Span | None = None


_WORDS = re.compile(r'[{}\[\],:"]|[^{}\[\],:"]+')


def atoms(pieces: Iterable[Piece]) -> Atoms:
    """The pieces with the places for blanks made explicit: no two texts and no two places for blanks in a row."""
    found: list[Atom] = []
    is_inside = False  # of a JSON string

    def add(atom: Atom) -> None:
        last = found[-1] if found else None
        if isinstance(atom, Blanks) and isinstance(last, Blanks):
            found[-1] = Blanks(last.written + atom.written, last.is_gap or atom.is_gap)
        elif isinstance(atom, str) and isinstance(last, str):
            found[-1] = last + atom
        else:
            found.append(atom)

    for piece in pieces:
        if not isinstance(piece, Json):
            add(Blanks("\n") if piece is Slot.BLANKS else piece)
            continue
        for word in _WORDS.findall(piece):
            if word == '"':
                is_inside = not is_inside
            if is_inside or word == '"':
                add(word)
            elif word in "{}[],:":
                add(Blanks())
                add(word)
                add(Blanks(is_gap=word in ",:"))
            else:
                add(word.strip() or Blanks(word))
    return tuple(found)


def first_text(pieces: Pieces) -> str:
    """The fixed text of the first piece, as the chat template renders it; "" if it is a slot."""
    return str(pieces[0]) if pieces and isinstance(pieces[0], str) else ""


def behind_text(found: Atoms, text: str) -> Atoms:
    """The atoms after a text with which they begin; for a `Json`, those from the first slot on."""
    first = found[0]
    if isinstance(first, str) and first.startswith(text):
        return (first[len(text) :], *found[1:])
    return found[next(i for i, each in enumerate(found) if each in (Slot.NAME, Slot.ID)) :]


def without_last_blanks(found: Atoms) -> Atoms:
    """The atoms without a place for blanks at the end."""
    return found[:-1] if found and isinstance(found[-1], Blanks) else found


def triggers(tool_format: ToolFormat, around: Calls, tools: Iterable[str]) -> list[str]:
    """The texts that begin the calls wherever they occur in content."""
    opening = first_text(around.opening)
    if around.opening and isinstance(around.opening[0], Json):  # a bracket alone is too common
        return [opening + first_text(call) for call in tool_format.call]
    if tool_format.has_name_in_trigger and around is tool_format.around[0]:
        behind = tool_format.call[0][1]
        return [f"{opening}{name}{behind}" for name in tools]
    return [opening] if opening else list(dict.fromkeys(first_text(call) for call in tool_format.call))
