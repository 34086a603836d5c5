"""JSON values as a schema sees them: six types, equality by value, exact numbers.

Python's own comparison is not JSON's (`True == 1`, `1 in [True]`), so values are compared through `json_key`. Numbers
become fractions by their decimal spelling: 0.1 is one tenth, as its author meant, not the nearest double.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import TypeAlias, TypeGuard

from rtlang_grammars.spec.errors import GrammarError

Json: TypeAlias = "bool | int | float | Decimal | str | list[Json] | dict[str, Json] | None"
MAX_EXPONENT = 400  # a number such as 1e999999 would cost more digits than any budget holds


class JsonType(IntEnum):
    """The types of the data model; an integer is a number."""

    NULL = 0
    BOOLEAN = 1
    NUMBER = 2
    STRING = 3
    ARRAY = 4
    OBJECT = 5


def is_number(value: Json) -> TypeGuard[int | float | Decimal]:
    """Whether the value is a JSON number (Python's bool is not)."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def type_of(value: Json) -> JsonType:
    """The JSON type of a value.

    Raises:
        GrammarError: the value is no JSON value.
    """
    if isinstance(value, str):
        return JsonType.STRING
    if isinstance(value, dict):
        return JsonType.OBJECT
    if isinstance(value, list):
        return JsonType.ARRAY
    if value is None:
        return JsonType.NULL
    if isinstance(value, bool):
        return JsonType.BOOLEAN
    if is_number(value):
        return JsonType.NUMBER
    raise GrammarError(f"a schema holds only JSON values, not {type(value).__name__}")


def exact(value: int | float | Decimal) -> Fraction:
    """The number as written: 0.1 is 1/10.

    Raises:
        GrammarError: not finite, or of more than about `MAX_EXPONENT` digits.
    """
    if isinstance(value, int):
        if value.bit_length() > 4 * MAX_EXPONENT:
            raise GrammarError(f"numbers of more than {MAX_EXPONENT} digits are not supported")
        return Fraction(value)
    if not math.isfinite(value):
        raise GrammarError("numbers must be finite")
    decimal = value if isinstance(value, Decimal) else Decimal(repr(value))
    if decimal and abs(decimal.adjusted()) > MAX_EXPONENT:
        raise GrammarError(f"numbers of more than {MAX_EXPONENT} digits are not supported")
    return Fraction(decimal)


def check_nesting(value: Json, limit: int, pointer: str) -> None:
    """Refuse a value that is nested too deeply to be handled by recursion.

    Raises:
        GrammarError: more than `limit` arrays and objects one inside the other.
    """
    level = [value]
    depth = 0
    while level:
        level = [
            item
            for each in level
            if isinstance(each, list | dict)
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, list | dict)
        ]
        depth += 1
        if depth > limit:
            raise GrammarError(f"nested too deeply: more than {limit} levels", pointer)


def json_key(value: Json) -> Hashable:
    """A hashable that two values share exactly when they are equal as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, list):
        return ("array", tuple(json_key(item) for item in value))
    if isinstance(value, dict):
        return ("object", frozenset((name, json_key(item)) for name, item in value.items()))
    return ("number", exact(value))
