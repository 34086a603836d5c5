"""Constraints as plain data: which texts are allowed, independent of how a backend enforces it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from rtlang_grammars.spec.errors import GrammarError


class ConstraintKind(StrEnum):
    """The input languages."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    CHOICE = "choice"
    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"
    STRUCTURE = "structure"


class Whitespace(StrEnum):
    """The blanks allowed between the tokens of JSON text."""

    FREE = "free"  # none, one or two blanks, or a line break and up to 80 blanks: always finite
    COMPACT = "compact"  # none


class PropertyOrder(StrEnum):
    """The order in which the properties of an object may appear."""

    ANY = "any"
    # Declared properties in the order of the schema, of which optional ones may be left out; others anywhere.
    DECLARED = "declared"
    DECLARED_THEN_OTHERS = "declared_then_others"  # the same, but others only behind them
    REQUIRED_FIRST = (
        "required_first"  # the required ones in the order of the schema, then the optional ones, then others
    )


class Lexer(StrEnum):
    """How the text of a Lark grammar is divided into terminals."""

    LONGEST = (
        "longest"  # the longest match wins; among equally long ones the priority, then literals before expressions
    )
    LARK = "lark"  # as lark's contextual lexer, to the letter
    ANYWHERE = "anywhere"  # no lexer: a terminal may end wherever it matches


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How the values of a schema are written. It does not affect which values are valid."""

    whitespace: Whitespace = Whitespace.FREE
    order: PropertyOrder = PropertyOrder.ANY


@dataclass(frozen=True, slots=True)
class Constraint:
    """Which texts are allowed.

    Attributes:
        kind: the language of `source`.
        source: JSON text of a schema (JSON_SCHEMA), a pattern that the whole text must match (REGEX), a JSON array of strings (CHOICE), a
            grammar in the notation of Lark (LARK), llama.cpp (GBNF) or the EBNF of the W3C (EBNF), or the JSON text of a structure as
            described in `structures` (STRUCTURE).
        style: for JSON_SCHEMA and STRUCTURE, how values of schemas are written.
        lexer: for LARK, how text is divided into terminals.
    """

    kind: ConstraintKind
    source: str
    style: JsonStyle = JsonStyle()
    lexer: Lexer = Lexer.LONGEST

    def to_plain(self) -> dict[str, str]:
        """The constraint as a map of strings; it includes style and lexer only where they differ from the default."""
        plain = {"kind": str(self.kind), "source": self.source}
        if self.style != JsonStyle():
            plain |= {"whitespace": str(self.style.whitespace), "order": str(self.style.order)}
        if self.lexer is not Lexer.LONGEST:
            plain["lexer"] = str(self.lexer)
        return plain

    @classmethod
    def from_plain(cls, plain: object) -> Constraint:
        """The inverse of `to_plain`.

        Raises:
            GrammarError: a field is missing or not allowed; the location is the name of the field, or empty if the whole is wrong.
        """
        if not isinstance(plain, dict) or not isinstance(plain.get("source"), str):
            raise GrammarError("constraint: expected a map with kind and source (a string)", "")
        style = JsonStyle(
            _member(Whitespace, plain.get("whitespace", Whitespace.FREE), "whitespace"),
            _member(PropertyOrder, plain.get("order", PropertyOrder.ANY), "order"),
        )
        kind = _member(ConstraintKind, plain.get("kind"), "kind")
        lexer = _member(Lexer, plain.get("lexer", Lexer.LONGEST), "lexer")
        if lexer is not Lexer.LONGEST and kind is not ConstraintKind.LARK:
            raise GrammarError(f"{lexer}: allowed only for constraints of kind lark", "lexer")
        return cls(kind, plain["source"], style, lexer)


_Member = TypeVar("_Member", bound=StrEnum)


def _member(members: type[_Member], value: object, field: str) -> _Member:
    if not isinstance(value, str) or value not in [str(each) for each in members]:
        raise GrammarError(f"expected one of {', '.join(members)}", field)
    return members(value)
