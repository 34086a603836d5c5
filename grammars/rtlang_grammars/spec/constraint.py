"""Constraints as plain data: which texts are allowed, independent of how a backend enforces it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeVar

from rtlang_grammars.spec.errors import GrammarError

MAX_INDENT = 80
"""Maximum number of blanks in one place."""


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
    LINE = "line"  # none, or one blank after a comma or a colon
    COMPACT = "compact"  # none


class PropertyOrder(StrEnum):
    """The order in which the properties of an object may appear."""

    ANY = "any"
    # Declared properties in the order of the schema, of which optional ones may be left out; others anywhere.
    DECLARED = "declared"
    DECLARED_THEN_OTHERS = "declared_then_others"  # the same, but others only after them
    REQUIRED_FIRST = (
        "required_first"  # the required ones in the order of the schema, then the optional ones, then others
    )


class Numbers(StrEnum):
    """The spellings of numbers."""

    # Integers as digits alone, other numbers as programs write them; each is finite as a double, unless its bounds ask for more.
    PLAIN = "plain"
    ANY = "any"  # every spelling of JSON: 3, 3.0 and 3e0 are the same integer


class Lexer(StrEnum):
    """How the text of a Lark grammar is divided into terminals."""

    LONGEST = (
        "longest"  # the longest match wins; among equally long ones the priority, then literals before expressions
    )
    LARK = "lark"  # as lark's contextual lexer, to the letter
    ANYWHERE = "anywhere"  # no lexer: a terminal may end wherever it matches


_BLANKS = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """One exact way to set JSON text, as `json.dumps` does with the same arguments.

    Attributes:
        item_separator: a comma, with blanks around it; None: "," with an indent, else ", ".
        key_separator: a colon, with blanks around it.
        indent: blanks, or a number of spaces, by which the elements of arrays and objects are indented, each on a line of its
            own; None: all in one line.
    Raises:
        GrammarError: a field is not allowed; the location is its name.
    """

    item_separator: str | None = None
    key_separator: str = ": "
    indent: str | int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.indent, int) and not isinstance(self.indent, bool):
            if not 0 <= self.indent <= MAX_INDENT:
                raise GrammarError(f"{self.indent}: expected 0 to {MAX_INDENT} spaces", "indent")
            object.__setattr__(self, "indent", " " * self.indent)
        elif self.indent is not None:
            self._check("indent", self.indent, "")
        if self.item_separator is None:
            object.__setattr__(self, "item_separator", ", " if self.indent is None else ",")
        self._check("item_separator", self.item_separator, ",")
        self._check("key_separator", self.key_separator, ":")
        if self.indent is not None and not str(self.item_separator).startswith(","):
            raise GrammarError(
                f"{self.item_separator!r}: with an indent, expected no blanks before the comma", "item_separator"
            )

    def _check(self, field: str, value: object, sign: str) -> None:
        if isinstance(value, str) and len(value) <= MAX_INDENT:
            before, found, behind = value.partition(sign) if sign else (value, sign, "")
            if found == sign and _BLANKS.fullmatch(before) and _BLANKS.fullmatch(behind):
                return
        expected = f"{sign!r} with blanks around it" if sign else "blanks"
        raise GrammarError(f"{value!r}: expected {expected}, at most {MAX_INDENT} characters", field)


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How the values of a schema are written. It does not affect which values are valid.

    Attributes:
        layout: the exact places of blanks; None: as `whitespace` says.
    """

    whitespace: Whitespace = Whitespace.FREE
    order: PropertyOrder = PropertyOrder.DECLARED_THEN_OTHERS
    layout: JsonLayout | None = None
    numbers: Numbers = Numbers.PLAIN

    @property
    def blanks(self) -> Whitespace:
        """The blanks that may be chosen; none beside an exact layout."""
        return self.whitespace if self.layout is None else Whitespace.COMPACT

    @property
    def free_blanks(self) -> bool:
        """Whether blanks may be chosen around all punctuation."""
        return self.blanks is Whitespace.FREE


ANY_STYLE = JsonStyle(order=PropertyOrder.ANY, numbers=Numbers.ANY)
"""Every text of a valid value: properties in any order, numbers in all spellings."""


@dataclass(frozen=True, slots=True)
class Indentation:
    """How the indentation of lines becomes terminals of a Lark grammar, as by lark's `Indenter`.

    Behind each `newline` outside brackets, the blanks after its last line break are compared with the enclosing lines: `indent` follows
    where the line begins further to the right, and `dedent` for each enclosing line that ends. Inside brackets, `newline` is dropped.

    Attributes:
        newline: the terminal of line breaks with the blanks after them (lark's NL_type). It is looked for everywhere.
        indent, dedent: terminals that the grammar declares with %declare.
        open, close: terminals that open and close brackets (OPEN_PAREN_types, CLOSE_PAREN_types).
        tab_len: columns of a tab.
    """

    newline: str
    indent: str
    dedent: str
    open: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    tab_len: int = 8

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            GrammarError: a name is not text, or tab_len is not a number from 1 to 1000.
        """
        names = (self.newline, self.indent, self.dedent)
        if not all(isinstance(each, str) for each in (*names, *self.open, *self.close)) or len({*names}) < len(names):
            raise GrammarError("newline, indent and dedent: expected three different names of terminals", "indentation")
        if not isinstance(self.tab_len, int) or not 1 <= self.tab_len <= 1000:
            raise GrammarError(f"tab_len = {self.tab_len}: expected a number from 1 to 1000", "indentation")

    @classmethod
    def from_json(cls, text: object) -> Indentation:
        """Read the JSON text of the fields.

        Raises:
            GrammarError: a field is missing, unknown or not allowed.
        """
        try:
            fields: dict[str, Any] = dict(json.loads(text)) if isinstance(text, str) else {}
            return cls(**fields | {key: tuple(fields.get(key, ())) for key in ("open", "close")})
        except GrammarError:
            raise
        except (ValueError, TypeError, RecursionError):
            raise GrammarError(
                "expected the JSON text of newline, indent, dedent, open, close, tab_len", "indentation"
            ) from None


_WITH_RULES = (ConstraintKind.LARK, ConstraintKind.GBNF, ConstraintKind.EBNF, ConstraintKind.STRUCTURE)
_TEMPERATURE = re.compile(r"\btemperature\s*=")


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
        indentation: for LARK with a lexer, how the indentation of lines becomes terminals; None: it does not.
    """

    kind: ConstraintKind
    source: str
    style: JsonStyle = JsonStyle()
    lexer: Lexer = Lexer.LONGEST
    indentation: Indentation | None = None

    @property
    def may_set_temperature(self) -> bool:
        """Whether a rule of a grammar may have the option `temperature`, so that greedy requests sample, too.

        The source is searched for it, so that True may also mean that a literal contains `temperature=`.
        """
        return self.kind in _WITH_RULES and _TEMPERATURE.search(self.source) is not None

    def to_plain(self) -> dict[str, str]:
        """The constraint as a map of strings; it includes style, lexer and indentation only where they differ from the default."""
        plain = {"kind": str(self.kind), "source": self.source}
        if self.style != JsonStyle():
            plain |= {"whitespace": str(self.style.whitespace), "order": str(self.style.order)}
            plain["numbers"] = str(self.style.numbers)
        if self.style.layout is not None:
            plain |= {name: text for name in _LAYOUT if (text := getattr(self.style.layout, name)) is not None}
        if self.lexer is not Lexer.LONGEST:
            plain["lexer"] = str(self.lexer)
        if self.indentation is not None:
            plain["indentation"] = json.dumps(asdict(self.indentation))
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
            _member(PropertyOrder, plain.get("order", JsonStyle().order), "order"),
            JsonLayout(**{name: plain[name] for name in _LAYOUT if name in plain}) if plain.keys() & _LAYOUT else None,
            _member(Numbers, plain.get("numbers", JsonStyle().numbers), "numbers"),
        )
        kind = _member(ConstraintKind, plain.get("kind"), "kind")
        lexer = _member(Lexer, plain.get("lexer", Lexer.LONGEST), "lexer")
        if lexer is not Lexer.LONGEST and kind is not ConstraintKind.LARK:
            raise GrammarError(f"{lexer}: allowed only for constraints of kind lark", "lexer")
        found = plain.get("indentation")
        if found is not None and (kind is not ConstraintKind.LARK or lexer is Lexer.ANYWHERE):
            raise GrammarError("allowed only for constraints of kind lark with a lexer", "indentation")
        return cls(kind, plain["source"], style, lexer, None if found is None else Indentation.from_json(found))


_LAYOUT = {"item_separator": None, "key_separator": None, "indent": None}.keys()
"""The fields of a layout."""
_Member = TypeVar("_Member", bound=StrEnum)


def _member(members: type[_Member], value: object, field: str) -> _Member:
    if not isinstance(value, str) or value not in [str(each) for each in members]:
        raise GrammarError(f"expected one of {', '.join(members)}", field)
    return members(value)
