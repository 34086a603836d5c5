"""Reads the arguments of a call in each of the styles.

Functions take a text and a position and return the arguments and the position after them. `Incomplete` says that the text ends too early.
In every style a name that occurs twice in one object has its last value, as `json.loads` reads it: masks cannot remember all names of an
object whose schema does not list them.
"""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

from rtlang_grammars.formats.description import ArgumentStyle, TaggedArguments, ToolFormat
from rtlang_grammars.formats.schemas import type_of, types_of, with_definitions
from rtlang_grammars.formats.tools import Tool

_NAMED = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}


class Incomplete(Exception):
    """The text ends before the arguments do."""


class Malformed(ValueError):
    """The text is not what the format allows there."""


def _refuse_constant(name: str) -> Any:
    raise Malformed(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_arguments(tool_format: ToolFormat, tool: Tool | None, text: str, at: int) -> tuple[dict[str, Any], int]:
    """The arguments that begin at `at`, and the position after them.

    Args:
        tool: gives the types of values without quotes; None if unknown.
    Raises:
        Incomplete: the text ends within the arguments.
        Malformed: the arguments are not written in the style of the format, or nested too deeply for Python's parsers; a number is not
            finite; a string has half of a surrogate pair.
    """
    try:
        found, end = _read(tool_format, tool, text, at)
        for name, value in found.items():
            _check_value(name, name)
            _check_value(name, value)
    except (RecursionError, MemoryError):
        raise Malformed("the arguments are nested too deeply") from None
    return found, end


def _read(tool_format: ToolFormat, tool: Tool | None, text: str, at: int) -> tuple[dict[str, Any], int]:
    match tool_format.arguments:
        case ArgumentStyle.JSON:
            return _read_json(text, at)
        case ArgumentStyle.PYTHON:
            return _read_python(text, at)
        case ArgumentStyle.TAGGED:
            assert tool_format.tagged is not None
            return _read_tagged(tool_format.tagged, tool, text, at)


def _check_value(name: str, value: Any) -> None:
    match value:
        case str():
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise Malformed(f"argument {name!r} has half of a surrogate pair in a string")
        case float():
            if not math.isfinite(value):
                raise Malformed(f"argument {name!r} has the number {value}, which is not finite")
        case list():
            for each in value:
                _check_value(name, each)
        case dict():
            for key, each in value.items():
                _check_value(name, key)
                _check_value(name, each)


def skip_blanks(text: str, at: int) -> int:
    """The position after blanks and line breaks."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _read_json(text: str, at: int) -> tuple[dict[str, Any], int]:
    begin = skip_blanks(text, at)
    if begin == len(text):
        raise Incomplete
    if text[begin] != "{":
        raise Malformed(f"expected a JSON object, not {text[begin : begin + 20]!r}")
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except Malformed:
        raise
    except ValueError as error:
        raise Incomplete from error
    return value, end


def _read_python(text: str, at: int) -> tuple[dict[str, Any], int]:
    end = _python_end(text, at)
    written = _ESCAPE.sub(lambda escape: "/" if escape[0] == r"\/" else escape[0], text[at:end])
    try:
        call = ast.parse(f"_({written})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise Malformed(f"the arguments are not Python: {error}") from None
    assert isinstance(call, ast.Call)
    if call.args or not all(each.arg for each in call.keywords):
        raise Malformed("expected arguments with names")
    return {str(each.arg): _literal(each.value) for each in call.keywords}, end


_ESCAPE = re.compile(r"\\.", re.DOTALL)
"""Values that are written as JSON may have `\\/`, which Python does not know, and pairs of surrogates, which it does not join."""


def _python_end(text: str, at: int) -> int:
    """The position of the parenthesis that closes the arguments."""
    depth, quote = 0, ""
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    raise Incomplete


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() as text):
            return _joined(text)
        case ast.Constant(value=int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Name(id=name) if name in _NAMED:
            return _NAMED[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(each) for each in items]
        case ast.Dict(keys=keys, values=values):
            found: dict[str, Any] = {}
            for key, item in zip(keys, values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                    raise Malformed("expected strings as keys")
                found[_joined(key.value)] = _literal(item)
            return found
    raise Malformed(f"expected a literal, not {ast.unparse(node)[:40]!r}")


def _joined(text: str) -> str:
    """The text with each pair of surrogates as one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _read_tagged(around: TaggedArguments, tool: Tool | None, text: str, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    name_end, value_begin = _split(around.before_value)
    end_mark = around.behind_value.strip("\n")
    while True:
        begin = skip_blanks(text, at)
        rest = text[begin : begin + len(around.before_name)]
        if rest != around.before_name:
            if around.before_name.startswith(rest):
                raise Incomplete
            return found, begin
        begin += len(around.before_name)
        end = text.find(name_end, begin)
        if end < 0:
            raise Incomplete
        name, at = text[begin:end].strip(), end + len(name_end)
        if value_begin:
            at = skip_blanks(text, at)
            if not text.startswith(value_begin, at):
                if value_begin.startswith(text[at:]):
                    raise Incomplete
                raise Malformed(f"expected {value_begin!r} after the name {name!r}")
            at += len(value_begin)
        value, at = _tagged_value(around, _schema_of(tool, name), text, at, end_mark)
        found[name] = value


def _split(before_value: str) -> tuple[str, str]:
    """The text that ends a name, and the one that begins its value, without line breaks."""
    first, _, rest = before_value.partition("\n")
    return first, rest


def _schema_of(tool: Tool | None, name: str) -> Any:
    if tool is None or name not in tool.properties:
        return True
    return with_definitions(tool.properties[name], tool.parameters or {})


def _tagged_value(around: TaggedArguments, schema: Any, text: str, at: int, end_mark: str) -> tuple[Any, int]:
    """A value and the position after the text that ends it. A JSON value may contain that text in its strings."""
    types = types_of(schema)
    if types != {"string"}:
        begin = skip_blanks(text, at)
        if text[begin : begin + 1] in ("{", "["):
            try:
                value, end = _DECODER.raw_decode(text, begin)
                behind = skip_blanks(text, end)
                if text.startswith(end_mark, behind):
                    return value, behind + len(end_mark)
                if end_mark.startswith(text[behind:]):
                    raise Incomplete
            except ValueError as error:
                if isinstance(error, Malformed) and "string" not in types:
                    raise
                if "string" not in types:
                    raise Incomplete from error
    end = text.find(end_mark, at)
    if end < 0:
        raise Incomplete
    raw = text[at:end]
    if around.before_value.endswith("\n"):
        raw = raw.removeprefix("\n")
    if around.behind_value.startswith("\n"):
        raw = raw.removesuffix("\n")
    return typed(raw, types), end + len(end_mark)


def typed(raw: str, types: frozenset[str]) -> Any:
    """The value that a text without quotes stands for: of a type other than string where it can be, else the text."""
    if types == {"string"}:
        return raw
    word = raw.strip()
    value: Any
    if word in _NAMED:
        value = _NAMED[word]
    else:
        try:
            value = _DECODER.decode(word)
        except ValueError as error:
            if isinstance(error, Malformed) and "string" not in types:
                raise
            return raw
    if isinstance(value, float) and "number" not in types and "integer" in types and value.is_integer():
        value = int(value)  # 2.0 is an integer
    return value if type_of(value) in types and not isinstance(value, str) else raw


_NAME = re.compile(r"[A-Za-z0-9_.\-]+")


def read_name(text: str, at: int) -> tuple[str, int]:
    """The name of a tool (or an id) at `at`, and the position after it. Names that are no tools of this program are read, too.

    Raises:
        Incomplete: the text ends with the name, which may go on.
        Malformed: there is no name.
    """
    found = _NAME.match(text, at)
    if found is None:
        if at == len(text):
            raise Incomplete
        raise Malformed(f"expected the name of a tool, not {text[at : at + 20]!r}")
    if found.end() == len(text):
        raise Incomplete
    return found.group(), found.end()
