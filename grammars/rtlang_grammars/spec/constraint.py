"""A constraint as plain data: which texts are allowed, independent of how a backend enforces it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from rtlang_grammars.spec.errors import GrammarError


class ConstraintKind(StrEnum):
    """The input languages of the seam."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    CHOICE = "choice"
    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"
    STRUCTURE = "structure"


class Whitespace(StrEnum):
    """What may stand between the tokens of JSON text."""

    FREE = "free"  # nothing, one or two blanks, or a line break and up to 80 blanks: never endless
    COMPACT = "compact"  # nothing


class PropertyOrder(StrEnum):
    """In which order the properties of an object may come."""

    ANY = "any"
    DECLARED = "declared"  # those that the schema names in its order, optional ones possibly left out; others anywhere


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How the values of a schema are written. What is valid does not depend on it."""

    whitespace: Whitespace = Whitespace.FREE
    order: PropertyOrder = PropertyOrder.ANY


@dataclass(frozen=True, slots=True)
class Constraint:
    """Which texts are allowed.

    Attributes:
        kind: the language of `source`.
        source: JSON text of a schema (JSON_SCHEMA), a pattern that the whole text must match (REGEX),
            a JSON array of strings (CHOICE), or the text of a grammar: as Lark reads it (LARK), as llama.cpp does (GBNF), or in the
            EBNF of the W3C (EBNF); or what `structures` says, as JSON text (STRUCTURE).
        style: of JSON_SCHEMA and STRUCTURE: how values of schemas are written.
    """

    kind: ConstraintKind
    source: str
    style: JsonStyle = JsonStyle()

    def to_plain(self) -> dict[str, str]:
        """As a map of texts; a style only where it is not the default."""
        plain = {"kind": str(self.kind), "source": self.source}
        if self.style != JsonStyle():
            plain |= {"whitespace": str(self.style.whitespace), "order": str(self.style.order)}
        return plain

    @classmethod
    def from_plain(cls, plain: object) -> Constraint:
        """The reverse of `to_plain`.

        Raises:
            GrammarError: something is missing or not allowed; the location is the name of the field, empty for the whole.
        """
        if not isinstance(plain, dict) or not isinstance(plain.get("source"), str):
            raise GrammarError("a map with kind and source (a string) is allowed", "")
        style = JsonStyle(
            _member(Whitespace, plain.get("whitespace", Whitespace.FREE), "whitespace"),
            _member(PropertyOrder, plain.get("order", PropertyOrder.ANY), "order"),
        )
        return cls(_member(ConstraintKind, plain.get("kind"), "kind"), plain["source"], style)


_Member = TypeVar("_Member", bound=StrEnum)


def _member(members: type[_Member], value: object, field: str) -> _Member:
    if not isinstance(value, str) or value not in [str(each) for each in members]:
        raise GrammarError(f"allowed are {', '.join(members)}", field)
    return members(value)
