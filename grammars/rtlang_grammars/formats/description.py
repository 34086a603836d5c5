"""Descriptions of tool-call formats: plain data from which both the constraint and the parser are made.

A call is a tuple of pieces: fixed texts, JSON punctuation around which blanks are free, and slots for the name, the arguments and the id.
Fixed texts spell special tokens by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias


class Slot(Enum):
    """What differs between calls, and blanks."""

    NAME = auto()
    ARGUMENTS = auto()
    ID = auto()
    BLANKS = auto()


class Json(str):
    """Part of a JSON text. Blanks are free around its punctuation."""

    __slots__ = ()


Piece: TypeAlias = str | Slot
"""A fixed text, a `Json` or a slot."""
Pieces: TypeAlias = tuple[Piece, ...]


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
    """

    before_name: str
    before_value: str
    behind_value: str
    excludes: tuple[str, ...]
    item: str = ""
    blanks: str = ""

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
class Span:
    """The texts at the beginning and the end of a section."""

    begin: str
    end: str


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
    id_pattern: str = ""
    first_id: int = 0
    listed_id: str = ""
    reasoning: Span | None = None
    content: Span | None = None
    preamble: Span | None = None
    joint: str = ""
    content_begins: tuple[str, ...] = ()
    answer: Span | None = None


JSON_BLANKS = r"(?: {0,2}|\n {0,80})"
"""Pattern of the blanks that the default style of JSON values allows."""
_WORDS = re.compile(r'[{}\[\],:"]|[^{}\[\],:"]+')


def atoms(pieces: Iterable[Piece]) -> Pieces:
    """The pieces with the blanks in `Json` made explicit: only fixed texts and slots are left, no two texts and no two blanks in a row."""
    found: list[Piece] = []
    is_inside = False  # of a JSON string

    def add(atom: Piece) -> None:
        last = found[-1] if found else None
        if atom is Slot.BLANKS and last is Slot.BLANKS:
            return
        if isinstance(atom, str) and isinstance(last, str):
            found[-1] = last + atom
        else:
            found.append(atom)

    for piece in pieces:
        if not isinstance(piece, Json):
            if piece is Slot.ARGUMENTS and found and found[-1] is Slot.BLANKS:
                found.pop()  # the arguments bring their own
            add(piece)
            continue
        for word in _WORDS.findall(piece):
            if word == '"':
                is_inside = not is_inside
            if is_inside or word == '"':
                add(word)
            elif word in "{}[],:":
                add(Slot.BLANKS)
                add(word)
                add(Slot.BLANKS)
            elif word.strip():
                add(word.strip())
    return tuple(found)


def first_text(pieces: Pieces) -> str:
    """The fixed text of the first piece, as the chat template renders it; "" if it is a slot."""
    return str(pieces[0]) if pieces and isinstance(pieces[0], str) else ""


def behind_text(found: Pieces, text: str) -> Pieces:
    """The atoms after a text with which they begin; for a `Json`, those from the first slot on."""
    first = found[0]
    if isinstance(first, str) and first.startswith(text):
        return (first[len(text) :], *found[1:])
    return found[next(i for i, each in enumerate(found) if each in (Slot.NAME, Slot.ID)) :]


def without_last_blanks(found: Pieces) -> Pieces:
    """The atoms without blanks at the end."""
    return found[:-1] if found and found[-1] is Slot.BLANKS else found


def triggers(tool_format: ToolFormat, around: Calls, tools: Iterable[str]) -> list[str]:
    """The texts that begin the calls wherever they occur in content."""
    opening = first_text(around.opening)
    if around.opening and isinstance(around.opening[0], Json):  # a bracket alone is too common
        return [opening + first_text(call) for call in tool_format.call]
    if tool_format.has_name_in_trigger and around is tool_format.around[0]:
        behind = tool_format.call[0][1]
        return [f"{opening}{name}{behind}" for name in tools]
    return [opening] if opening else list(dict.fromkeys(first_text(call) for call in tool_format.call))
