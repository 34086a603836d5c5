"""The schema compiler against jsonschema and the published suites, at the level of shapes, without automata."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.long_tests import sized
from tests.support.schemas.random_schemas import agree, composed, schemas, values
from tests.support.schemas.schema_suites import BENCH, TEST_SUITE, tally
from tests.support.schemas.shape_interpreter import shape_accepts


@pytest.mark.skipif(not BENCH.exists(), reason=f"needs {BENCH.name} of jsonschemabench beside the checkout")
def test_shapes_classify_every_instance_of_jsonschemabench_correctly(capsys: pytest.CaptureFixture[str]) -> None:
    result = tally(BENCH)
    with capsys.disabled():
        sys.stdout.write(f"\njsonschemabench: {result}\n")
    assert not result.wrong
    assert result.outcomes["fully right"] >= 0.98 * sum(result.outcomes[key] for key in ("compiled", "refused"))


@pytest.mark.skipif(
    not TEST_SUITE.exists(), reason=f"needs {TEST_SUITE.name} of the JSON Schema Test Suite beside the checkout"
)
def test_shapes_pass_the_json_schema_test_suite(capsys: pytest.CaptureFixture[str]) -> None:
    result = tally(TEST_SUITE)
    with capsys.disabled():
        sys.stdout.write(f"\nJSON Schema Test Suite: {result}\n")
    assert not result.wrong
    assert result.outcomes["refused"] <= 4


MANY_EXAMPLES = settings(
    max_examples=sized(300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@given(schema=schemas(), instances=st.lists(values, min_size=4, max_size=12))
@MANY_EXAMPLES
def test_shapes_of_random_schemas_agree_with_jsonschema(schema: Any, instances: list[Any]) -> None:
    agree(schema, instances, default_dialect="2020-12")


@given(
    schema=composed(schemas(unevaluated=True), unevaluated=True), instances=st.lists(values, min_size=4, max_size=12)
)
@MANY_EXAMPLES
def test_shapes_of_random_schemas_with_unevaluated_keywords_agree_with_jsonschema(
    schema: Any, instances: list[Any]
) -> None:
    agree(schema, instances, default_dialect="2020-12")


def refusal(schema: Any, **options: Any) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        compile_shapes(schema, options=SchemaOptions(**options))
    return caught.value


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        # enum and const with adjacent keywords and not
        ({"enum": ["a", "bb", 3, None, {"x": 1}], "not": {"type": "null"}, "minLength": 2, "minProperties": 2}, ["bb", 3], ["a", None]),
        ({"enum": [1, 2, 3], "not": {"const": 2}}, [1, 3.0], [2]),
        ({"not": {"enum": [1, 2]}, "type": "integer"}, [0, 3], [1, 2.0, "a"]),
        ({"not": {"const": [1, {}]}, "type": "array"}, [[], [1], [1, {}, 1], [2, {}], [1, {"a": 1}]], [[1, {}]]),
        ({"not": {"const": {"a": 1}}, "type": "object"}, [{}, {"a": 2}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"const": False}, [False], [0]),
        # overlapping branches of oneOf
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "a"], [3, 1.5]),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "b$"}], "type": "string"}, ["a", "b"], ["ab", "c"]),
        ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}], "type": "integer"}, [2, 3], [6, 5]),
        ({"not": {"oneOf": [{"minimum": 1}, {"maximum": 5}]}, "type": "number"}, [3], [0, 6]),
        # conditions
        (
            {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["a"]}, "else": {"required": ["b"]}, "type": "object"},
            [{"k": 1, "a": 0}, {"a": 0}, {"k": 2, "b": 0}],
            [{"k": 1, "b": 0}, {"k": 2}, {}],
        ),
        ({"dependentRequired": {"a": ["b"]}, "type": "object"}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"dependentSchemas": {"a": {"maxProperties": 1}}, "type": "object"}, [{"b": 1, "c": 1}, {"a": 1}], [{"a": 1, "b": 1}]),
        # property names
        (
            {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}}, "additionalProperties": False},
            [{"ab": 3}, {"a": 1}, {"b": 4}, {"b": "x"}],
            [{"ab": 2}, {"b": 2}, {"ab": "x"}, {"c": 1}],
        ),
        ({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 2}, [{"a": 1, "b": 2}], [{"a": 1}, {"a": 1, "c": 1}]),
        ({"type": "object", "propertyNames": {"maxLength": 1}}, [{"a": 1}, {}], [{"ab": 1}]),
        # items
        ({"type": "array", "contains": {"type": "integer"}, "maxContains": 2}, [[1], [1, "a", 2]], [[], ["a"], [1, 2, 3]]),
        ({"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}]}, [[1, 2], [2, 3, 1]], [[1], [2, 2]]),
        ({"type": "array", "uniqueItems": True, "items": {"enum": ["x", "y"]}}, [[], ["x"], ["y", "x"]], [["x", "x"]]),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False, "minItems": 1}, [["a"]], [[], [1], ["a", 1]]),
        ({"not": {"items": {"type": "string"}}, "type": "array"}, [[1], ["a", 1]], [[], ["a"]]),
        # unevaluated properties and items
        (
            {"allOf": [{"properties": {"a": True}}], "anyOf": [{"properties": {"b": {"type": "integer"}}}, True],
             "unevaluatedProperties": False, "type": "object"},
            [{"a": 1}, {"b": 1}],
            [{"b": "x"}, {"c": 1}],
        ),
        ({"prefixItems": [True], "contains": {"type": "string"}, "unevaluatedItems": False, "type": "array"}, [[1, "a"]], [[1, "a", 2]]),
        # numeric bounds and multiples
        ({"type": "number", "minimum": 0.1, "exclusiveMaximum": 0.3, "multipleOf": 0.1}, [0.1, 0.2], [0.3, 0.15, 0]),
        ({"type": "integer", "not": {"multipleOf": 2}, "minimum": 0, "maximum": 4}, [1, 3], [0, 2, 4]),
    ],
    ids=lambda value: json.dumps(value)[:40],
)  # fmt: skip
def test_combinations_of_keywords_are_enforced_exactly(schema: Any, good: list[Any], bad: list[Any]) -> None:
    graph = compile_shapes(schema)
    assert graph.report.is_exact
    assert [value for value in good if not shape_accepts(graph, value)] == []
    assert [value for value in bad if shape_accepts(graph, value)] == []


@pytest.mark.parametrize(
    ("schema", "pointer", "reason"),
    [
        ({"$ref": "http://example.com/other"}, "#", "never fetched"),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, "#/properties/a", "nothing at this JSON pointer"),
        ({"$ref": "#nowhere"}, "#", "no anchor 'nowhere'"),
        ({"$ref": "#/enum", "enum": [1]}, "#", "must be an object or a boolean, not an array"),
        ({"$ref": "#"}, "#", "leads back to itself"),
        ({"allOf": [{"$ref": "#"}]}, "#", "refers to itself"),
        ({"properties": {"a/b": {"type": "text"}}}, "#/properties/a~1b", "type must be one of"),
        ({"items": {"minimum": "1"}}, "#/items", "minimum must be a number, not the string '1'"),
        ({"required": ["a", 1]}, "#", "each item of required must be a string, not 1"),
        ({"pattern": "("}, "#", "pattern"),
        ({"multipleOf": 0}, "#", "multipleOf must be greater than 0, not 0"),
        ({"minLength": -1}, "#", "minLength must be a non-negative integer, not -1"),
        pytest.param({"maxItems": -(10**5000)}, "#", "maxItems must be a non-negative integer", id="huge"),
        ({"uniqueItems": None}, "#", "uniqueItems must be a boolean, not null"),
        ({"anyOf": []}, "#", "must not be empty"),
        ({"type": "string", "enum": [1]}, "#", "nothing satisfies"),
        ({"$schema": "http://example.com/mine"}, "#", "unknown dialect"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "exclusiveMinimum": True}, "#", "exclusiveMinimum"),
        ([], "#", "an object or a boolean"),
        ({"minimum": float("inf")}, None, "finite"),
    ],
    ids=lambda value: json.dumps(value)[:30],
)
def test_an_invalid_schema_is_refused_with_the_keyword_and_its_location(
    schema: Any, pointer: str | None, reason: str
) -> None:
    error = refusal(schema)
    assert error.location == pointer
    assert reason in error.reason


def _nested(depth: int, wrap: Any, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


ADVERSARIAL: dict[str, Any] = {
    "enum of 60,000": {"enum": [f"v{index}" for index in range(60_000)]},
    "not enum of 60,000": {"type": "string", "not": {"enum": [f"v{index}" for index in range(60_000)]}},
    "5,000 branches": {"oneOf": [{"const": f"v{index}"} for index in range(5_000)]},
    "10,000 properties": {"type": "object", "properties": {f"p{index}": {"type": "string"} for index in range(10_000)}},
    "not 10,000 properties": {"not": {"properties": {f"p{index}": {"type": "string"} for index in range(10_000)}}},
    "300 deep": _nested(300, lambda inner: {"type": "object", "properties": {"a": inner}}, {"type": "string"}),
    "300 deep in place": _nested(300, lambda inner: {"allOf": [inner]}, {"type": "string"}),
    "900 deep value": {"const": _nested(900, lambda inner: [inner], 1)},
    "1e6 items": {"type": "array", "minItems": 1_000_000, "items": {"type": "string"}},
    "1e6 unique items": {"type": "array", "minItems": 1_000_000, "items": {"enum": [1, 2]}, "uniqueItems": True},
    "30 patterns": {"type": "string", "allOf": [{"pattern": f"a{index}|b{index}"} for index in range(30)]},
    "30 name patterns": {"patternProperties": {f"a{index}|b{index}": {"minimum": index} for index in range(30)}},
    "2^20 cases": {"allOf": [{"anyOf": [{"required": [f"a{index}"]}, {"required": [f"b{index}"]}]} for index in range(20)]},
    "2^15 evaluations": {"anyOf": [{"properties": {f"p{index}": True}} for index in range(15)], "unevaluatedProperties": False},
    "2^25 paths": {
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}]}]} for i in range(25)},
            "d25": {"type": "object"},
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_schemas_stay_within_their_budget(name: str) -> None:
    budget = Budget(Limits(max_seconds=30.0))  # this tests the number of states, on a machine of any speed
    graph, reason = None, ""
    try:
        graph = compile_shapes(ADVERSARIAL[name], budget=budget)
    except GrammarError as error:
        reason = error.reason
    assert graph is None or graph.shapes[graph.root].alternatives
    assert "takes more than" not in reason
    assert budget.num_states <= budget.limits.max_states


def test_schemas_of_several_megabytes_compile() -> None:
    described = {f"option_{number}": {"type": "string", "description": "what it does " * 60} for number in range(4000)}
    source = json.dumps({"type": "object", "properties": described})
    assert 3 << 20 < len(source) < 4 << 20
    Budget().check_source(source)
    graph = compile_shapes(json.loads(source))
    assert shape_accepts(graph, {"option_3999": "x"})
    assert not shape_accepts(graph, {"option_3999": 1})
    with pytest.raises(GrammarError, match="too long"):
        Budget().check_source(source + " " * (1 << 20))


def test_lenient_keywords_are_reported_as_ignored() -> None:
    graph = compile_shapes({"type": "string", "pattern": "^a"}, options=SchemaOptions(lenient=frozenset({"pattern"})))
    assert shape_accepts(graph, "b")
    assert [(each.keyword, each.reason) for each in graph.report.with_status(KeywordStatus.IGNORED)] == [
        ("pattern", "ignored at the request of the caller (lenient)")
    ]


def test_no_shape_of_a_graph_is_empty() -> None:
    graph = compile_shapes(
        {"properties": {"a": {"type": "string"}, "b": {"allOf": [{"type": "string"}, {"type": "null"}]}}}
    )
    assert all(shape.alternatives for shape in graph.shapes)
    assert shape_accepts(graph, {"a": "x"})
    assert not shape_accepts(graph, {"b": None})


def test_equal_subschemas_share_a_shape() -> None:
    point: Any = {
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number", "title": "the other"}},
    }
    graph = compile_shapes(
        {"type": "object", "properties": {f"p{index}": point for index in range(50)}, "additionalProperties": False}
    )
    assert len(graph.shapes) == 4  # the root, the point, the number, and the additional properties of a point


def test_unique_items_of_infinitely_many_values_are_reported_as_checked() -> None:
    graph = compile_shapes({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    assert [(each.pointer, each.keyword) for each in graph.report.with_status(KeywordStatus.CHECKED)] == [
        ("#", "uniqueItems")
    ]
    assert compile_shapes({"type": "array", "uniqueItems": True, "maxItems": 1}).report.is_exact
