"""What is known of a value before it exists: its kind, where plain data equals the Python value.

Operations on such values can be computed from the JSON text without the type. Everything else has no kind: enums, dates, decimals, types
with validators of their own, and fields with defaults. The kinds of structured types are read from pydantic's core schema, which names
every conversion that a validator makes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rtlang.lang.output_types.types import OutputType

_TRANSFORMS = ("strip_whitespace", "to_lower", "to_upper")
_STR_CONFIG = ("str_strip_whitespace", "str_to_lower", "str_to_upper", "coerce_numbers_to_str")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A str, int, float or bool; "any" is plain data of any kind."""

    name: Literal["str", "int", "float", "bool", "any"]


STR, INT, FLOAT, BOOL = Scalar("str"), Scalar("int"), Scalar("float"), Scalar("bool")
ANY = Scalar("any")


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A list; `item` is the kind of its items, if known."""

    item: Kind | None


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A dict with text keys; `item` is the kind of its values, if known."""

    item: Kind | None


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A model, dataclass or TypedDict.

    Attributes:
        fields: by name: the key in JSON, and the schema. Fields that may be missing are not among them.
        schemas: the definitions that schemas refer to.
        by_key: whether fields are read as items (`TypedDict`) and not as attributes.
    """

    fields: Mapping[str, tuple[str, Any]]
    schemas: _Schemas
    by_key: bool

    def field(self, name: str) -> tuple[str, Kind] | None:
        """The key in JSON and the kind of a field; None if it has no kind."""
        found = self.fields.get(name)
        kind = None if found is None else self.schemas.kind(found[1])
        return None if found is None or kind is None else (found[0], kind)


Kind = Scalar | Listed | Mapped | Record


def kind_of(output_type: OutputType) -> tuple[str, Kind] | None:
    """The function of `pure_functions` that reads the text of this type, and the kind of the value; None if it has none."""
    given = output_type.python_type
    simple = _SIMPLE.get(given) if isinstance(given, type) else None
    if simple is not None or given is None:
        return simple
    try:
        kind = _structured(given)
    except TypeError:  # not hashable
        kind = _structured.__wrapped__(given)
    return None if kind is None else ("parse_json", kind)


_SIMPLE: dict[type, tuple[str, Kind]] = {
    int: ("parse_int", INT),
    float: ("parse_float", FLOAT),
    bool: ("parse_bool", BOOL),
}


@functools.lru_cache(maxsize=256)
def _structured(given: Any) -> Kind | None:
    from pydantic import TypeAdapter

    return _Schemas({}).kind(TypeAdapter(given).core_schema)


class _Schemas:
    """Reads core schemas of pydantic; `definitions` are those that a reference names."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions

    def kind(self, schema: Any) -> Kind | None:
        """The kind of a core schema, one level deep."""
        match schema.get("type"):
            case "definitions":
                inner = {each["ref"]: each for each in schema["definitions"]}
                return _Schemas({**self._definitions, **inner}).kind(schema["schema"])
            case "definition-ref":
                found = self._definitions.get(schema["schema_ref"])
                return None if found is None else self.kind(found)
            case "str":
                return None if any(schema.get(each) for each in _TRANSFORMS) else STR
            case "int" | "float" | "bool" as name:
                return Scalar(name)
            case "literal":
                kinds = {type(each) for each in schema["expected"]}
                return _LITERALS.get(kinds.pop()) if len(kinds) == 1 else None
            case "list":
                return Listed(self.kind(schema["items_schema"]) if "items_schema" in schema else None)
            case "dict":
                keys = self.kind(schema["keys_schema"]) if "keys_schema" in schema else None
                return Mapped(self.kind(schema["values_schema"])) if keys == STR and "values_schema" in schema else None
            case "model":
                return self._model(schema)
            case "dataclass":
                return self._dataclass(schema)
            case "typed-dict":
                return self._record(schema, schema["fields"], by_key=True)
            case _:
                return None

    def _model(self, schema: Any) -> Kind | None:
        inner, owner = schema["schema"], schema["cls"]
        if schema.get("root_model") or schema.get("custom_init") or schema.get("post_init"):
            return None
        if inner.get("type") != "model-fields" or owner.__getattribute__ is not object.__getattribute__:
            return None
        return self._record(schema, inner["fields"], by_key=False)

    def _dataclass(self, schema: Any) -> Kind | None:
        inner, owner = schema["schema"], schema["cls"]
        if schema.get("post_init") or inner.get("type") != "dataclass-args":
            return None
        if owner.__getattribute__ is not object.__getattribute__:
            return None
        return self._record(schema, {each["name"]: each for each in inner["fields"]}, by_key=False)

    def _record(self, schema: Any, fields: Mapping[str, Any], *, by_key: bool) -> Kind | None:
        config = schema.get("config") or {}
        if any(config.get(each) for each in _STR_CONFIG):
            return None
        known: dict[str, tuple[str, Any]] = {}
        for name, field in fields.items():
            key = field.get("validation_alias", name)
            is_required = field.get("required", schema.get("total", True))
            if isinstance(key, str) and is_required and field.get("init", True) and not field.get("init_only"):
                known[name] = (key, field["schema"])
        return Record(known, self, by_key)


_LITERALS: dict[type, Kind] = {str: STR, int: INT, bool: BOOL}
