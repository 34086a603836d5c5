"""Tools and what a program may say about their use: names, JSON schemas of parameters, the choice between them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rtlang_grammars.formats.strict_schema import closed_schema
from rtlang_grammars.spec.errors import GrammarError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}")
_OPENERS = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies")
_CLOSERS = ("additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames")
MAX_TOOLS = 512
"""Maximum number of tools."""

ToolChoice: TypeAlias = str | Mapping[str, Any]
"""auto, none, required, or a map that names a tool: {"name": ...} or {"type": "function", "function": {"name": ...}}."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call.

    Attributes:
        name: letters, digits, `_`, `-` and `.`; at most 128.
        parameters: JSON schema of an object; None for a tool without parameters.
        description: for the model.
    """

    name: str
    parameters: Mapping[str, Any] | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise GrammarError(
                f"name = {self.name!r}: expected 1 to 128 letters, digits, _, - and ., not beginning with - or .",
                "name",
            )
        if self.parameters is not None and not isinstance(self.parameters, Mapping):
            raise GrammarError(f"tool {self.name}: parameters: expected a JSON schema (a map) or none", "parameters")
        kind = (self.parameters or {}).get("type", "object")
        if kind != "object":
            raise GrammarError(
                f"tool {self.name}: parameters: expected a schema of type 'object', not {kind!r}", "parameters"
            )
        required = (self.parameters or {}).get("required", ())
        if not isinstance(required, list | tuple) or not all(isinstance(each, str) for each in required):
            raise GrammarError(
                f"tool {self.name}: required: expected a list of strings, not {required!r}", "parameters"
            )

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the arguments. Names that it does not declare are not allowed, unless it speaks about them itself."""
        schema = dict(self.parameters or {})
        schema.setdefault("type", "object")
        if not any(key in schema for key in (*_OPENERS, *_CLOSERS)):
            schema["additionalProperties"] = False
        return schema

    @property
    def properties(self) -> dict[str, Any]:
        """The schemas of the parameters by name. References of these schemas begin at `parameters`."""
        found = (self.parameters or {}).get("properties", {})
        return dict(found) if isinstance(found, Mapping) else {}

    @property
    def required(self) -> frozenset[str]:
        """The names of the parameters that every call has."""
        return frozenset((self.parameters or {}).get("required", ()))

    def to_plain(self) -> dict[str, Any]:
        """The tool in the form of the OpenAI API, as chat templates expect it."""
        parameters = dict(self.parameters or {"type": "object", "properties": {}})
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": parameters},
        }


def widened(tool: Tool, names: Collection[str] | None) -> Tool:
    """A tool whose schema allows more: any values for some of its parameters.

    Args:
        names: the parameters; None: all, and of the other keywords only `required` is kept.
    """
    parameters = dict(tool.parameters or {})
    given = tool.properties
    if names is not None:
        properties = {name: True if name in names else schema for name, schema in given.items()}
        return replace(tool, parameters={**parameters, "properties": properties})
    is_open = any(key in parameters for key in (*_OPENERS, *_CLOSERS)) and parameters.get("additionalProperties", True)
    found: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(given, True)}
    found["required"] = sorted(tool.required)
    return replace(tool, parameters={**found, "additionalProperties": bool(is_open)})


def read_tools(tools: Iterable[Tool | Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Tools, each given as such or as a map in the form of the OpenAI API.

    With `strict: true` the schema of a map is closed, see strict_schema.py. Without it, and with `strict: false`, it is taken as it is.

    Raises:
        GrammarError: a tool is malformed, a name occurs twice, or there are none or too many.
    """
    found = tuple(each if isinstance(each, Tool) else _tool(each, i) for i, each in enumerate(tools))
    if not 1 <= len(found) <= MAX_TOOLS:
        raise GrammarError(f"{len(found)} tools: expected 1 to {MAX_TOOLS}", "tools")
    names = [tool.name for tool in found]
    for name in names:
        if names.count(name) > 1:
            raise GrammarError(f"name = {name!r}: two tools have this name", "tools")
    return found


def _tool(plain: object, index: int) -> Tool:
    inner = plain.get("function", plain) if isinstance(plain, Mapping) else plain
    if not isinstance(inner, Mapping) or "name" not in inner:
        raise GrammarError("expected a tool, or a map with name, parameters and description", f"tools/{index}")
    parameters = inner.get("parameters", inner.get("input_schema"))
    tool = Tool(inner["name"], parameters, str(inner.get("description") or ""))
    if inner.get("strict") is not True or parameters is None:
        return tool
    try:
        return replace(tool, parameters=closed_schema({"type": "object", **parameters}))
    except GrammarError as error:
        raise GrammarError(
            f"tool {tool.name}: strict, but {error.location} cannot be closed: {error.reason}", error.location
        ) from None


def chosen_tools(tools: tuple[Tool, ...], choice: ToolChoice) -> tuple[tuple[Tool, ...], int, int | None]:
    """The tools that may be called, and the bounds on the number of calls that `choice` means; None is unbounded.

    Raises:
        GrammarError: the choice is none of the allowed ones, or names no tool.
    """
    match choice:
        case "none":
            return tools, 0, 0
        case "auto":
            return tools, 0, None
        case "required":
            return tools, 1, None
    named = choice.get("function", choice) if isinstance(choice, Mapping) else None
    name = named.get("name") if isinstance(named, Mapping) else None
    found = tuple(tool for tool in tools if tool.name == name)
    if not found:
        names = ", ".join(tool.name for tool in tools)
        raise GrammarError(
            f'tool_choice = {choice!r}: expected auto, none, required, or {{"name": ...}} with one of {names}',
            "tool_choice",
        )
    return found, 1, 1
