"""JSON schemas whose strings contain none of some texts, for formats in which these texts end a call wherever they occur.

As in xgrammar, a string with a pattern or a format is left to it, and the same applies inside values that a schema does not describe. A
text counts as contained if the string contains it, however the string spells it with escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rtlang_grammars.formats.schemas import types_of

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("prefixItems", "allOf", "anyOf", "oneOf")
_SINGLE = (
    "items",
    "additionalProperties",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "then",
    "else",
)
_ELSEWHERE = ("$ref", "allOf", "anyOf", "oneOf")
_ANY = "any value without the excluded texts"


def without_texts(schema: dict[str, Any] | bool, texts: Iterable[str]) -> dict[str, Any] | bool:
    """A schema as a document of its own, without the values that have one of `texts` in a string or in the name of a property."""
    listed = list(texts)
    if not listed:
        return schema
    writer = _Writer("|".join(map(re.escape, listed)))
    found = writer.cleaned(schema)
    known = found.get("$defs", {})
    return {**found, "$defs": {**known, _ANY: writer.any_value()}}


class _Writer:
    def __init__(self, pattern: str) -> None:
        self._unwanted = {"type": "string", "pattern": pattern}
        self._reference = {"$ref": f"#/$defs/{_ANY.replace(' ', '%20')}"}

    def any_value(self) -> dict[str, Any]:
        """The schema of values that are not described."""
        scalars = [{"type": ["null", "boolean", "number"]}, {"type": "string", "not": self._unwanted}]
        names = {"propertyNames": {"not": self._unwanted}}
        nested = [
            {"type": "array", "items": self._reference},
            {"type": "object", "additionalProperties": self._reference, **names},
        ]
        return {"anyOf": [*scalars, *nested]}

    def cleaned(self, schema: Any) -> dict[str, Any]:
        """A schema, and those in it, without unwanted strings."""
        if not isinstance(schema, Mapping):
            return {"not": {}} if schema is False else self._reference
        found = dict(schema)
        for key in _MAPS:
            if isinstance(schema.get(key), Mapping):
                found[key] = {name: self.cleaned(each) for name, each in schema[key].items()}
        for key in _LISTS:
            if isinstance(schema.get(key), list):
                found[key] = [self.cleaned(each) for each in schema[key]]
        for key in _SINGLE:
            if isinstance(schema.get(key), Mapping) or schema.get(key) is True:
                found[key] = self.cleaned(schema[key])
        if not any(key in schema for key in _ELSEWHERE):
            self._restrict(found, types_of({**schema, "$defs": {}}))
        return found

    def _restrict(self, schema: dict[str, Any], types: frozenset[str]) -> None:
        """Restrict the strings, items and properties that a schema does not describe."""
        if "string" in types and not {"pattern", "format"} & schema.keys():
            schema["allOf"] = [{"not": self._unwanted}]
        if "array" in types and "items" not in schema:
            schema["items"] = self._reference
        if "object" in types and schema.setdefault("additionalProperties", self._reference) is not False:
            schema.setdefault("propertyNames", {"not": self._unwanted})
