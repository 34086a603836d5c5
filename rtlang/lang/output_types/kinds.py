"""Kinds of values: the static type of a value before it exists, where plain data equals the Python value.

Operations on such values can be computed from the text alone. This module reads the kinds of JSON schemas, `value_kinds` the
kinds of Python types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class Scalar:
    """A str, int, float or bool; "number" is an int or a float, "any" is plain data of any kind."""

    name: Literal["str", "int", "float", "bool", "number", "any"]


STR, INT, FLOAT, BOOL = Scalar("str"), Scalar("int"), Scalar("float"), Scalar("bool")
NUMBER, ANY = Scalar("number"), Scalar("any")


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A list; `item` is the kind of its items, if known."""

    item: Kind | None


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A dict with text keys; `item` is the kind of its values, if known."""

    item: Kind | None


@dataclass(frozen=True, slots=True)
class NullableKind:
    """None, or a value of another kind. Without `item` it is always None."""

    item: Kind | None


NULL = NullableKind(None)


class Member(NamedTuple):
    """A field of a record.

    Attributes:
        key: in JSON.
        default: a tuple with the value of a missing field; None if a missing field is an error.
        is_certain: whether the field is there, or has a default.
    """

    key: str
    kind: Kind
    default: tuple[Any] | None = None
    is_certain: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A model, dataclass, TypedDict or JSON object with known names.

    Attributes:
        field: the field of a name; None if nothing is known of it.
        by_key: whether fields are read as items (`TypedDict`, dict) and not as attributes.
    """

    field: Callable[[str], Member | None]
    by_key: bool


Kind = Scalar | Listed | Mapped | NullableKind | Record


class Reading(NamedTuple):
    """How a graph reads the text of a type.

    Attributes:
        function: of `pure_functions`; its arguments are the text and `args`.
        kind: of the result.
        path: fields and items of the result that lead to the value.
    """

    function: str
    kind: Kind
    args: tuple[Any, ...] = ()
    path: tuple[str | int, ...] = ()


def kind_of_constants(values: Iterable[object]) -> Kind | None:
    """The kind of a value that is one of these."""
    kinds = {type(each) for each in values}
    if kinds and kinds <= {int, float}:
        return INT if kinds == {int} else NUMBER
    return {str: STR, bool: BOOL}.get(kinds.pop()) if len(kinds) == 1 else None


def _as_json(kind: Kind | None) -> Kind | None:
    return NUMBER if kind == INT else kind  # 3 may be written as 3.0


def reading_of_json(schema: Any) -> Reading | None:
    """How a graph reads a text of a JSON schema, whose value is what `json.loads` gives; None if its kind is not known."""
    kind = _JsonKinds(schema).kind(schema)
    return None if kind is None else Reading("parse_json", kind)


class _JsonKinds:
    """Kinds of the schemas within `root`. A keyword that is present always holds, whatever stands beside it."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def kind(self, schema: Any, depth: int = 0) -> Kind | None:
        """The kind of a schema, one level deep."""
        if not isinstance(schema, Mapping) or depth > 20:
            return None
        match schema.get("type"):
            case "string":
                return STR
            case "boolean":
                return BOOL
            case "integer" | "number":
                return NUMBER  # 3.0 is an integer in JSON and a float in Python
            case "array":
                return Listed(None if "prefixItems" in schema else self.kind(schema.get("items"), depth + 1))
            case "object":
                return Record(lambda name: self._member(schema, name), by_key=True)
            case [first, second] if "null" in (first, second) and first != second:
                inner = self.kind({**schema, "type": second if first == "null" else first}, depth + 1)
                return None if inner is None else NullableKind(inner)
        if "enum" in schema:
            return _as_json(kind_of_constants(schema["enum"])) if isinstance(schema["enum"], list) else None
        if "const" in schema:
            return _as_json(kind_of_constants([schema["const"]]))
        return self.kind(self._referred(schema.get("$ref")), depth + 1)

    def _member(self, schema: Any, name: str) -> Member | None:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            kind = self.kind(properties[name])
        else:
            kind = None if "patternProperties" in schema else self.kind(schema.get("additionalProperties"))
        required = schema.get("required")
        is_certain = isinstance(required, (list, tuple)) and name in required
        return None if kind is None else Member(name, kind, is_certain=is_certain)

    def _referred(self, reference: Any) -> Any:
        if reference == "#":
            return self._root
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found: Any = self._root
        for step in reference[2:].split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found
