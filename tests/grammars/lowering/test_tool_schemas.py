"""Places of errors in the schemas of tools, and what is widened then; `test_structure_check` compiles such tools."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.tool_grammar import tool_grammar
from rtlang_grammars.formats.tools import Tool, widened
from rtlang_grammars.lowering.tool_schemas import location_in_tool, tools_in, wider
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.structures import read_structure


def test_parameters_are_widened_one_by_one_and_then_all() -> None:
    names: frozenset[str] | None = frozenset()
    for place, expected in (("a", {"a"}), ("b~1c", {"a", "b/c"}), ("d", {"a", "b/c", "d"}), ("e", None)):
        assert names is not None
        names = wider(names, f"#/properties/{place}/pattern")
        assert names == (None if expected is None else frozenset(expected))
    assert wider(frozenset({"a"}), "#/properties/a/items") is None
    assert wider(frozenset(), "#/anyOf/0") is None
    assert wider(frozenset(), None) is None


@pytest.mark.parametrize("name", ["hermes", "qwen-coder"])
@pytest.mark.parametrize(
    ("schema", "given", "place"),
    [
        (
            {"properties": {"x": {"minimum": 5, "maximum": 3, "type": "integer"}}, "required": ["x"]},
            "#",
            "#/properties/x",
        ),
        ({"properties": {"x": {}}, "allOf": [{"type": "text"}]}, "#/allOf/0", "#/allOf/0"),
        ({"required": ["x"]}, "#/required", "#/required"),
    ],
)
def test_the_place_of_an_error_is_one_in_the_schema(schema: Any, given: str, place: str, name: str) -> None:
    error = GrammarError("wrong", given)
    assert location_in_tool(error, FORMATS[name], Tool("f", schema), None, Budget()) == place


def test_a_widened_tool_keeps_the_names_of_its_parameters() -> None:
    schema = {"properties": {"a": {"type": "text"}, "b": {"type": "integer"}}, "required": ["b"], "minProperties": 2}
    tool = Tool("f", schema)
    one = widened(tool, {"a"}).schema
    assert one["properties"] == {"a": True, "b": {"type": "integer"}}
    assert one["minProperties"] == 2
    everything = widened(tool, None).schema
    assert everything == {
        "type": "object",
        "properties": {"a": True, "b": True},
        "required": ["b"],
        "additionalProperties": False,
    }
    assert widened(Tool("f", {**schema, "additionalProperties": {"type": "string"}}), None).schema[
        "additionalProperties"
    ]


def test_the_tools_of_a_structure_are_found_wherever_they_are() -> None:
    tools = [{"name": "f"}, {"name": "g", "parameters": {}}]
    for name in FORMATS:
        part = read_structure(tool_grammar(name, tools).source)
        assert set(tools_in(part)) == {("f", None), ("g", "{}")}
