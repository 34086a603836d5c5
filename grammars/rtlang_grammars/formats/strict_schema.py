"""Closes a JSON schema as the strict mode of the OpenAI API defines it: no undeclared names, and every declared one is required.

`closed_schema` walks the places of a schema whose values appear in an output: `properties`, `items`, `prefixItems`, `anyOf`, `oneOf`,
`allOf`, `$ref` and the targets of references. Each object there gets `additionalProperties: false` and all of its properties in `required`,
as the clients of that API do for pydantic classes. A place where other values stay possible is refused: an open object, an array without
items, no type at all, or keywords of which each would have to know the names that another one declares.

Source: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". Unlike there, the value may be of any type and
`oneOf` and all keywords about numbers, texts and lengths are allowed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from rtlang_grammars.spec.errors import GrammarError

_OPEN = ("patternProperties", "unevaluatedProperties")
_PARTS = ("$ref", "anyOf", "oneOf", "allOf", "if", "then", "else", "not", "dependentSchemas", "dependencies")
"""Keywords whose schemas are about the value itself, not about a part of it."""
_ASSERTIONS = frozenset(
    ("required", "minProperties", "maxProperties", "dependentRequired", "title", "description", "$comment")
)
"""Keywords of a schema that declares no name."""


def closed_schema(schema: Any) -> Any:
    """A copy of a schema in which every object is closed and has all of its properties.

    Raises:
        GrammarError: a place cannot be closed; `location` is its JSON pointer.
    """
    try:
        document = copy.deepcopy(schema)
    except RecursionError:
        raise GrammarError("nested too deeply", "#") from None
    waiting: list[tuple[str, Any]] = [("#", document)]
    known: set[int] = set()  # places whose parts are on the list
    while waiting:
        pointer, place = waiting.pop()
        if isinstance(place, dict):
            if id(place) in known:
                continue
            known.add(id(place))
        waiting += _close(pointer, place, document)
    return document


def _close(pointer: str, place: Any, document: Any) -> Iterator[tuple[str, Any]]:
    """Close one place; returns the places inside it."""
    if place is False:
        return
    if not isinstance(place, dict):
        raise GrammarError("expected a schema with a type", pointer)
    types = place.get("type")
    named = {each for each in (types if isinstance(types, list) else [types]) if isinstance(each, str)}
    if named and named.isdisjoint(("object", "array")):
        return  # no value has parts
    if "$dynamicRef" in place or "$recursiveRef" in place:
        raise GrammarError("only $ref is supported in a strict schema", pointer)
    parts = [key for key in _PARTS if key in place]
    if _declares(place):
        for key in parts:
            for at, part in _inside(pointer, place, key):
                if not (isinstance(part, Mapping) and part.keys() <= _ASSERTIONS) and not isinstance(part, bool):
                    raise GrammarError(f"not beside properties in a strict schema: {key} may declare other names", at)
        yield from _closed_object(pointer, place)
    elif parts:
        if len(parts) > 1 or parts[0] not in ("$ref", "anyOf", "oneOf", "allOf"):
            raise GrammarError(f"expected one of $ref, anyOf and oneOf, not {' and '.join(parts)}", pointer)
        (key,) = parts
        if key == "allOf" and not (isinstance(place[key], list) and len(place[key]) == 1):
            raise GrammarError("expected one schema: each would exclude the names of the others", f"{pointer}/allOf")
        yield from [_target(pointer, place, document)] if key == "$ref" else _inside(pointer, place, key)
    elif "enum" not in place and "const" not in place:
        if not named:
            raise GrammarError("expected a type", pointer)
        if "object" in named:
            yield from _closed_object(pointer, place)
    if ("array" in named or "items" in place or "prefixItems" in place) and not ("enum" in place or "const" in place):
        yield from _items(pointer, place)


def _declares(place: Mapping[str, Any]) -> bool:
    return "properties" in place or "additionalProperties" in place or any(key in place for key in _OPEN)


def _closed_object(pointer: str, place: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    properties = place.setdefault("properties", {})
    required = place.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return  # the compilation of the schema says what is wrong
    for key in _OPEN:
        if place.get(key, False) not in (False, {}):
            raise GrammarError("a strict schema names all properties", f"{pointer}/{key}")
    if place.setdefault("additionalProperties", False) is not False:
        raise GrammarError("expected false: a strict schema names all properties", f"{pointer}/additionalProperties")
    place["required"] = [
        *properties,
        *(name for name in required if not isinstance(name, str) or name not in properties),
    ]
    for name, part in properties.items():
        yield f"{pointer}/properties/{_escaped(name)}", part


def _items(pointer: str, place: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The places of the items of an array."""
    yield from _inside(pointer, place, "prefixItems")
    yield from _inside(pointer, place, "items")
    if isinstance(place.get("items"), list):  # of older drafts
        if "additionalItems" not in place:
            raise GrammarError("expected additionalItems: a strict schema says what all items are", pointer)
        yield from _inside(pointer, place, "additionalItems")
    elif "items" not in place:
        raise GrammarError("expected items: a strict schema says what all items are", pointer)


def _inside(pointer: str, place: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """The schemas of a keyword: one, a list or a map of them."""
    value = place.get(key)
    if isinstance(value, list):
        yield from ((f"{pointer}/{key}/{i}", each) for i, each in enumerate(value))
    elif key in ("dependentSchemas", "dependencies") and isinstance(value, dict):
        yield from ((f"{pointer}/{key}/{_escaped(name)}", each) for name, each in value.items())
    elif key == "$ref":
        yield f"{pointer}/{key}", {"$ref": value}
    elif value is not None:
        yield f"{pointer}/{key}", value


def _target(pointer: str, place: Mapping[str, Any], document: Any) -> tuple[str, Any]:
    """The place that a reference names."""
    reference = place["$ref"]
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise GrammarError("expected a reference into this schema, such as #/$defs/name", f"{pointer}/$ref")
    found = document
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isascii() and key.isdecimal() and len(key) < 9 and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            raise GrammarError(f"{reference[:200]!r} names no place of this schema", f"{pointer}/$ref")
    return reference, found


def _escaped(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
