"""Reads arguments whose names and values stand between tags, and elements within such values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtlang_grammars.formats.arguments.value_reading import (
    DECODER,
    Incomplete,
    Malformed,
    python_literal,
    skip_blanks,
    typed,
)
from rtlang_grammars.formats.description import CDATA, TaggedArguments
from rtlang_grammars.formats.schemas import JSON_TYPES, resolved, types_of, with_definitions
from rtlang_grammars.formats.tools import Tool


def read_tagged(around: TaggedArguments, tool: Tool | None, text: str, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        begin = skip_blanks(text, at)
        name, value_at, kind = _tag_at(around, text, begin)
        if name is None:
            return found, begin
        schema = _schema_of(tool, name)
        found[name], at = _tagged_value(around, schema, schema, kind, name, text, value_at)


def _tag_at(around: TaggedArguments, text: str, at: int) -> tuple[str | None, int, str | None]:
    """The name in a tag, the position of its value, and the type that the tag tells; no name if there is no tag here."""
    rest = text[at : at + len(around.before_name)]
    if rest != around.before_name:
        if around.before_name.startswith(rest):
            raise Incomplete
        return None, at, None
    begin = at + len(around.before_name)
    if begin == len(text):
        raise Incomplete
    if text[begin] == "/":  # a closing tag that begins as names do
        return None, at, None
    kinds = ("string", "number", "boolean", "null", "array", "object") if around.has_types else ("",)
    starts = list(dict.fromkeys(around.value_begin(kind) for kind in kinds))
    name_mark = _common_start(starts).partition("\n")[0]
    end = text.find(name_mark, begin)
    if end < 0:
        raise Incomplete
    name = text[begin:end].strip()
    is_partial = False
    for kind in kinds:
        behind, is_there = end + len(name_mark), True
        for i, line in enumerate(around.value_begin(kind)[len(name_mark) :].split("\n")):
            behind = skip_blanks(text, behind) if i and line else behind
            if not text.startswith(line, behind):
                is_partial, is_there = is_partial or line.startswith(text[behind:]), False
                break
            behind += len(line)
        if is_there:
            return name, behind, kind or None
    if is_partial:
        raise Incomplete
    raise Malformed(f"expected {' or '.join(map(repr, starts))} after the name {name!r}")


def _common_start(texts: list[str]) -> str:
    return texts[0][
        : next((i for i, each in enumerate(zip(*texts, strict=False)) if len(set(each)) > 1), len(texts[0]))
    ]


def _schema_of(tool: Tool | None, name: str) -> Any:
    if tool is None or name not in tool.properties:
        return True
    return with_definitions(tool.properties[name], tool.parameters or {})


def _tagged_value(
    around: TaggedArguments, schema: Any, document: Any, kind: str | None, name: str, text: str, at: int
) -> tuple[Any, int]:
    """A value and the position after the text that ends it. A JSON value may contain that text in its strings.

    Args:
        kind: the type that the tag tells, `string` or another.
    """
    types = types_of(schema, document)
    if around.has_types:
        types = frozenset(("string",)) if kind == "string" else JSON_TYPES - {"string"}
    end_mark = around.value_end(name).strip("\n")
    if around.item:
        begin = skip_blanks(text, at)
        child, _, _ = _tag_at(around, text, begin)
        if child is not None:
            return _nested(around, schema, document, text, begin, end_mark)
    if around.cdata and text.startswith(CDATA.begin, at):
        return _cdata(types, text, at + len(CDATA.begin), end_mark)
    if types != {"string"}:
        begin = skip_blanks(text, at)
        if text[begin : begin + 1] in ("{", "["):
            try:
                value, end = DECODER.raw_decode(text, begin)
                behind = skip_blanks(text, end)
                if text.startswith(end_mark, behind):
                    return value, behind + len(end_mark)
                if end_mark.startswith(text[behind:]):
                    raise Incomplete
            except ValueError as error:
                if isinstance(error, Malformed) and "string" not in types:
                    raise
                closed = text.find(end_mark, begin)
                is_python = closed >= 0 and python_literal(text[begin:closed].strip()) is not None
                if "string" not in types and not around.item and not is_python:
                    raise Incomplete from error
    end = text.find(end_mark, at)
    if end < 0:
        raise Incomplete
    raw = text[at:end]
    if around.before_value.endswith("\n"):
        raw = raw.removeprefix("\n")
    if around.behind_value.startswith("\n"):
        raw = raw.removesuffix("\n")
    if around.item and not raw.strip() and "string" not in types and types & {"array", "object"}:
        return ([] if "array" in types else {}), end + len(end_mark)
    return typed(raw, types), end + len(end_mark)


def _cdata(types: frozenset[str], text: str, at: int, end_mark: str) -> tuple[Any, int]:
    """A value in a CDATA section that begins before `at`. The strings of an array or object may contain the end of the section."""
    begin, end = skip_blanks(text, at), -1
    if types & {"array", "object"} and text[begin : begin + 1] in ("{", "["):
        try:
            end = skip_blanks(text, DECODER.raw_decode(text, begin)[1])
        except ValueError as error:
            closed = text.find(CDATA.end, begin)
            is_python = closed >= 0 and python_literal(text[begin:closed].strip()) is not None
            if "string" not in types and not is_python:
                raise Incomplete from error
    if not text.startswith(CDATA.end, max(end, 0)):
        end = text.find(CDATA.end, at)
    if end < 0:
        raise Incomplete
    behind = skip_blanks(text, end + len(CDATA.end))
    if text.startswith(end_mark, behind):
        return typed(text[at:end], types), behind + len(end_mark)
    if end_mark.startswith(text[behind:]):
        raise Incomplete
    raise Malformed(f"expected {end_mark!r}, not {text[behind : behind + 20]!r}")


def _nested(around: TaggedArguments, schema: Any, document: Any, text: str, at: int, end_mark: str) -> tuple[Any, int]:
    """An object or an array that is written as elements."""
    schema = resolved(schema, document)
    types = types_of(schema, document)
    given = schema if isinstance(schema, Mapping) else {}
    properties, items = given.get("properties"), given.get("items", True)
    pairs: list[tuple[str, Any]] = []
    while True:
        at = skip_blanks(text, at)
        if text.startswith(end_mark, at):
            at += len(end_mark)
            break
        name, value_at, kind = _tag_at(around, text, at)
        if name is None:
            if end_mark.startswith(text[at:]):
                raise Incomplete
            raise Malformed(f"expected {end_mark!r}, not {text[at : at + 20]!r}")
        inner: Any = items
        if "object" in types and isinstance(properties, Mapping) and name in properties:
            inner = properties[name]
        elif "array" not in types:
            inner = given.get("additionalProperties", True)
        value, at = _tagged_value(around, inner, document, kind, name, text, value_at)
        pairs.append((name, value))
    is_list = "object" not in types or ("array" in types and all(name == around.item for name, _ in pairs))
    return [value for _, value in pairs] if is_list else dict(pairs), at
