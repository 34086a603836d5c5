"""The part of a constraint that the arguments of a call match, in each of the styles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rtlang_grammars.formats.description import ArgumentStyle, TaggedArguments, ToolFormat
from rtlang_grammars.formats.python_grammar import python_value
from rtlang_grammars.formats.schemas import JSON_TYPES, types_of, with_definitions
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import MAX_UNORDERED, any_of, members, raw_text, sequence


def argument_part(tool_format: ToolFormat, tool: Tool, style: JsonStyle) -> str | Constraint:
    """The arguments of a call of `tool`.

    Where they are written one by one, only declared parameters can be written, in the order of the style; in any order only if there are
    at most `MAX_UNORDERED`.

    Raises:
        GrammarError: a name cannot be written in this format.
    """
    if tool_format.arguments is ArgumentStyle.JSON:
        return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(tool.schema, ensure_ascii=False), style)
    properties = tool.properties
    for name in properties:
        _check_name(name, tool, tool_format)
    if missing := sorted(tool.required - properties.keys()):
        raise GrammarError(f"tool {tool.name}: required parameter {missing[0]!r} is not declared", "parameters")
    if tool_format.arguments is ArgumentStyle.PYTHON:
        if not all(part.isidentifier() for part in tool.name.split(".")):
            raise GrammarError(f"name = {tool.name!r}: the format {tool_format.name} needs a Python name", "name")
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
    return with_definitions(tool.properties[name], tool.parameters or {}) if tool.strict else True


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
        raise GrammarError(f"tool {tool.name}: parameter {name!r} allows no value", "parameters")
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


def _check_name(name: str, tool: Tool, tool_format: ToolFormat) -> None:
    is_fine = (
        name.isidentifier()
        if tool_format.arguments is ArgumentStyle.PYTHON
        else bool(name) and name.isprintable() and not set(name) & set("<>&\"'= ")
    )
    if not is_fine:
        raise GrammarError(
            f"tool {tool.name}: parameter {name!r}: the format {tool_format.name} cannot write this name", "parameters"
        )
