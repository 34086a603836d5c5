"""The part of a constraint that the arguments of a call match, in each of the styles.

`call_arguments` describes the part, and `argument_part` writes it out where the constraint is compiled, with `reading_of` for its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Any

from rtlang_grammars.formats.description import ArgumentStyle, TaggedArguments, ToolFormat
from rtlang_grammars.formats.python_grammar import python_value
from rtlang_grammars.formats.schemas import JSON_TYPES, types_of, with_definitions
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.structures import (
    MAX_UNORDERED,
    Arguments,
    Notation,
    any_of,
    arguments,
    members,
    raw_text,
    sequence,
)

_COUPLING = frozenset(
    (
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const"),
        *("minProperties", "maxProperties", "propertyNames", "patternProperties"),
        *("dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
    )
)
"""Keywords beside `properties` and `required` by which a schema says more about an object than about each of its parameters."""
_PLAIN = frozenset(
    ("type", "title", "description", "default", "examples", "deprecated", "$defs", "definitions", "$schema")
)


def call_arguments(tool_format: ToolFormat, tool: Tool, style: JsonStyle, *, is_forced: bool = False) -> Constraint:
    """The arguments of a call of `tool`; see `structures.Arguments`."""
    around = tool_format.tagged or TaggedArguments("", "", "", ())
    notation = Notation(
        tool_format.name,
        tool_format.arguments.name.lower(),
        around.before_name,
        around.before_value,
        around.behind_value,
        tuple(around.excludes),
    )
    return arguments(tool.name, tool.parameters, notation, style, is_forced=is_forced)


def reading_of(part: Arguments) -> tuple[ToolFormat, Tool]:
    """The format, with the style of the arguments, and the tool that read the arguments of a part.

    Raises:
        GrammarError: the tool is malformed.
    """
    written = part.notation
    around = TaggedArguments(written.before_name, written.before_value, written.behind_value, written.excludes)
    style = ArgumentStyle[written.style.upper()]
    tool_format = ToolFormat(written.format, (), arguments=style, tagged=around)
    parameters = None if part.parameters is None else parsed(part.parameters)
    return tool_format, Tool(part.name, parameters)


def leaves_checks(tool_format: ToolFormat, tool: Tool) -> str | None:
    """A keyword or parameter that `argument_part` cannot enforce, even if it enforces the schema of each parameter; None if there is none.

    Where parameters are written one by one, keywords about the whole object are not enforced. A value without quotes that may be a string
    or something else is read by its form, so that the text of an allowed string may be read as a number that is not.
    """
    if tool_format.arguments is ArgumentStyle.JSON:
        return None
    coupling = sorted(_COUPLING & (tool.parameters or {}).keys())
    if coupling:
        return coupling[0]
    if tool_format.arguments is ArgumentStyle.PYTHON:
        return None
    return next((f"properties/{name}" for name in tool.properties if _reads_otherwise(_schema(tool, name))), None)


def _reads_otherwise(schema: dict[str, Any] | bool) -> bool:
    types = types_of(schema)
    return "string" in types and len(types) > 1 and not _allows_whole_types(schema)


def _allows_whole_types(schema: object) -> bool:
    """Whether a schema allows every value of the types that it allows."""
    if not isinstance(schema, Mapping):
        return isinstance(schema, bool)
    inner = [key for key in ("anyOf", "oneOf") if key in schema]
    branches = schema[inner[0]] if len(inner) == 1 else []
    is_plain = schema.keys() - set(inner) <= _PLAIN and len(inner) < 2 and not (inner and "type" in schema)
    return is_plain and isinstance(branches, list) and all(map(_allows_whole_types, branches))


def argument_part(tool_format: ToolFormat, tool: Tool, style: JsonStyle) -> str | Constraint:
    """The arguments of a call of `tool`.

    Where they are written one by one, only declared parameters can be written, in the order of the style; in any order only if there are
    at most `MAX_UNORDERED`. Optional ones whose name cannot be written in this format are left out.

    Raises:
        GrammarError: the name of a required parameter cannot be written in this format.
    """
    if tool_format.arguments is ArgumentStyle.JSON:
        return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(tool.schema, ensure_ascii=False), style)
    properties = [name for name in tool.properties if _is_writable(name, tool_format)]
    for name in sorted(tool.required.difference(properties)):
        if name not in tool.properties:
            raise GrammarError(f"required parameter {name!r} is not declared", "#/required")
        raise GrammarError(f"parameter {name!r}: the format {tool_format.name} cannot write this name", "#/properties")
    if tool_format.arguments is ArgumentStyle.PYTHON:
        each = [(sequence(f"{name}=", python_value(_schema(tool, name), style)), name) for name in properties]
        return _members(each, tool, ", ", style)
    around = tool_format.tagged
    assert around is not None
    each = [
        (
            sequence(
                around.before_name, name, around.before_value, _raw(tool, name, around, style), around.behind_value
            ),
            name,
        )
        for name in properties
    ]
    return _members(each, tool, "", style)


def _members(parts: Iterable[tuple[Constraint, str]], tool: Tool, separator: str, style: JsonStyle) -> str | Constraint:
    listed = [(part, name in tool.required) for part, name in parts]
    order = style.order if len(listed) <= MAX_UNORDERED else PropertyOrder.DECLARED
    if order is PropertyOrder.REQUIRED_FIRST:
        listed.sort(key=lambda each: not each[1])
    return members(listed, separator, order) if listed else ""


def _schema(tool: Tool, name: str) -> dict[str, Any] | bool:
    """The schema of one parameter, as a document of its own."""
    return with_definitions(tool.properties[name], tool.parameters or {})


def _raw(tool: Tool, name: str, around: TaggedArguments, style: JsonStyle) -> str | Constraint:
    """A value between tags: strings without quotes, others as JSON or as Python writes them."""
    schema = _schema(tool, name)
    types = types_of(schema)
    parts: list[str | Constraint] = []
    if "string" in types:
        parts.append(raw_text(_only(schema, types & {"string"}), excludes=around.excludes))
    if others := types - {"string"}:
        parts.append(
            Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(_only(schema, others), ensure_ascii=False), style)
        )
    if "boolean" in types and schema_allows(schema, True, False):
        parts += ["True", "False"]
    if "null" in types:
        parts.append("None")
    if not parts:
        raise GrammarError(f"parameter {name!r} allows no value", "#/properties")
    return any_of(*parts)


def schema_allows(schema: dict[str, Any] | bool, *values: bool) -> bool:
    """Whether a schema of booleans does not tell them apart."""
    return isinstance(schema, bool) or not ({"enum", "const"} & schema.keys())


def _only(schema: dict[str, Any] | bool, types: frozenset[str]) -> dict[str, Any] | bool:
    """The values of a schema that have some types."""
    if types == JSON_TYPES:
        return schema
    wanted: dict[str, Any] = {"type": sorted(types)}
    if isinstance(schema, bool):
        return wanted
    if schema.keys().isdisjoint({"$ref", "allOf"}) and "type" in schema:
        return {**schema, "type": sorted(types)}
    return {**{key: schema[key] for key in ("$defs", "definitions") if key in schema}, "allOf": [schema, wanted]}


def _is_writable(name: str, tool_format: ToolFormat) -> bool:
    """Whether the name of a parameter can be written in a format."""
    if tool_format.arguments is ArgumentStyle.PYTHON:
        return name.isidentifier() and not iskeyword(name)
    return bool(name) and name.isprintable() and not set(name) & set("<>&\"'= ")
