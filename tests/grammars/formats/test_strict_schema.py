"""Strict schemas: what is closed, against the client library of the OpenAI API and jsonschema; what cannot be closed, by place."""

from __future__ import annotations

import random
from enum import Enum
from typing import Any, Literal

import jsonschema
import pytest
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field

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
