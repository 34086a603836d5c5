"""JSON schemas of pydantic types that are as strict as the validators of pydantic.

The schemas of pydantic are looser than its validators for some types: any string is a Decimal, any URI a URL, a duration has any number
of digits, and a datetime without offset has a format that requires one. Text that matches such a schema may fail to validate. Fractions
of a second have at most the six digits that a value keeps.

Objects are closed: pydantic ignores undeclared keys by default, so that writing them only costs tokens. With `extra="allow"` they are open.
"""

from __future__ import annotations

import functools
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from rtlang.lang.output_types.date_patterns import DATE, TIME

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema

# URLs that the URL types accept. A host whose last label starts with a digit is parsed as an IP address, and "--" marks an encoded name.
_LABELS = r"([A-Za-z0-9]+(-[A-Za-z0-9]+)*\.)*"
_NAME = f"{_LABELS}[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_USER = "([A-Za-z0-9._~-]+(:[A-Za-z0-9._~-]*)?@)?"
_PORT = "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?"
_PLACE = rf"{_USER}({_NAME}|{_BYTE}(\.{_BYTE}){{3}}){_PORT}([/?#][!-~]*)?"
_FILE = f"file://({_NAME})?/[!-~]*"
_SPECIAL = "https?|wss?|ftp"  # schemes that require a host
ANY_URL = f"^(({_SPECIAL})://{_PLACE}|{_FILE}|(?!({_SPECIAL}|file):)[a-z][a-z0-9+.-]*:(//{_PLACE}|[A-Za-z0-9+][!-~]*))$"
_MICROS = r"(\.[0-9]{1,6})?"
_OFFSET = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_OFFSETS = {"naive": "", "aware": _OFFSET, None: f"{_OFFSET}?"}  # by the constraint of the type
_SECONDS = f"[0-9]{{1,6}}{_MICROS}S"
_CLOCK = f"T({_SECONDS}|[0-9]{{1,5}}M({_SECONDS})?|[0-9]{{1,4}}H([0-9]{{1,5}}M)?({_SECONDS})?)"
DURATION = f"^P([0-9]{{1,6}}D({_CLOCK})?|{_CLOCK})$"
DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"

_MAX_PLACES = 4
"""Decimal places allowed if a type only bounds the number of digits, in which case each place leaves one digit less before the point."""

_MAX_EXPONENT = 300
"""Largest exponent of powers of ten in bounds and steps: larger values overflow the floats that JSON numbers are parsed as."""


@functools.cache
def generator() -> type[GenerateJsonSchema]:
    """The `schema_generator` for pydantic's `json_schema` functions."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def model_schema(self, schema: Any) -> dict[str, Any]:
            found = super().model_schema(schema)
            return found if schema.get("root_model") else _closed(found)

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            return _closed(super().dataclass_schema(schema))

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
            return _closed(super().typed_dict_schema(schema))

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            return _decimal_schema(schema)

        def url_schema(self, schema: Any) -> dict[str, Any]:
            return super().url_schema(schema) | {"pattern": _url_pattern(schema.get("allowed_schemes"))}

        def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
            return super().multi_host_url_schema(schema) | {"pattern": _url_pattern(schema.get("allowed_schemes"))}

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            offset = _OFFSETS.get(schema.get("tz_constraint"), _OFFSET)
            return {"type": "string", "pattern": f"^{DATE}T{TIME}{_MICROS}{offset}$"}

        def time_schema(self, schema: Any) -> dict[str, Any]:
            offset = _OFFSETS.get(schema.get("tz_constraint"), _OFFSET)
            return {"type": "string", "pattern": f"^{TIME}{_MICROS}{offset}$"}

        def timedelta_schema(self, schema: Any) -> dict[str, Any]:
            found = super().timedelta_schema(schema)
            return found if found.get("type") != "string" else {"type": "string", "pattern": DURATION}

    return Generator


def _closed(found: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object without undeclared keys, unless its type allows them."""
    if found.get("type") == "object" and "additionalProperties" not in found:
        return found | {"additionalProperties": False}
    return found


def _decimal_schema(schema: Any) -> dict[str, Any]:
    """The schema of a decimal: a number within the bounds of the core schema or, without bounds, also a string."""
    names = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    found: dict[str, Any] = {"type": "number"}
    found |= {keyword: float(schema[own]) for own, keyword in names.items() if schema.get(own) is not None}
    step, digits, places = schema.get("multiple_of"), schema.get("max_digits"), schema.get("decimal_places")
    if digits is None and places is None:
        if step is not None:
            return found | {"multipleOf": float(step)}
        return found if len(found) > 1 else {"anyOf": [found, {"type": "string", "pattern": DECIMAL}]}
    if digits is None:
        return _with_places(found, step, places, None)
    if places is not None:  # decimal places count as digits even if they are zeros
        made = _with_places(found, step, min(places, digits), max(digits - places, 0))
        if digits > places:
            return made
        # The 0 of 0.25 does not count as a digit, but that of 0 counts as one before the point.
        above = made | {"exclusiveMinimum": max(made["exclusiveMinimum"], 0)}
        below = made | {"exclusiveMaximum": min(made["exclusiveMaximum"], 0)}
        return {"anyOf": [above, below]}
    cases = [_with_places(found, step, each, digits - each) for each in range(min(digits, _MAX_PLACES) + 1)]
    return {"anyOf": cases}


def _with_places(found: dict[str, Any], step: Decimal | float | None, places: int, whole: int | None) -> dict[str, Any]:
    """`found`, narrowed to numbers with at most `places` digits after the point and `whole` before it (None: any number)."""
    made = dict(found)
    smallest = Fraction(1, 10 ** min(places, _MAX_EXPONENT))
    if step is not None:
        own = Fraction(str(step))  # for a float, its value as written in decimal
        smallest = Fraction(lcm(smallest.numerator, own.numerator), gcd(smallest.denominator, own.denominator))
    made["multipleOf"] = int(smallest) if smallest.denominator == 1 else float(smallest)
    if whole is not None and whole <= _MAX_EXPONENT:
        bound = 10**whole
        made["exclusiveMaximum"] = min(made.get("exclusiveMaximum", bound), bound)
        made["exclusiveMinimum"] = max(made.get("exclusiveMinimum", -bound), -bound)
    return made


def _url_pattern(schemes: list[str] | None) -> str:
    """The URLs accepted by URL types with these schemes, or with any scheme."""
    if not schemes:
        return ANY_URL
    ways = [_FILE] if "file" in schemes else []
    others = [_escaped(scheme) for scheme in schemes if scheme != "file"]
    if others:
        ways.append(f"({'|'.join(others)})://{_PLACE}")
    return f"^({'|'.join(ways)})$"


def _escaped(scheme: str) -> str:
    return "".join(f"[{letter}]" if letter in "+.-" else letter for letter in scheme)
