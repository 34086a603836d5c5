"""The parameters of a function as a JSON object: its schema, and how its values become arguments."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.lang.output_types.kinds import Member
from rtlang.lang.output_types.schemas.pydantic_schema import generator
from rtlang.lang.output_types.value_kinds import kind_of_model

_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_ENTRY = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function.

    Attributes:
        schema: the JSON schema of an object with the arguments. Parameters that the docstring describes have descriptions.
        description: the docstring up to its section of arguments.
        read: makes arguments by name, of the annotated types, from a JSON text. Defaults are filled in. Raises ValueError.
        kind_of: the kind of an argument by name, or None.
    """

    schema: dict[str, Any]
    description: str
    read: Callable[[str], dict[str, Any]]
    kind_of: Callable[[str], Member | None]


def signature_of(
    function: Callable[..., Any], field: str, parameters: Mapping[str, inspect.Parameter] | None = None
) -> Signature:
    """The signature of a function as data; `field` is the option that errors name.

    Args:
        parameters: the parameters to take; default: all.

    Raises:
        ParameterError: a parameter has no JSON schema, or the function has `*args` or `**kwargs`.
    """
    from pydantic import ConfigDict, Field, PydanticSchemaGenerationError, PydanticUserError, create_model
    from pydantic.errors import PydanticInvalidForJsonSchema

    name = getattr(function, "__name__", "arguments")
    description, described = _described(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    keys: dict[str, str] = {}
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        for key, parameter in (inspect.signature(function).parameters if parameters is None else parameters).items():
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise ParameterError(field, function, "expected a function without *args or **kwargs")
            default: Any = ... if parameter.default is inspect.Parameter.empty else parameter.default
            keys[f"parameter_{len(keys)}"] = key  # any name is allowed, even a name of a model's attribute
            fields[f"parameter_{len(fields)}"] = (hints.get(key, Any), Field(default, alias=key))
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        schema = _without_titles(model.model_json_schema(schema_generator=generator()))
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError, NameError) as error:
        raise ParameterError(field, function, f"{name}: expected parameters with a JSON schema: {error}") from error
    schema.pop("additionalProperties", None)
    for key, text in described.items():
        if isinstance(schema.get("properties", {}).get(key), dict):
            schema["properties"][key].setdefault("description", text)

    def read(text: str) -> dict[str, Any]:
        found = model.model_validate_json(text)
        return {key: getattr(found, attribute) for attribute, key in keys.items()}

    attributes = {key: attribute for attribute, key in keys.items()}

    def kind_of(name: str) -> Member | None:
        record = kind_of_model(model.__pydantic_core_schema__)
        return None if record is None or name not in attributes else record.field(attributes[name])

    return Signature(schema, description, read, kind_of)


def _described(doc: str) -> tuple[str, dict[str, str]]:
    """The text of a docstring before its section of arguments, and the descriptions in that section."""
    lines = doc.splitlines()
    begin = next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    found: dict[str, str] = {}
    last, first_depth = "", 0
    for line in lines[begin + 1 :]:
        if line and not line[0].isspace():
            break
        entry = _ENTRY.match(line.strip())
        depth = len(line) - len(line.lstrip())
        if entry is not None and (not found or depth <= first_depth):
            first_depth, last = depth, entry[1]
            found[last] = entry[2].strip()
        elif last and line.strip():
            found[last] += " " + line.strip()
    return "\n".join(lines[:begin]).strip(), found


def _without_titles(schema: Any, is_schema: bool = True) -> Any:
    """A schema without the titles that pydantic makes from names."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: _without_titles(value, not (is_schema and key in ("properties", "$defs")))
        for key, value in schema.items()
        if not (is_schema and key == "title" and isinstance(value, str))
    }
