"""The options that servers have for JSON, as styles and schemas of this library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.constraint import JsonStyle, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits

_BLANKS = ("", " ", "  ", "\t", "\n", *("\n" + blank * 80 for blank in " \t"))
"""Blanks of the style FREE that tell whether a pattern has all of them."""
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas")
_PARTS = (
    *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "contentSchema"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
)


def style_of(whitespace_pattern: str | None, *, disable_any_whitespace: bool = False) -> JsonStyle:
    """The style whose blanks obey the options of a server.

    Args:
        whitespace_pattern: regular expression of the blanks between two tokens of JSON. A pattern that has all blanks of the default style
            means that style; any other that allows none means none, which obeys it. None: the default style.
        disable_any_whitespace: no blanks at all.
    Raises:
        GrammarError: the pattern is malformed, or asks for blanks everywhere.
    """
    if whitespace_pattern is None:
        return JsonStyle(Whitespace.COMPACT if disable_any_whitespace else Whitespace.FREE)
    budget = Budget(Limits())
    try:
        language = compile_regex(whitespace_pattern, dialect="python", budget=budget)
    except GrammarError as error:
        raise GrammarError(f"whitespace_pattern = {whitespace_pattern!r}: {error.reason}", error.location) from None
    if not language.accepts("", budget):
        raise GrammarError(
            f"whitespace_pattern = {whitespace_pattern!r}: expected a pattern that the empty text matches, "
            "such as '' (no blanks) or '[ \\t\\n\\r]*' (as usual)"
        )
    has_all = all(language.accepts(blanks, budget) for blanks in _BLANKS)
    is_free = has_all and not disable_any_whitespace
    return JsonStyle(Whitespace.FREE if is_free else Whitespace.COMPACT)


def without_additional_properties(schema: str | Mapping[str, Any]) -> dict[str, Any] | bool:
    """A schema whose objects have no properties but the declared ones, as `disable_additional_properties` of vLLM asks for.

    It applies to every object with `properties` or `patternProperties` that says nothing about others.

    Raises:
        GrammarError: the schema is not JSON, or no schema.
    """
    try:
        plain = json.loads(schema) if isinstance(schema, str) else schema
        if not isinstance(plain, Mapping | bool):
            raise GrammarError("expected a JSON schema (a map or a boolean)", "#")
        closed = _closed(plain)
    except (ValueError, RecursionError) as error:
        if isinstance(error, GrammarError):
            raise
        raise GrammarError(f"expected a JSON schema: {error}", "#") from None
    assert isinstance(closed, dict | bool)
    return closed


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = dict(schema)
    for key in _PARTS:
        if isinstance(schema.get(key), Mapping | list):
            found[key] = _closed(schema[key])
    for key in _MAPS:
        if isinstance(schema.get(key), Mapping):
            found[key] = {name: _closed(each) for name, each in schema[key].items()}
    if any(isinstance(schema.get(key), Mapping) for key in ("properties", "patternProperties")):
        found.setdefault("additionalProperties", False)
    return found
