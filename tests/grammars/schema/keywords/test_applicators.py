"""In-place applicators: the number of cases that disjunctions expand to, and their validity."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.schema.shape_graph.shapes import StringShape
from rtlang_grammars.spec.errors import GrammarError
from tests.support.schemas.shape_interpreter import shape_accepts

KINDS = [f"k{index}" for index in range(14)]


def _if(index: int, required: bool) -> dict[str, Any]:
    condition: dict[str, Any] = {"properties": {"kind": {"const": KINDS[index]}}}
    if required:
        condition["required"] = ["kind"]
    return {"if": condition, "then": {"required": [f"x{index}"]}, "else": {"properties": {f"x{index}": False}}}


def _branch(index: int) -> dict[str, Any]:
    return {
        "properties": {"kind": {"const": KINDS[index]}, f"x{index}": {"type": "integer"}, "c": {"maxLength": index}}
    }


CHAINS: dict[str, Any] = {
    "conditions": {
        "properties": {"kind": {"enum": KINDS}},
        "required": ["kind"],
        "allOf": [_if(i, False) for i in range(14)],
    },
    "conditions on presence": {"properties": {"kind": {"enum": KINDS}}, "allOf": [_if(i, True) for i in range(14)]},
    "branches in a context": {"required": ["kind"], "oneOf": [_branch(i) for i in range(14)]},
    "branches below allOf": {"required": ["kind"], "allOf": [{"oneOf": [_branch(i) for i in range(14)]}]},
}


@pytest.mark.parametrize("name", CHAINS)
def test_conditions_on_one_property_expand_to_one_case_for_each_of_its_values(name: str) -> None:
    schema = {"type": "object", **CHAINS[name]}
    graph = compile_shapes(schema)
    assert graph.report.is_exact
    assert len(graph.shapes[graph.root].alternatives) <= len(KINDS) + 1
    oracle = Draft202012Validator(schema)
    values: list[dict[str, Any]] = [{}, {"x1": 1}, {"kind": "other"}]
    for kind in ("k0", "k1", "k13"):
        values += [
            {"kind": kind},
            {"kind": kind, "x1": 1},
            {"kind": kind, "x13": "a"},
            {"kind": kind, "c": "aa", "x0": 0},
        ]
    for value in values:
        assert shape_accepts(graph, value) is oracle.is_valid(value), value


def test_a_one_of_with_too_many_overlapping_branches_is_reported_as_checked_and_accepts_all_valid_instances() -> None:
    schema = {
        "type": "object",
        "oneOf": [{"properties": {f"x{i}": {"type": "integer"}, f"y{i}": {"minimum": i}}} for i in range(30)],
    }
    graph = compile_shapes(schema, options=SchemaOptions(max_alternatives=64))
    assert [each.keyword for each in graph.report.with_status(KeywordStatus.CHECKED)] == ["oneOf"]
    only_one = {f"x{i}": "no" for i in range(29)}
    assert Draft202012Validator(schema).is_valid(only_one)
    assert shape_accepts(graph, only_one)


def test_an_all_of_that_expands_to_too_many_cases_is_refused_with_its_location() -> None:
    cases = [{"anyOf": [{"required": [f"a{index}"]}, {"required": [f"b{index}"]}]} for index in range(13)]
    with pytest.raises(GrammarError, match="allOf expands to more than 4096 cases") as caught:
        compile_shapes({"properties": {"p": {"type": "object", "allOf": cases}}})
    assert caught.value.location == "#/properties/p"


def test_a_thousand_const_branches_become_one_alternative() -> None:
    graph = compile_shapes({"anyOf": [{"const": f"v{index}"} for index in range(1000)]})
    assert len(graph.shapes[graph.root].alternatives) == 1


def test_many_overlapping_patterns_or_steps_in_one_of_are_checked_and_disjoint_ones_are_exact() -> None:
    overlapping: dict[str, tuple[list[dict[str, Any]], Any]] = {
        "patterns": (
            [{"type": "string", "pattern": f"^[a-z]*{letter}[a-z]*$"} for letter in "abcdefghijklmnopqrstuvwx"],
            "ayz",
        ),
        "steps": ([{"type": "integer", "multipleOf": 2 * i + 3} for i in range(24)], 2 * 23 + 3),
    }
    for branches, value in overlapping.values():
        schema = {"oneOf": branches}
        graph = compile_shapes(schema)
        assert [each.keyword for each in graph.report.with_status(KeywordStatus.CHECKED)] == ["oneOf"]
        assert shape_accepts(graph, value)
    disjoint = {"oneOf": [{"type": "string", "pattern": f"^k{i}-[a-z]+$"} for i in range(24)]}
    graph = compile_shapes(disjoint)
    assert graph.report.is_exact
    for value in ("k3-ab", "k23-a", "k24-a", "k3-", 3):
        assert shape_accepts(graph, value) is Draft202012Validator(disjoint).is_valid(value), value


def test_many_patterns_at_one_place_are_one_string() -> None:
    branches = [
        {"type": "string", "pattern": f"^{letter}+[a-f]*$", "maxLength": i + 2} for i, letter in enumerate("abcdef")
    ]
    schema = {"anyOf": [*branches, {"type": "string", "minLength": 9}, {"enum": ["b!", 4]}]}
    graph = compile_shapes(schema)
    (shape,) = [each for each in graph.shapes if len(each.alternatives) > 1]
    assert sum(isinstance(each, StringShape) for each in shape.alternatives) == 2
    oracle = Draft202012Validator(schema)
    for value in ("", "a", "aa", "aaa", "bcf", "bcff", "fabcdef", "fabcdeff", "ffffffffff", "b!", "c!", 4, 5):
        assert shape_accepts(graph, value) is oracle.is_valid(value), value
