"""Keywords that apply only if a property is present."""

from __future__ import annotations

from jsonschema import Draft7Validator

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from tests.support.schemas.shape_interpreter import shape_accepts


def test_dependencies_on_the_values_of_one_property_expand_to_one_case_for_each_value() -> None:
    kinds = ["text", "number", "list"]
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": kinds}},
        "dependencies": {
            f"{kind}{index}": {"properties": {"kind": {"enum": [kind]}}} for kind in kinds for index in range(6)
        },
    }
    graph = compile_shapes(schema, options=SchemaOptions(default_dialect="draft-07"))
    oracle = Draft7Validator(schema)
    for value in ({}, {"kind": "text"}, {"kind": "none"}, {"text1": 0, "list1": 0}, {"kind": "list", "list1": 0, "list5": 1},
                  {"kind": "list", "text1": 0}, {"kind": "list", "list1": 0, "text1": 0}, {"kind": 3, "text1": 0}):  # fmt: skip
        assert shape_accepts(graph, value) is oracle.is_valid(value), value
    assert len(graph.shapes[graph.root].alternatives) == len(kinds) + 1
