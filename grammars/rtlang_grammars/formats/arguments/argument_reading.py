"""Reads the arguments of a call in each of the styles.

Functions take a text and a position and return the arguments and the position after them. `Incomplete` says that the text ends too early.
In every style a name that occurs twice in one object has its last value, as `json.loads` reads it: masks cannot remember all names of an
object whose schema does not list them.
"""

from __future__ import annotations

import math
import re
from typing import Any

from rtlang_grammars.formats.arguments.marked_reading import read_marked
from rtlang_grammars.formats.arguments.python_reading import read_python
from rtlang_grammars.formats.arguments.tagged_reading import read_tagged
from rtlang_grammars.formats.arguments.value_reading import DECODER, Incomplete, Malformed, skip_blanks
from rtlang_grammars.formats.description import ArgumentStyle, ToolFormat
from rtlang_grammars.formats.tools import Tool


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
            return read_python(text, at)
        case ArgumentStyle.MARKED:
            return read_marked(tool_format.literals, text, at)
        case ArgumentStyle.TAGGED:
            assert tool_format.tagged is not None
            return read_tagged(tool_format.tagged, tool, text, at)


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


def _read_json(text: str, at: int) -> tuple[dict[str, Any], int]:
    begin = skip_blanks(text, at)
    if begin == len(text):
        raise Incomplete
    if text[begin] != "{":
        raise Malformed(f"expected a JSON object, not {text[begin : begin + 20]!r}")
    try:
        value, end = DECODER.raw_decode(text, begin)
    except Malformed:
        raise
    except ValueError as error:
        raise Incomplete from error
    return value, end


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
