"""Values of arguments in a text that grows: whether the text ends too early or is wrong, blanks, and values without quotes."""

from __future__ import annotations

import ast
import json
from typing import Any

from rtlang_grammars.formats.schemas import type_of

NAMED = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
"""Words for values, in Python and in JSON."""


class Incomplete(Exception):
    """The text ends before the arguments do."""


class Malformed(ValueError):
    """The format does not allow the text at this place."""


def _refuse_constant(name: str) -> Any:
    raise Malformed(f"{name} is no JSON value")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""Reads JSON; refuses numbers that are not finite."""


def skip_blanks(text: str, at: int) -> int:
    """The position after blanks and line breaks."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def typed(raw: str, types: frozenset[str]) -> Any:
    """The value that a text without quotes stands for: of a type other than string where it can be, else the text."""
    if types == {"string"}:
        return raw
    word = raw.strip()
    value: Any
    if word in NAMED:
        value = NAMED[word]
    else:
        try:
            value = DECODER.decode(word)
        except ValueError as error:
            if isinstance(error, Malformed) and "string" not in types:
                raise
            value = python_literal(word) if word[:1] in ("{", "[") else None
            if value is None or type_of(value) not in types:
                return raw
    if isinstance(value, float) and "number" not in types and "integer" in types and value.is_integer():
        value = int(value)  # 2.0 is an integer
    return value if type_of(value) in types and not isinstance(value, str) else raw


def python_literal(text: str) -> Any:
    """The dict or list that a text writes as Python does; None if it is none, or has values that JSON lacks."""
    try:
        found = ast.literal_eval(text)
        return found if json.loads(json.dumps(found, allow_nan=False)) == found else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
