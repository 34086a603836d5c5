"""Random tools and calls of them, with what users meet: quotes, line breaks, end tags in strings, nested values, no parameters."""

from __future__ import annotations

import random
from typing import Any

_WORDS = ("city", "days", "unit", "query", "limit", "path", "mode", "kind", "title", "tags")
_TEXTS = (
    "a",
    "New York",
    "“quoted” 'x' \"y\"",
    "back\\slash",
    "tab\there",
    "two\nlines",
    "日本語 😀",
    "</tool_call>",
    "[x](y), z",
    '{"a": 1}',
    "5",
    "true",
    "",
    " lead",
    "null",
    "it's",
    "<b>&amp;</b>",
    "end]",
    "a=b, c(d)",
    "```",
)
_KINDS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": ["integer", "null"]},
    {"enum": ["low", "mid high", "it's"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "properties": {"x": {"type": "number"}, "on": {"type": "boolean"}}, "required": ["x"]},
    {"type": "object"},
    {"$ref": "#/$defs/point"},
)
_DEFINITIONS = {"point": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}}}


def random_tools(
    rng: random.Random, count: int, *, python_names: bool = False, has_free_objects: bool = True
) -> list[dict[str, Any]]:
    """Tools in the form of the OpenAI API; the last has no parameters. `has_free_objects`: some objects may have any members."""
    tools: list[dict[str, Any]] = []
    for i in range(count):
        name = (
            f"{rng.choice(('get', 'set.up', 'find'))}{'_' if python_names else rng.choice('_-')}{rng.choice(_WORDS)}{i}"
        )
        names = rng.sample(_WORDS, rng.randrange(1, 5))
        properties = {each: rng.choice(_KINDS) for each in names}
        if not has_free_objects:
            properties = {key: _KINDS[0] if kind == {"type": "object"} else kind for key, kind in properties.items()}
        parameters = {
            "type": "object",
            "properties": properties,
            "required": sorted(rng.sample(names, rng.randrange(len(names) + 1))),
            "$defs": _DEFINITIONS,
        }
        tools.append({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}})
    tools.append({"type": "function", "function": {"name": "no_parameters"}})
    return tools


def random_call(
    rng: random.Random, tools: list[dict[str, Any]], avoid: tuple[str, ...] = ()
) -> tuple[str, dict[str, Any]]:
    """A call of one of the tools: its arguments in any order, optional ones sometimes missing, no string with a text of `avoid`."""
    function = rng.choice(tools)["function"]
    parameters = function.get("parameters", {})
    properties = parameters.get("properties", {})
    names = [each for each in properties if each in parameters["required"] or rng.random() < 0.6]
    rng.shuffle(names)
    return function["name"], {each: _value(rng, properties[each], avoid) for each in names}


def is_in_declared_order(call: tuple[str, dict[str, Any]], tools: list[dict[str, Any]]) -> bool:
    """Whether the arguments of a call follow the order of its tool's parameters."""
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    names, arguments = list(functions[call[0]].get("parameters", {}).get("properties", {})), list(call[1])
    return arguments == sorted(arguments, key=names.index)


def _value(rng: random.Random, schema: dict[str, Any], avoid: tuple[str, ...]) -> Any:
    if "$ref" in schema:
        return {"lat": round(rng.uniform(-90, 90), 3), "lon": rng.randrange(180)}
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "properties" in schema:
        return {"x": rng.randrange(99) / 4, **({"on": rng.random() < 0.5} if rng.random() < 0.5 else {})}
    match schema["type"]:
        case "string":
            return text(rng, avoid)
        case "integer":
            return rng.randrange(-999, 999)
        case "number":
            return rng.choice((rng.randrange(100), round(rng.uniform(-1000, 1000), 3)))
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [text(rng, avoid) for _ in range(rng.randrange(3))]
        case "object":
            return rng.choice(({}, {"a": [1, None, {"b": True}], "c": text(rng, avoid)}))
    return rng.choice((None, rng.randrange(9)))


def text(rng: random.Random, avoid: tuple[str, ...]) -> str:
    """A text without any of `avoid`."""
    while True:
        found = "".join(rng.sample(_TEXTS, rng.randrange(1, 4)))
        if not any(each in found for each in avoid):
            return found
