"""Output types that say more than one option of `gen` can: JSON in a style, GBNF and EBNF, and forms put together.

Each is given to `gen` in place of a type: `gen("call", type=rt.tagged(...))`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.lang.output_types.types import TEXT, OutputType, output_type
from rtlang_grammars import GrammarError, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec import structures


def json_text(
    schema: Any, *, whitespace: Literal["free", "compact"] = "free", order: Literal["any", "declared"] = "any"
) -> OutputType:
    """A value of a schema, written in a style.

    Args:
        schema: as for `gen`: a type or a JSON schema.
        whitespace: free allows one or two blanks, or a line break and up to 80 blanks, where JSON does; compact allows none.
        order: any order of properties, or that in which the schema declares them (optional ones may be left out).
    Raises:
        ParameterError: the schema is none, or a style is not known; names it.
    """
    for field, value, allowed in (("whitespace", whitespace, Whitespace), ("order", order, PropertyOrder)):
        if value not in list(allowed):
            raise ParameterError(field, value, f"allowed are {', '.join(allowed)}")
    found = output_type(schema=schema)
    if found.constraint is None or found.constraint.kind is not ConstraintKind.JSON_SCHEMA:
        raise ParameterError("schema", schema, "a type that is written as JSON is allowed")
    style = JsonStyle(Whitespace(whitespace), PropertyOrder(order))
    return replace(found, constraint=replace(found.constraint, style=style))


def ebnf(source: str, *, notation: Literal["gbnf", "w3c"] = "gbnf") -> OutputType:
    """Text of a grammar in GBNF, the notation of llama.cpp (start rule `root`), or in the EBNF of the W3C (the first rule starts).

    Raises:
        ParameterError: not text, or the notation is not known.
    """
    if not isinstance(source, str) or not source.strip():
        raise ParameterError("source", source, "the text of a grammar is allowed")
    if notation not in ("gbnf", "w3c"):
        raise ParameterError("notation", notation, "allowed are gbnf, w3c")
    kind = ConstraintKind.GBNF if notation == "gbnf" else ConstraintKind.EBNF
    return OutputType(Constraint(kind, source), str, is_text=True)


def sequence(*parts: Any) -> OutputType:
    """One part after the other. A part is a text (itself), a compiled pattern, a type, a JSON schema as a mapping, or an output type.

    Raises:
        ParameterError: a part is none of these, or parts with schemas have different styles; so may all that take parts.
    """
    given = [_part(part) for part in parts]
    return _structure(lambda: structures.sequence(*given))


def either(*parts: Any) -> OutputType:
    """One of several parts; see `sequence`.

    Raises:
        ParameterError: there is no part, or one is none.
    """
    given = [_part(part) for part in parts]
    return _structure(lambda: structures.any_of(*given))


def repeated(part: Any, low: int = 0, high: int | None = None) -> OutputType:
    """A part `low` to `high` times; see `sequence`.

    Raises:
        ParameterError: the part is none, or the bounds are not in order.
    """
    given = _part(part)
    return _structure(lambda: structures.repeat(given, low, high))


def tagged(
    tags: Mapping[str, tuple[Any, str]] | Iterable[tuple[str, Any, str]],
    *,
    triggers: Iterable[str] = (),
    low: int = 0,
    high: int | None = None,
    text_behind: bool = True,
) -> OutputType:
    """Free text in which certain beginnings lead to a form: calls of tools, thoughts, code.

    Args:
        tags: for each, the text that it begins with, a part (see `sequence`), and the text that it ends with.
        triggers: what begins tags and nothing else; where none are given, the beginnings of the tags.
        low, high: how many tags there must and may be.
        text_behind: False: the text ends with the tag that is the last one of `high`.
    Raises:
        ParameterError: a part is none, a tag begins with no trigger or with more than one, or a bound is not allowed.
    """
    given = (
        [(begin, rest) for begin, rest in tags.items()]
        if isinstance(tags, Mapping)
        else [(each[0], tuple(each[1:])) for each in tags]
    )
    listed = []
    for begin, rest in given:
        if not (isinstance(rest, tuple) and len(rest) == 2 and isinstance(begin, str) and isinstance(rest[1], str)):
            raise ParameterError(
                "tags", {begin: rest}, "a beginning, a part and the text of the end: {'<a>': (int, '</a>')}"
            )
        listed.append((begin, _part(rest[0]), rest[1]))
    return _structure(lambda: structures.tagged(listed, triggers=triggers, low=low, high=high, text_behind=text_behind))


def _structure(make: Callable[[], Constraint]) -> OutputType:
    try:
        constraint = make()
        structures.read_structure(constraint.source)
    except GrammarError as error:
        raise ParameterError("parts", error.location, error.reason) from error
    return OutputType(constraint, str, is_text=True)


def _part(given: Any) -> str | Constraint:
    if isinstance(given, str):
        return given
    if isinstance(given, Constraint):
        return given
    if isinstance(given, re.Pattern):
        found = output_type(regex=given)
    elif isinstance(given, Mapping):
        found = output_type(schema=given)
    else:
        found = output_type(type=given)
    if found is TEXT or found.constraint is None:
        raise ParameterError("parts", given, "a part with a form is allowed; any text has none")
    return found.constraint
