"""The part of a constraint that the arguments of a call match, in each of the styles.

`call_arguments` describes the part, and `argument_part` writes it out where the constraint is compiled, with `reading_of` for its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Any

from rtlang_grammars.formats.arguments.literal_grammar import is_bare_key, literal_value, unenforced_keyword
from rtlang_grammars.formats.arguments.nested_grammar import nested_value
from rtlang_grammars.formats.description import CDATA, ArgumentStyle, Literals, TaggedArguments, ToolFormat
from rtlang_grammars.formats.schemas import narrowed, types_of, with_definitions
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.structure_parts import Arguments, Notation
from rtlang_grammars.spec.structures import MAX_UNORDERED, any_of, arguments, members, raw_text, repeat, sequence

_COUPLING = frozenset(
    (
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const"),
        *("minProperties", "maxProperties", "propertyNames", "patternProperties"),
        *("dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
    )
)
"""Keywords beside `properties` and `required` by which a schema says more about an object than about each of its parameters."""
_ANY_NAME = "[a-zA-Z_][a-zA-Z0-9_]*"
"""The names of arguments that no schema declares, as xgrammar allows them."""
_PLAIN = frozenset(
    ("type", "title", "description", "default", "examples", "deprecated", "$defs", "definitions", "$schema")
)


def call_arguments(tool_format: ToolFormat, tool: Tool, style: JsonStyle, *, is_forced: bool = False) -> Constraint:
    """The arguments of a call of `tool`; see `structure_parts.Arguments`."""
    around = tool_format.tagged or TaggedArguments("", "", "", ())
    notation = Notation(
        tool_format.name,
        tool_format.arguments.name.lower(),
        around.before_name,
        around.before_value,
        around.behind_value,
        tuple(around.excludes),
        around.item,
        _literal_texts(tool_format.literals) if tool_format.literals != Literals() else (),
        around.blanks,
        around.cdata,
    )
    return arguments(tool.name, tool.parameters, notation, style, is_forced=is_forced)


def _literal_texts(literals: Literals) -> tuple[str, ...]:
    return (literals.assign, literals.separator, literals.colon, *literals.constants, literals.quote)


def reading_of(part: Arguments) -> tuple[ToolFormat, Tool]:
    """The format, with the style of the arguments, and the tool that read the arguments of a part.

    Raises:
        GrammarError: the tool is malformed.
    """
    written = part.notation
    around = TaggedArguments(
        written.before_name,
        written.before_value,
        written.behind_value,
        written.excludes,
        written.item,
        written.blanks,
        written.cdata,
    )
    literals = Literals()
    if written.literals:
        assign, separator, colon, true, false, null, quote = written.literals
        literals = Literals(assign, separator, colon, (true, false, null), quote)
    style = ArgumentStyle[written.style.upper()]
    tool_format = ToolFormat(written.format, (), arguments=style, tagged=around, literals=literals)
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
    match tool_format.arguments:
        case ArgumentStyle.PYTHON:
            return None
        case ArgumentStyle.MARKED:
            found = (unenforced_keyword(_schema(tool, name), tool_format.literals) for name in tool.properties)
            return next((each for each in found if each is not None), None)
    if tool_format.tagged is not None and (tool_format.tagged.has_types or tool_format.tagged.blanks):
        return None  # in structural tags the text is asked for, and the host reads it
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
    if tool_format.arguments in (ArgumentStyle.PYTHON, ArgumentStyle.MARKED):
        literals = tool_format.literals
        excludes = tool_format.tagged.excludes if tool_format.tagged is not None else ()
        values = {name: literal_value(_schema(tool, name), style, literals, excludes) for name in properties}
        each = [(sequence(name, literals.assign, values[name]), name) for name in properties]
        return _members(each, tool, literals.separator, style)
    around = tool_format.tagged
    assert around is not None
    each = [(_tagged_argument(tool, name, around, style), name) for name in properties]
    declared = _members(each, tool, "", style)
    if not around.blanks:
        return declared
    others = _other_arguments(tool, around, style)
    return sequence(declared, *others, Constraint(ConstraintKind.REGEX, around.blanks))


def _other_arguments(tool: Tool, around: TaggedArguments, style: JsonStyle) -> list[Constraint]:
    """The arguments that a schema allows besides those that it declares, one after the other."""
    schema = (tool.parameters or {}).get("additionalProperties", False)
    if schema is False:
        return []
    if around.item:
        raise GrammarError("additionalProperties: this format repeats the names of arguments; declare them", "#")
    declared = "|".join(map(re.escape, tool.properties))
    name = Constraint(ConstraintKind.REGEX, (f"(?!(?:{declared})$)" if declared else "") + _ANY_NAME)
    other = Tool(tool.name, {**(tool.parameters or {}), "properties": {"": schema}})
    return [repeat(_tagged_argument(other, "", around, style, name))]


def _members(parts: Iterable[tuple[Constraint, str]], tool: Tool, separator: str, style: JsonStyle) -> str | Constraint:
    listed = [(part, name in tool.required) for part, name in parts]
    order = style.order if len(listed) <= MAX_UNORDERED else PropertyOrder.DECLARED
    if order is PropertyOrder.REQUIRED_FIRST:
        listed.sort(key=lambda each: not each[1])
    return members(listed, separator, order) if listed else ""


def _schema(tool: Tool, name: str) -> dict[str, Any] | bool:
    """The schema of one parameter, as a document of its own."""
    return with_definitions(tool.properties[name], tool.parameters or {})


def _tagged_argument(
    tool: Tool, name: str, around: TaggedArguments, style: JsonStyle, spelled: Constraint | None = None
) -> Constraint:
    """A name and its value between tags; `spelled`: the names that have this schema."""
    if around.blanks and not around.item:
        return _spaced_argument(tool, name, around, style, name if spelled is None else spelled)
    schema, end = _schema(tool, name), around.value_end(name)
    types = types_of(schema)
    if not types:
        raise GrammarError(f"parameter {name!r} allows no value", "#/properties")
    if not around.has_types:
        return sequence(around.before_name, name, around.before_value, _raw(schema, around, style), end)
    values: dict[str, list[str]] = {}
    for each in sorted(types):
        values.setdefault(around.value_begin(each), []).append(each)
    parts = [sequence(begin, _of_types(schema, kinds, around, style)) for begin, kinds in values.items()]
    return sequence(around.before_name, name, any_of(*parts), end)


def _spaced_argument(
    tool: Tool, name: str, around: TaggedArguments, style: JsonStyle, spelled: str | Constraint
) -> Constraint:
    """A name and its value between tags, with free blanks."""
    schema, blanks = _schema(tool, name), Constraint(ConstraintKind.REGEX, around.blanks)
    types = types_of(schema)
    if not types:
        raise GrammarError(f"parameter {name!r} allows no value", "#/properties")
    parts = []
    for kinds in ({"string"} & types, types - {"string"}):
        values: dict[str, list[str]] = {}
        for each in sorted(kinds):
            values.setdefault(around.value_begin(each), []).append(each)
        for begin, same in values.items():
            value = _of_types(schema, same, around, style)
            is_text = kinds == {"string"}
            parts.append(sequence(*_spaced(begin, blanks), value if is_text else sequence(blanks, value, blanks)))
    return sequence(blanks, around.before_name, spelled, any_of(*parts), *_spaced(around.value_end(name), blanks))


def _spaced(text: str, blanks: Constraint) -> list[str | Constraint]:
    """A text with blanks in place of its line breaks."""
    first, *lines = text.split("\n")
    return [first, *(part for line in lines for part in (blanks, line))]


def _of_types(
    schema: dict[str, Any] | bool, types: Iterable[str], around: TaggedArguments, style: JsonStyle
) -> Constraint:
    """A value of one of some types, whose text tells them."""
    kinds = frozenset(types)
    if kinds == {"string"}:
        return raw_text(narrowed(schema, kinds), excludes=around.excludes)
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(narrowed(schema, kinds), ensure_ascii=False), style)


def _raw(schema: dict[str, Any] | bool, around: TaggedArguments, style: JsonStyle) -> Constraint:
    """A value between tags: strings without quotes, others as JSON, as Python writes them, or as elements."""
    if around.item:
        return nested_value(schema, around, style)
    types = types_of(schema)
    parts: list[str | Constraint] = []
    if "string" in types:
        text = narrowed(schema, types & {"string"})
        parts.append(raw_text(text, excludes=[*around.excludes, *around.cdata]))
        if around.cdata:
            parts.append(sequence(CDATA.begin, raw_text(text, excludes=[CDATA.end]), CDATA.end))
    if others := types - {"string"}:
        value = _of_types(schema, others, around, style)
        parts.append(value)
        if around.cdata and others & {"array", "object"}:
            parts.append(sequence(CDATA.begin, value, CDATA.end))
    if "boolean" in types and schema_allows(schema, True, False):
        parts += ["True", "False"]
    if "null" in types:
        parts.append("None")
    return any_of(*parts)


def schema_allows(schema: dict[str, Any] | bool, *values: bool) -> bool:
    """Whether a schema of booleans does not tell them apart."""
    return isinstance(schema, bool) or not ({"enum", "const"} & schema.keys())


def _is_writable(name: str, tool_format: ToolFormat) -> bool:
    """Whether the name of a parameter can be written in a format."""
    if tool_format.arguments is ArgumentStyle.PYTHON:
        return name.isidentifier() and not iskeyword(name)
    if tool_format.arguments is ArgumentStyle.MARKED:
        return is_bare_key(name)
    return bool(name) and name.isprintable() and not set(name) & set("<>&\"'= ")
