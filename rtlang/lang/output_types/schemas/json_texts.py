"""Regexes of the JSON texts of a schema, for strings that hold JSON, such as pydantic's `Json[...]`.

The texts are compact or have a space after a comma or colon, with properties in the order of the schema. Strings in them have no escapes.
A schema that refers to itself has no such regex.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rtlang.lang.output_types.schemas.date_patterns import DATE
from rtlang.lang.output_types.schemas.range_patterns import NOTHING, decimals, either, integers, multiples

Resolve = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Follows the `$ref` of a schema."""

_COMMA, _COLON = ", ?", ": ?"
_CHARACTER = r'[^"\\\u0000-\u001f]'
_ESCAPED = r'[^]*["\\\u0000-\u001f][^]*'
_STRING = f'"{_CHARACTER}*"'
_SCALAR = f"(null|true|false|{integers(None, None)}|{_STRING})"
_MAX_DEPTH = 12
_LONG = 1000
"""Characters from which on an upper limit of a text is not enforced: no text inside a string of JSON is so long."""


def _nested(item: str) -> str:
    items, members = f"{item}({_COMMA}{item})*", f"{_STRING}{_COLON}{item}({_COMMA}{_STRING}{_COLON}{item})*"
    return rf"({item}|\[({items})?\]|\{{({members})?\}})"


ANY_JSON = _nested(_nested(_SCALAR))
"""JSON texts of at most two levels of arrays and objects."""


def json_text_pattern(schema: Any, resolve: Resolve, depth: int = 0) -> str:
    """The JSON texts of a schema, of which the regex may leave out some.

    Raises:
        ValueError: there is no such regex; says why.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("a recursive type is not supported inside a JSON string")
    if schema in (True, {}):
        return ANY_JSON
    schema = resolve(schema)

    def inner(each: Any) -> str:
        return json_text_pattern(each, resolve, depth + 1)

    if "anyOf" in schema:
        return either(*map(inner, schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return either(*(_quoted(each) for each in schema.get("enum", [schema.get("const")])))
    match schema.get("type"):
        case "null":
            return "null"
        case "boolean":
            return "(true|false)"
        case "integer" | "number":
            return _number(schema)
        case "string":
            return _string(schema)
        case "array":
            return _array(schema, inner)
        case "object":
            return _object(schema, inner)
    return ANY_JSON


def _quoted(value: Any) -> str:
    return "".join(
        f"\\{each}" if each in "\\^$.|?*+()[]{}/" else each for each in json.dumps(value, ensure_ascii=False)
    )


def _number(schema: Mapping[str, Any]) -> str:
    def bound(name: str) -> Fraction | None:
        return None if name not in schema else Fraction(str(schema[name]))

    low, high = bound("minimum"), bound("maximum")
    above, below = bound("exclusiveMinimum"), bound("exclusiveMaximum")
    is_above = above is not None and (low is None or above >= low)
    is_below = below is not None and (high is None or below <= high)
    low, high = above if is_above else low, below if is_below else high
    step = bound("multipleOf")
    if step is not None:
        first = None if low is None else -(-low // step) + (is_above and low % step == 0)
        last = None if high is None else high // step - (is_below and high % step == 0)
        return either(
            *(_quoted(int(each) if each.denominator == 1 else float(each)) for each in multiples(step, first, last))
        )
    if schema["type"] == "number":
        return decimals(low, high, open_low=is_above, open_high=is_below)
    first = None if low is None else int(low // 1 + 1 if is_above else -(-low // 1))
    last = None if high is None else int(-(-high // 1) - 1 if is_below else high // 1)
    return integers(first, last)


def _string(schema: Mapping[str, Any]) -> str:
    from rtlang_grammars.regular.language import compile_regex

    if schema.get("x-pattern-dialect", "ecma") != "ecma" or "allOf" in schema:
        raise ValueError("a custom pattern is not supported inside a string of JSON")
    pattern = schema.get("pattern", f"^({DATE})$" if schema.get("format") == "date" else None)
    low, high = schema.get("minLength", 0), schema.get("maxLength", "")
    body = f"{_CHARACTER}{{{low},{high}}}" if low or high != "" else f"{_CHARACTER}*"
    if pattern is None:
        return f'"{body}"'
    if not (pattern.startswith("^(") and pattern.endswith(")$")) or "$" in pattern[:-1].replace("[$", "").replace(
        "!#$", ""
    ):
        raise ValueError("this pattern is not supported inside a string of JSON")
    language = compile_regex(pattern[1:-1])
    is_bounded = low > 1 or (low == 1 and language.accepts("")) or (high != "" and high <= _LONG)
    if not is_bounded and language.is_disjoint(compile_regex(_ESCAPED)):
        return f'"{pattern[1:-1]}"'
    return f'"(?=({pattern[1:-1]})"){body}"'


def _array(schema: Mapping[str, Any], inner: Callable[[Any], str]) -> str:
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    first = [inner(each) for each in schema.get("prefixItems", [])]
    rest = NOTHING if high is not None and high <= len(first) else inner(schema.get("items", {}))
    if not first:
        if not high and high is not None:
            return r"\[\]"
        most = "" if high is None else high - 1
        items = f"{rest}({_COMMA}{rest}){{{max(low - 1, 0)},{most}}}"
        return rf"\[{items}\]" if low else rf"\[({items})?\]"
    if low < len(first):
        raise ValueError("items with defaults are not supported inside a string of JSON")
    most = "" if high is None else high - len(first)
    more = f"({_COMMA}{rest}){{{low - len(first)},{most}}}" if rest != NOTHING else ""
    return rf"\[{_COMMA.join(first)}{more}\]"


def _object(schema: Mapping[str, Any], inner: Callable[[Any], str]) -> str:
    required = schema.get("required", ())
    members = [
        (f"{_quoted(name)}{_COLON}{inner(each)}", name in required)
        for name, each in schema.get("properties", {}).items()
    ]
    if members:
        return rf"\{{{_members(members)}\}}"
    others = schema.get("additionalProperties", True)
    if others is False:
        return r"\{\}"
    low, high = schema.get("minProperties", 0), schema.get("maxProperties")
    if low > 1:
        raise ValueError("a minimum number of entries is not supported inside a string of JSON")
    names = schema.get("propertyNames", True)
    name = _STRING if names is True else inner({"type": "string", **names})
    member = f"{name}{_COLON}{inner(others)}"
    most = "" if high is None else high - 1
    items = f"{member}({_COMMA}{member}){{0,{most}}}"
    return rf"\{{{items}\}}" if low else rf"\{{({items})?\}}" if high != 0 else r"\{\}"


def _members(members: list[tuple[str, bool]]) -> str:
    """The texts of members in order; those that are not required may be left out."""
    after = ""  # the text that may follow a member
    first = ""  # the same, if no member is before it
    for member, is_required in reversed(members):
        first = f"{member}{after}" if is_required else f"({member}{after}|{first})" if first else f"({member}{after})?"
        after = f"{_COMMA}{member}{after}" if is_required else f"({_COMMA}{member})?{after}"
    return first
