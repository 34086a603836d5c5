"""Strict schemas: what is closed, against the client library of the OpenAI API and jsonschema; what cannot be closed, by place."""

from __future__ import annotations

import random
from enum import Enum
from typing import Any, Literal

import jsonschema
import pytest
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field, create_model

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.strict_schema import closed_schema
from rtlang_grammars.formats.tools import read_tools


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Track(BaseModel):
    title: str
    seconds: int = Field(3, description="length", ge=1)


class Album(BaseModel):
    name: str | None = None
    tracks: list[Track] = []
    best: Track | None = None
    color: Color = Color.RED


class Tree(BaseModel):
    label: str
    children: list[Tree] = []
    kind: Literal["leaf", "node"] = Field("leaf", description="which")


def random_value(rng: random.Random, depth: int = 0) -> Any:
    """A value of the names and scalars that the classes above use, mostly of a wrong form."""
    kind = rng.randrange(6 if depth < 4 else 4)
    if kind == 4:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    if kind == 5:
        names = rng.choice(
            [
                ["title", "seconds"],
                ["name", "tracks", "best", "color"],
                ["label", "children", "kind"],
            ]
        )
        kept = [name for name in names if rng.random() < 0.9] + ["extra"] * (rng.random() < 0.1)
        return {name: _fitting(rng, name, depth) for name in kept}
    return [None, "red", 4, "leaf"][kind]


def _fitting(rng: random.Random, name: str, depth: int) -> Any:
    if rng.random() < 0.05:
        return random_value(rng, depth + 1)
    whole = {"title": "t", "seconds": rng.randrange(3), "name": None, "color": "blue", "label": "l", "kind": "node"}
    if name in whole:
        return whole[name]
    track = {each: _fitting(rng, each, depth + 1) for each in ("title", "seconds") if rng.random() < 0.9}
    if name == "children":
        return [] if depth > 3 else [random_value(rng, depth + 1) for _ in range(rng.randrange(2))]
    return [track] if name == "tracks" else track


@pytest.mark.parametrize("model", [Track, Album, Tree])
def test_a_class_is_closed_as_the_client_of_the_api_closes_it(model: type[BaseModel]) -> None:
    theirs = jsonschema.Draft202012Validator(to_strict_json_schema(model))
    ours = jsonschema.Draft202012Validator(closed_schema(model.model_json_schema()))
    rng, found = random.Random(model.__name__), set()
    for _ in range(3000):
        value = random_value(rng)
        assert ours.is_valid(value) == theirs.is_valid(value), value
        found.add(ours.is_valid(value))
    assert found == {True, False}


def random_class(rng: random.Random, name: str, depth: int = 0) -> type[BaseModel]:
    """A class with required and optional fields of scalars, lists, unions, enums and other classes."""

    def random_type(depth: int) -> Any:
        kind = rng.randrange(9 if depth < 3 else 6)
        if kind < 6:
            return (str, int, bool, Color, Literal["leaf", 3], float)[kind]
        if kind == 6:
            return list[random_type(depth + 1)]  # type: ignore[misc]
        if kind == 7:
            return random_type(depth + 1) | None
        return random_class(rng, f"{name}_{rng.randrange(10**9)}", depth + 1)

    fields: dict[str, Any] = {}
    for i in range(rng.randrange(1, 4)):
        found = random_type(depth)
        default: Any = rng.choice([..., Field(description="d"), Field(default=None, title="t")])
        fields[f"f{i}"] = (found, default)
    return create_model(name, **fields)


def value_of(schema: Any, root: Any, rng: random.Random) -> Any:
    """A value that is valid for a schema of a class, with each property present or not as the schema demands."""
    if "$ref" in schema:
        return value_of(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, rng)
    if "anyOf" in schema:
        return value_of(rng.choice(schema["anyOf"]), root, rng)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    match schema["type"]:
        case "object":
            return {name: value_of(each, root, rng) for name, each in schema["properties"].items()}
        case "array":
            return [value_of(schema["items"], root, rng) for _ in range(rng.randrange(3))]
        case kind:
            return {"string": "s", "integer": 4, "boolean": True, "number": 0.5, "null": None}[kind]


def maps_in(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for each in value for found in maps_in(each)]
    return [value, *(found for each in value.values() for found in maps_in(each))] if isinstance(value, dict) else []


@pytest.mark.parametrize("seed", range(40))
def test_a_random_class_is_closed_as_the_client_of_the_api_closes_it(seed: int) -> None:
    rng = random.Random(seed)
    model = random_class(rng, f"Class{seed}")
    strict, closed = to_strict_json_schema(model), closed_schema(model.model_json_schema())
    theirs, ours = jsonschema.Draft202012Validator(strict), jsonschema.Draft202012Validator(closed)
    assert closed_schema(strict) == strict, "their schema is closed already"
    for _ in range(20):
        value = value_of(strict, strict, rng)
        assert theirs.is_valid(value)
        assert ours.is_valid(value), (closed, value)
        place = rng.choice(maps_in(value))
        if rng.random() < 0.5:
            del place[rng.choice(list(place))]
        else:
            place["undeclared"] = 1
        assert not theirs.is_valid(value)
        assert not ours.is_valid(value), (closed, value)


def test_the_given_schema_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "null"}}}}}
    before = repr(schema)
    closed = closed_schema(schema)
    assert repr(schema) == before
    assert closed["required"] == ["a"]
    assert closed["properties"]["a"] == {
        "type": "object",
        "properties": {"b": {"type": "null"}},
        "required": ["b"],
        "additionalProperties": False,
    }
    assert closed_schema(closed) == closed


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object", "additionalProperties": True}, "#/additionalProperties"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "#/additionalProperties"),
        ({"additionalProperties": STRING}, "#/additionalProperties"),
        ({"type": "object", "properties": {"a": {"type": "object", "patternProperties": {"^x": STRING}}}},
         "#/properties/a/patternProperties"),
        ({"type": "object", "properties": {"a": {}}}, "#/properties/a"),
        ({"type": "object", "properties": {"a": True}}, "#/properties/a"),
        ({"type": "object", "properties": {"a/b~": {"minimum": 3}}}, "#/properties/a~1b~0"),
        ({"type": "array"}, "#"),
        ({"type": ["array", "null"], "prefixItems": [STRING]}, "#"),
        ({"type": "array", "items": {}}, "#/items"),
        ({"type": "array", "items": {"type": "array", "items": [STRING]}}, "#/items"),
        ({"anyOf": [STRING, {"type": "object", "additionalProperties": {}}]}, "#/anyOf/1/additionalProperties"),
        ({"allOf": [{"type": "object"}, {"type": "object"}]}, "#/allOf"),
        ({"type": "object", "properties": {"a": STRING}, "allOf": [{"properties": {"b": STRING}}]}, "#/allOf/0"),
        ({"type": "object", "properties": {"a": STRING}, "$ref": "#/$defs/x", "$defs": {"x": STRING}}, "#/$ref"),
        ({"type": "object", "properties": {"a": STRING}, "if": {"required": ["a"]}, "then": {"properties": {"b": {}}}},
         "#/then"),
        ({"type": "object", "properties": {"a": STRING}, "dependentSchemas": {"a": {"properties": {}}}},
         "#/dependentSchemas/a"),
        ({"type": "object", "unevaluatedProperties": STRING}, "#/unevaluatedProperties"),
        ({"type": "object", "not": {"required": ["a"]}}, "#"),
        ({"$ref": "#/$defs/y", "$defs": {"x": STRING}}, "#/$ref"),
        ({"$ref": "https://example.com/x"}, "#/$ref"),
        ({"$dynamicRef": "#x"}, "#"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "additionalProperties": True}}},
         "#/$defs/x/additionalProperties"),
        (True, "#"),
        ({}, "#"),
        ([], "#"),
    ],
    ids=str,
)  # fmt: skip
def test_a_schema_that_stays_open_is_refused_by_place(schema: Any, place: str) -> None:
    with pytest.raises(GrammarError) as caught:
        closed_schema(schema)
    assert caught.value.location == place


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "object"}, [{}], [{"a": 1}]),
        (STRING, ["x"], [1]),
        ({"type": "integer", "not": {"const": 3}}, [1], [3]),
        ({"enum": [{"a": 1}, [2]]}, [{"a": 1}, [2]], [{}]),
        ({"type": "array", "items": False}, [[]], [[1]]),
        ({"type": "array", "prefixItems": [STRING], "items": False}, [["x"]], [["x", 1]]),
        (
            {"type": "object", "properties": {"a": STRING, "b": STRING}, "anyOf": [{"required": ["a"]}, True]},
            [{"a": "", "b": ""}],
            [{"a": ""}, {"a": "", "b": "", "c": ""}],
        ),
        (
            {"type": "object", "allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"properties": {"a": STRING}}}},
            [{"a": "x"}],
            [{}, {"a": "x", "b": 1}],
        ),
        (
            {"oneOf": [{"type": "object", "properties": {"a": STRING}}, {"type": "null"}]},
            [None, {"a": "x"}],
            [{}, {"a": "x", "b": 1}],
        ),
        (
            {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}},
            [{"next": None}, {"next": {"next": None}}],
            [{}, {"next": {}}, {"next": None, "x": 1}],
        ),
    ],
    ids=str,
)
def test_a_closed_schema_allows_nothing_undeclared_and_needs_all(schema: Any, good: list[Any], bad: list[Any]) -> None:
    validator = jsonschema.Draft202012Validator(closed_schema(schema))
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


def test_long_chains_and_deep_schemas_end() -> None:
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(20_000)}
    closed = closed_schema({"$ref": "#/$defs/d0", "$defs": {**chain, "d20000": {"type": "object"}}})
    assert closed["$defs"]["d20000"]["additionalProperties"] is False
    deep: dict[str, Any] = {"type": "null"}
    for _ in range(100_000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(GrammarError, match="nested too deeply"):
        closed_schema(deep)
    while isinstance(deep, dict):  # a deep value is taken apart by hand: freeing it recurses
        deep = deep.pop("items", None)  # type: ignore[assignment]


def test_a_tool_is_closed_with_strict_and_taken_as_it_is_without() -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "null"}}}}}
    plain = {"name": "f", "parameters": parameters}
    for more in ({}, {"strict": False}, {"strict": None}):
        (tool,) = read_tools([{**plain, **more}])
        assert tool.parameters == parameters
    (tool,) = read_tools([{**plain, "strict": True}])
    assert tool.required == {"x"}
    assert tool.properties["x"]["additionalProperties"] is False
    with pytest.raises(GrammarError, match=r"tool f: strict, but #/properties/a cannot be closed: expected a type"):
        read_tools([{"name": "f", "parameters": {"properties": {"a": {}}}, "strict": True}])
