"""Tools with what the tools of real servers have: unions told apart by a constant, references, formats, patterns, names with dashes."""

from __future__ import annotations

from typing import Any

_TEXT = {
    "type": "object",
    "properties": {"kind": {"const": "text"}, "value": {"type": "string", "maxLength": 20}},
    "required": ["kind", "value"],
    "additionalProperties": False,
}
_LINK = {
    "type": "object",
    "properties": {"kind": {"const": "link"}, "target": {"type": "string", "format": "uri"}},
    "required": ["kind", "target"],
    "additionalProperties": False,
}
_BLOCK = {
    "type": "object",
    "properties": {
        "spans": {"type": "array", "items": {"oneOf": [_TEXT, _LINK]}, "maxItems": 3},
        "children": {"type": "array", "items": {"$ref": "#/$defs/block"}, "maxItems": 2},
    },
    "required": ["spans"],
}


def tool(name: str, properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A tool in the form of the OpenAI API."""
    parameters = {"type": "object", "properties": properties, "required": list(required), **more}
    return {
        "type": "function",
        "function": {"name": name, "description": f"The tool {name}.", "parameters": parameters},
    }


REALISTIC = [
    tool("add-block", {"page_id": {"type": "string", "format": "uuid"}, "block": {"$ref": "#/$defs/block"}}, ("page_id", "block"),
         **{"$defs": {"block": _BLOCK}}),
    tool("resize", {"width": {"type": "number", "exclusiveMinimum": 0}, "height": {"type": "integer", "minimum": 1, "maximum": 9999}},
         ("width", "height"), additionalProperties=False, **{"$schema": "http://json-schema.org/draft-07/schema#"}),
    tool("search", {
        "query": {"type": "string", "minLength": 1},
        "sites": {"type": "array", "items": {"type": "string", "pattern": "^(?:[a-z0-9]{1,8}\\.)+[a-z]{2,4}$"}, "minItems": 1},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}, "uniqueItems": True, "maxItems": 3},
        "limit": {"type": "integer", "format": "int32", "default": 5},
        "sort": {"anyOf": [{"type": "string", "enum": ["newest", "best"]}, {"type": "null"}], "default": None},
    }, ("query",)),
    tool("set_headers", {"headers": {"type": "object", "propertyNames": {"type": "string", "maxLength": 6},
                                     "additionalProperties": {"type": "string", "maxLength": 8}, "maxProperties": 3}}),
    tool("run", {"arguments": {"type": "object", "additionalProperties": {}}, "wait": {"type": "boolean"}}),
    tool("close", {}),
]  # fmt: skip
