"""Parts of structures, as read from the source of a constraint; `spec.structures` builds such sources and reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rtlang_grammars.spec.constraint import Constraint, PropertyOrder
from rtlang_grammars.spec.tokens import TokenSet


@dataclass(frozen=True, slots=True)
class Literal:
    """A fixed text."""

    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """One of some tokens."""

    tokens: TokenSet
    pointer: str


Mark: TypeAlias = Literal | Token
"""The text or tokens that begin or end a tag."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A constraint of another kind. It has the style of the whole structure."""

    constraint: Constraint
    pointer: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that follow one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, `low` to `high` times; `high` None is unbounded."""

    part: Part
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Members:
    """Parts, each at most once, with a text between them.

    Attributes:
        parts: each with whether it is required.
        order: whether they follow in any order or in the order of `parts`.
    """

    parts: tuple[tuple[Part, bool], ...]
    separator: str
    order: PropertyOrder


@dataclass(frozen=True, slots=True)
class RawText:
    """A string of a schema, written without quotes.

    Attributes:
        schema: JSON text of a schema that allows only strings.
        excludes: texts that do not occur in it.
        max_tokens: how many tokens may end within it; a character that the last of them began is completed. None: any number.
    """

    schema: str
    excludes: tuple[str, ...]
    pointer: str
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Notation:
    """How a format writes the arguments of a call.

    Attributes:
        format: its name, for messages.
        style: "json": one JSON object; "python": name=literal, separated by commas; "marked": literals with strings between marks;
            "tagged": each name and each value between texts.
        before_name, before_value, behind_value, excludes, item, blanks, cdata: for "tagged", see `TaggedArguments` of
            formats/description.py.
        literals: for "python" and "marked": the texts between name and value, between values, and between key and value, the words for
            true, false and null, and the mark around strings.
    """

    format: str
    style: str = "json"
    before_name: str = ""
    before_value: str = ""
    behind_value: str = ""
    excludes: tuple[str, ...] = ()
    item: str = ""
    literals: tuple[str, ...] = ()
    blanks: str = ""
    cdata: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call of a tool.

    A schema that cannot be compiled is replaced by a wider one; the finished arguments are then checked against the schema itself.

    Attributes:
        name, parameters: of the tool; `parameters` is the JSON text of a schema, or None.
        notation: how they are written.
        is_forced: the text must have a call of this tool, so that a schema that can be neither compiled nor checked is refused.
    """

    name: str
    parameters: str | None
    notation: Notation
    is_forced: bool
    pointer: str


@dataclass(frozen=True, slots=True, eq=False)
class Defined:
    """A part that occurs several times; all occurrences are one object."""

    name: str
    part: Part


@dataclass(frozen=True, slots=True)
class Tag:
    """A part between two texts or tokens. The part and `end` are not both empty."""

    begin: Mark
    part: Part
    end: Mark


@dataclass(frozen=True, slots=True)
class Tags:
    """Free text with tags in it.

    Attributes:
        triggers: each begins a tag wherever it occurs; every tag begins with exactly one of them, and none contains another.
        excludes: texts that do not occur in the free text; none contains another or a trigger.
        low, high: bounds on the number of tags; `high` None is unbounded.
        text_behind: text may follow the last of `high` tags.
    """

    tags: tuple[Tag, ...]
    triggers: tuple[Mark, ...]
    excludes: tuple[str, ...]
    low: int
    high: int | None
    text_behind: bool
    pointer: str


Part: TypeAlias = Literal | Token | Leaf | Sequence | AnyOf | Repeat | Members | RawText | Arguments | Defined | Tags
