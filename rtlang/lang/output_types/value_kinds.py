"""The kinds of values of Python types.

Types have a kind where plain data equals the Python value. Others have none: enums, dates, decimals, types with validators of their own.
The kinds of structured types are read from pydantic's core schema, which names every conversion that a validator makes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from rtlang.contract.graph.value_size import check_plain
from rtlang.lang.output_types.kinds import (
    BOOL,
    FLOAT,
    INT,
    STR,
    Kind,
    Listed,
    Mapped,
    Member,
    NullableKind,
    Reading,
    Record,
    Scalar,
    kind_of_constants,
)

_TRANSFORMS = ("strip_whitespace", "to_lower", "to_upper")
_STR_CONFIG = ("str_strip_whitespace", "str_to_lower", "str_to_upper", "coerce_numbers_to_str")


def reading_of_type(given: Any) -> Reading | None:
    """How a graph reads the text of a Python type; None if its values have no kind."""
    simple = _SIMPLE.get(given) if isinstance(given, type) else None
    if simple is not None or given is None:
        return simple
    try:
        kind = _structured(given)
    except TypeError:  # not hashable
        kind = _structured.__wrapped__(given)
    return None if kind is None else Reading("parse_json", kind)


def kind_of_model(core_schema: Any) -> Record | None:
    """The fields of a pydantic model by its core schema, or None."""
    kind = _Schemas({}).kind(core_schema)
    return kind if isinstance(kind, Record) else None


_SIMPLE: dict[type, Reading] = {
    int: Reading("parse_int", INT),
    float: Reading("parse_float", FLOAT),
    bool: Reading("parse_bool", BOOL),
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
                return kind_of_constants(schema["expected"])
            case "nullable":
                item = self.kind(schema["schema"])
                return None if item is None else NullableKind(item)
            case "default":
                return self.kind(schema["schema"])
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

        def find(name: str) -> Member | None:
            field = fields.get(name)
            key = None if field is None else field.get("validation_alias", name)
            if field is None or not isinstance(key, str) or not field.get("init", True) or field.get("init_only"):
                return None
            kind = self.kind(field["schema"])
            if kind is None:
                return None
            if field["schema"]["type"] == "default":
                default = _default(field["schema"], kind)
                return None if default is None else Member(key, kind, default)
            return Member(key, kind, is_certain=field.get("required", schema.get("total", True)))

        return Record(find, by_key)


def _default(schema: Any, kind: Kind) -> tuple[Any] | None:
    """The default of a field, if it is plain data of the field's kind."""
    factory = schema.get("default_factory")
    value = factory() if factory in (list, dict) else schema.get("default", _NO_DEFAULT)
    if isinstance(kind, NullableKind):
        is_known = value is None or (isinstance(kind.item, Scalar) and type(value) is _TYPES.get(kind.item.name))
    elif isinstance(kind, Scalar):
        is_known = type(value) is _TYPES.get(kind.name)
    else:
        is_known = value == [] if isinstance(kind, Listed) else value == {} and isinstance(kind, Mapped)
    return (value,) if is_known and check_plain(value) is None else None


_NO_DEFAULT = object()
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
