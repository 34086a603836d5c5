"""Reads details of pydantic's core schemas, and of the JSON schemas that `pydantic_schema` makes from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any


def is_text(found: Mapping[str, Any]) -> bool:
    """Whether a JSON schema, in which names of objects are meant, allows texts."""
    if found.get("type") == "string" or not found.keys() - {"title"}:
        return True
    return any(key in found and all(map(is_text, found[key])) for key in ("anyOf", "allOf"))


def whole_bounds(bounds: tuple[Fraction | None, Fraction | None, bool, bool]) -> tuple[int | None, int | None]:
    """The first and last integer within bounds, as `decimal_bounds` gives them."""
    low, high, open_low, open_high = bounds
    return (
        None if low is None else int(low // 1 + 1 if open_low else -(-low // 1)),
        None if high is None else int(-(-high // 1) - 1 if open_high else high // 1),
    )


def decimal_literal(value: Decimal) -> str:
    """The regex of a decimal without an exponent and without zeros at its end."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", "[.]")


def pattern_with_flags(given: re.Pattern[str]) -> str:
    """The text of a compiled pattern, which begins with its flags."""
    names = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}
    flags = "".join(name for flag, name in names.items() if given.flags & flag)
    text = re.sub(r"^\(\?[aiLmsux]+\)", "", given.pattern)
    return f"(?{flags}){text}" if flags else text


def leaf_of(core: Mapping[str, Any]) -> Mapping[str, Any]:
    """The core schema that reads JSON inside functions and alternatives for other inputs."""
    inside = {"lax-or-strict": "lax_schema", "json-or-python": "json_schema"}
    while (key := inside.get(core["type"], "schema" if core["type"].startswith("function-") else "")) in core:
        core = core[key]
    return core
