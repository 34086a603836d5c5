"""Tools whose schemas cannot be compiled: their schemas are widened, and errors name their place in the schema.

A structure is built again with the widened schemas. First single parameters are widened, those that have the errors, then all of a tool; if
the tools are only too large together, all parameters of all tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from rtlang_grammars.formats.description import ArgumentStyle, ToolFormat
from rtlang_grammars.formats.schemas import with_definitions
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.dialects import escape, unescape
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.structure_parts import AnyOf, Arguments, Defined, Members, Part, Repeat, Sequence, Tags

Widened: TypeAlias = dict[tuple[str, str | None], frozenset[str] | None]
"""Tools whose schema is replaced by a wider one, by name and schema: the parameters that may have any value, or None for all."""
_MAX_WIDENED = 3
"""Number of parameters of a tool that are widened one by one before all are."""


class NewlyWidenedError(GrammarError):
    """The schema of a tool cannot be compiled. It is now among the `Widened`, and the structure is to be built again.

    Attributes:
        is_over: the budget is used up.
    """

    def __init__(self, error: GrammarError, *, is_over: bool) -> None:
        super().__init__(error.reason, error.location)
        self.is_over = is_over


_PROPERTY = re.compile(r"#/properties/([^/]*)")


def wider(names: frozenset[str], location: str | None) -> frozenset[str] | None:
    """The parameters to widen after an error, from those that were widened and the place of the error; None for all."""
    found = _PROPERTY.match(location or "")
    more = names if found is None else names | {unescape(found[1])}
    return None if more == names or len(more) > _MAX_WIDENED else more


def location_in_tool(
    error: GrammarError, tool_format: ToolFormat, tool: Tool, options: SchemaOptions | None, budget: Budget
) -> str | None:
    """The place of an error in the schema of a tool, as a JSON pointer; None if it is not known."""
    location = (error.location or "").rpartition(" ")[2] or None
    if error.location is not None and error.location.startswith(("#/properties", "#/required")):
        return location
    if tool_format.arguments is not ArgumentStyle.JSON:
        location = _error_at("#", tool.schema, options, budget) or location
    if location in (None, "#"):  # a required parameter may be the one that allows nothing
        for name in sorted(tool.required & tool.properties.keys()):
            schema = with_definitions(tool.properties[name], tool.parameters or {})
            found = _error_at(f"#/properties/{escape(name)}", schema, options, budget)
            if found is not None:
                return found
    return location


def _error_at(pointer: str, schema: dict[str, Any] | bool, options: SchemaOptions | None, budget: Budget) -> str | None:
    """The place of an error in a schema that stands at a pointer; None if there is no error."""
    try:
        compile_shapes(schema, options=options, budget=budget)
    except GrammarError as error:
        return pointer + (error.location or "#").removeprefix("#")
    return None


def tools_in(part: Part) -> Iterator[tuple[str, str | None]]:
    """The names and schemas of the tools whose arguments occur in a structure."""
    waiting: list[Part] = [part]
    while waiting:
        match waiting.pop():
            case Arguments(name=name, parameters=parameters):
                yield name, parameters
            case Sequence(parts) | AnyOf(parts):
                waiting += parts
            case Repeat(part=inner) | Defined(part=inner):
                waiting.append(inner)
            case Members(parts=members):
                waiting += [each for each, _ in members]
            case Tags(tags=tags):
                waiting += [tag.part for tag in tags]
