"""Resolution of references by JSON pointer, anchor, identifier and dynamic scope, including recursive schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.protocols import Validator

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.documents import Documents, join_uri
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.schemas.random_schemas import agree, values
from tests.support.schemas.shape_interpreter import shape_accepts

RECURSIVE: list[tuple[Any, type[Validator]]] = [
    (
        {"$ref": "#/$defs/n", "$defs": {"n": {"type": ["object", "null"], "properties": {"n": {"$ref": "#/$defs/n"}}}}},
        Draft202012Validator,
    ),
    ({"properties": {"a": {"allOf": [{"$ref": "#"}, {"minProperties": 1}]}}, "type": "object"}, Draft202012Validator),
    ({"not": {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "type": "object"}, Draft202012Validator),
    ({"oneOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}, Draft7Validator),
    (
        {"type": "object", "additionalProperties": {"$recursiveRef": "#"}, "$recursiveAnchor": True},
        Draft201909Validator,
    ),
    (
        {"$id": "t:x", "$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}, "type": ["array", "integer"]},
        Draft202012Validator,
    ),
    (
        {"id": "http://h.example/s", "definitions": {"a": {"id": "#a", "type": "integer"}}, "items": {"$ref": "#a"}},
        Draft4Validator,
    ),
]


@pytest.mark.parametrize(("schema", "validator"), RECURSIVE, ids=[json.dumps(schema)[:40] for schema, _ in RECURSIVE])
@given(instances=st.lists(values, min_size=8, max_size=20))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_shapes_of_recursive_schemas_agree_with_jsonschema(
    schema: Any, validator: type[Validator], instances: list[Any]
) -> None:
    draft: dict[Any, str] = {Draft4Validator: "draft-04", Draft7Validator: "draft-07", Draft201909Validator: "2019-09"}
    agree(schema, instances, validator, default_dialect=draft.get(validator, "2020-12"))


def test_a_schema_that_only_an_infinite_instance_satisfies_is_refused() -> None:
    with pytest.raises(GrammarError, match="nothing satisfies"):
        compile_shapes({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})


def test_a_conjunction_of_mutually_recursive_schemas_has_few_shapes() -> None:
    definitions = {
        "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/b"}}}, "b": {"properties": {"x": {"$ref": "#/$defs/a"}}}}
    }
    graph = compile_shapes({**definitions, "type": "object", "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]})
    assert len(graph.shapes) <= 4


def test_a_published_meta_schema_can_be_referenced() -> None:
    graph = compile_shapes({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert shape_accepts(graph, {"properties": {"a": {"minLength": 1, "items": {"type": ["string", "null"]}}}})
    assert not shape_accepts(graph, {"properties": {"a": {"minLength": -1}}})
    assert not shape_accepts(graph, {"items": {"type": ["text"]}})


def test_references_to_the_same_location_resolve_to_the_same_node() -> None:
    documents = Documents(
        {"$defs": {"a": {"$anchor": "x"}}, "properties": {"p": {"$ref": "#x"}, "q": {"$ref": "#/$defs/a"}}}, Budget()
    )
    root = documents.root_node()
    by_name = documents.resolve(documents.child(root, "properties", "p"), "$ref")
    assert documents.resolve(documents.child(root, "properties", "q"), "$ref") is by_name
    assert by_name.location == "#/$defs/a"


@pytest.mark.parametrize(
    ("base", "reference", "joined"),
    [
        ("http://a.example/b/c", "d", "http://a.example/b/d"),
        ("http://a.example/b/c#x", "#y", "http://a.example/b/c#y"),
        ("urn:a:b", "#y", "urn:a:b#y"),
        ("", "d#e", "d#e"),
    ],
)
def test_references_are_resolved_against_the_base_uri(base: str, reference: str, joined: str) -> None:
    assert join_uri(base, reference) == joined


def test_a_document_is_refused_only_if_it_is_nested_more_deeply_than_the_limits_allow() -> None:
    schema: Any = {"type": "string"}
    for _ in range(30):
        schema = {"properties": {"a": schema}}
    Documents(schema, Budget(Limits(max_depth=20)))
    with pytest.raises(GrammarError, match="nested too deeply") as caught:
        Documents({"items": {}, "properties": {"x/y": schema}}, Budget(Limits(max_depth=10)))
    assert caught.value.location == "#/properties/x~1y" + "/properties/a" * 5
