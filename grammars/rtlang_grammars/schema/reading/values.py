"""The data model of JSON Schema: six types, equality by value, exact numbers.

Python compares some values differently from JSON (`True == 1`, `1 in [True]`), so values are compared by their `json_key`. Numbers are
converted to fractions by their decimal notation: 0.1 is one tenth, not the nearest double.

Source: JSON Schema Core 2020-12, section 4.2 (instance data model and equality).
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
MAX_EXPONENT = 400  # the fraction of a number such as 1e999999 would take too much memory


class JsonType(IntEnum):
    """The primitive types of the data model; an integer is a number."""

    NULL = 0
    BOOLEAN = 1
    NUMBER = 2
    STRING = 3
    ARRAY = 4
    OBJECT = 5


TYPE_NAMES = {
    "null": JsonType.NULL,
    "boolean": JsonType.BOOLEAN,
    "number": JsonType.NUMBER,
    "integer": JsonType.NUMBER,
    "string": JsonType.STRING,
    "array": JsonType.ARRAY,
    "object": JsonType.OBJECT,
}
"""The values of the keyword `type`, with the primitive types they stand for."""


def is_number(value: Json) -> TypeGuard[int | float | Decimal]:
    """Whether a value is a JSON number; a Python `bool` is not."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def type_of(value: Json) -> JsonType:
    """Return the JSON type of a value.

    Raises:
        GrammarError: it is not a JSON value.
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
    raise GrammarError(
        f"a schema must consist of JSON values (dict, list, str, int, float, Decimal, bool, None), not {type(value).__name__}"
    )


def exact(value: int | float | Decimal) -> Fraction:
    """Return a number as a fraction, by its decimal notation: 0.1 is 1/10.

    Raises:
        GrammarError: it is not finite, or has more than about `MAX_EXPONENT` digits.
    """
    if isinstance(value, int):
        if value.bit_length() > 4 * MAX_EXPONENT:
            raise GrammarError(f"numbers of more than {MAX_EXPONENT} digits are not supported")
        return Fraction(value)
    if not math.isfinite(value):
        raise GrammarError(f"numbers must be finite, not {value}")
    decimal = value if isinstance(value, Decimal) else Decimal(repr(value))
    if decimal and abs(decimal.adjusted()) > MAX_EXPONENT:
        raise GrammarError(f"numbers of more than {MAX_EXPONENT} digits are not supported")
    return Fraction(decimal)


def whole(value: Json) -> int:
    """Return an integer that is written with a fraction or an exponent as an `int`: 1.0 is 1."""
    assert is_number(value)
    return value if isinstance(value, int) else int(exact(value))


def check_nesting(value: Json, limit: int, pointer: str) -> None:
    """Refuse a value that is nested too deeply for recursive functions.

    Args:
        limit: allowed nesting of arrays and objects.
        pointer: location of the schema that holds the value, for errors.
    Raises:
        GrammarError: the value is nested more deeply.
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
            raise GrammarError(f"a value is nested too deeply: more than {limit} levels of arrays and objects", pointer)


def json_key(value: Json) -> Hashable:
    """Return a hashable key that two values share if and only if they are equal as JSON values (Core 4.2.2)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, list):
        return ("array", tuple(json_key(item) for item in value))
    if isinstance(value, dict):
        return ("object", frozenset((name, json_key(item)) for name, item in value.items()))
    return ("number", exact(value))
