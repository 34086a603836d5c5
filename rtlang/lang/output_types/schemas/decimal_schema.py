"""JSON schemas of decimals within bounds, of limited digits, and of multiples."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Any

DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"

_MAX_PLACES = 4
"""Decimal places allowed if a type only bounds the number of digits, in which case each place leaves one digit less before the point."""

_MAX_MULTIPLE = 10**15
_MAX_EXPONENT = 300
"""Largest exponent of powers of ten in bounds and steps: larger values overflow the floats that JSON numbers are parsed as."""


def decimal_bounds(schema: Mapping[str, Any]) -> tuple[Fraction | None, Fraction | None, bool, bool]:
    """The bounds of a core schema of numbers, and whether each is left out; None: no bound."""

    def exact(key: str) -> Fraction | None:
        value = schema.get(key)
        return None if value is None or value in (float("inf"), float("-inf")) else Fraction(str(value))

    low, high, above, below = map(exact, ("ge", "le", "gt", "lt"))
    open_low = above is not None and (low is None or above >= low)
    open_high = below is not None and (high is None or below <= high)
    return above if open_low else low, below if open_high else high, open_low, open_high


def decimal_schema(schema: Any) -> dict[str, Any]:
    """The schema of a decimal: a number within the bounds of the core schema or, without bounds, also a string."""
    names = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    found: dict[str, Any] = {"type": "number"}
    found |= {keyword: float(schema[own]) for own, keyword in names.items() if schema.get(own) is not None}
    step, digits, places = schema.get("multiple_of"), schema.get("max_digits"), schema.get("decimal_places")
    if digits is None and places is None:
        if step is not None:  # remainders are computed with the 28 digits of a decimal context
            limits = {"minimum": -_MAX_MULTIPLE, "maximum": _MAX_MULTIPLE} | found
            return limits | {"multipleOf": float(step)}
        return found if len(found) > 1 else {"anyOf": [found, {"type": "string", "pattern": DECIMAL}]}
    if digits is None:
        return _with_places(found, step, places, None)
    if places is not None:  # decimal places count as digits even if they are zeros
        made = _with_places(found, step, min(places, digits), max(digits - places, 0))
        if digits > places:
            return made
        # The 0 of 0.25 does not count as a digit, but a lone 0 counts as one before the point.
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
