"""The check of finished values: exact numbers, our patterns and formats, every draft, and a clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.value_checks import CheckTimeError, ValueCheck, value_check
from rtlang_grammars.spec.errors import GrammarError
from tests.support.long_tests import sized
from tests.support.schemas.random_schemas import composed, schemas, values
from tests.support.schemas.schema_suites import BENCH, TEST_SUITE, entries, options_of

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_04 = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"multipleOf": 0.1}, ["0.3", "1e2", "7"], ["0.35"]),
        ({"maximum": 0.1}, ["0.1"], ["0.10000000000000000001"]),
        ({"type": "integer"}, ["1.0", "1e3"], ["1.5", '"a"']),
        ({"$schema": DRAFT_04, "type": "integer"}, ["1"], ["1.0"]),
        ({"type": "array", "uniqueItems": True}, ["[1, true]", "[]"], ["[1, 1.0]", '[{"a": 1}, {"a": 1.0}]']),
        ({"pattern": r"^\d+$"}, ['"12"'], ['"１"', '"1\\n"']),
        ({"patternProperties": {"^\\d$": {"type": "null"}}, "additionalProperties": False}, ['{"1": null}'], ['{"a": 1}', '{"1": 1}']),
        ({"format": "date"}, ['"2024-02-29"'], ['"2023-02-29"']),
        ({"format": "regex"}, ['"a+"', "3"], ['"("']),
        ({"$schema": DRAFT_07, "items": [{"type": "null"}], "additionalItems": False}, ["[null]"], ["[null, 1]", "[1]"]),
        ({"$schema": DRAFT_07, "$ref": "#/definitions/a", "type": "null", "definitions": {"a": {"type": "string"}}}, ['"a"'], ["null"]),
        ({"$schema": DRAFT_07, "properties": {"a": {"$ref": "#"}}, "multipleOf": 0.1}, ['{"a": 0.3}'], ['{"a": 0.35}']),
        ({"dependencies": {"a": ["b"]}, "items": [True]}, ['{"b": 1}'], ['{"a": 1}']),
        ({"$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t", "not": {"type": "string"}}, ["[[1]]"], ['"a"']),
        ({"prefixItems": [{"type": "null"}], "unevaluatedItems": False}, ["[null]"], ["[null, 1]"]),
    ],
    ids=str,
)  # fmt: skip
def test_values_are_judged_exactly(schema: Any, good: list[str], bad: list[str]) -> None:
    check = value_check(schema)
    assert [(text, why) for text in good if (why := check.error_in(text)) is not None] == []
    assert [text for text in bad if check.error_in(text) is None] == []


@given(schemas() | composed(schemas(unevaluated=True), unevaluated=True), st.lists(values, min_size=4, max_size=12))
@settings(max_examples=sized(300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_values_are_judged_as_jsonschema_does(schema: Any, instances: list[Any]) -> None:
    check, oracle = value_check(schema, SchemaOptions(default_dialect="2020-12")), Draft202012Validator(schema)
    assert [check.error(each) is None for each in instances] == [oracle.is_valid(each) for each in instances]


def said_of(check: ValueCheck, value: Any) -> bool | str:
    """Whether a value is valid, or why that cannot be said."""
    try:
        return check.error(value) is None
    except GrammarError as error:
        return error.reason


@pytest.mark.parametrize("path", [BENCH, TEST_SUITE], ids=lambda path: path.parent.name)
def test_values_of_the_suites_are_judged_rightly(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path.parent.name} is not beside the checkout")
    wrong = []
    for entry in entries(path):
        check = value_check(entry["schema"], options_of(entry), max_seconds=30)
        for test in entry["tests"]:
            said = said_of(check, test["data"])
            if said is not test["valid"] and "xn--" not in str(test["data"]):
                wrong.append((entry["id"], test, said))
    wrong = [
        each for each in wrong if not (isinstance(each[2], str) and ("fetched" in each[2] or "dialect" in each[2]))
    ]
    assert wrong == []


def test_options_are_those_of_the_compile() -> None:
    schema = {"format": "date", "type": "string", "minLength": 2}
    assert value_check(schema, SchemaOptions(assert_formats=False)).error_in('"aa"') is None
    assert value_check(schema, SchemaOptions(lenient=frozenset({"format", "minLength"}))).error_in('"a"') is None
    assert value_check({"items": [{}]}, SchemaOptions(default_dialect="2019-09")).error_in("[1]") is None


def test_an_error_says_where_in_the_value() -> None:
    check = value_check({"properties": {"a/b": {"items": {"type": "string"}}}})
    assert str(check.error_in('{"a/b": ["x", 3]}')).endswith("(at #/a~1b/1)")
    assert "not JSON" in str(check.error_in("{"))
    assert "not JSON" in str(check.error_in("9" * 5000))  # more digits than Python reads


def test_a_check_ends_in_time_and_depth() -> None:
    schema: Any = {"$defs": {"d20": {}}, "$ref": "#/$defs/d0"}
    for index in range(20):
        schema["$defs"][f"d{index}"] = {"allOf": [{"$ref": f"#/$defs/d{index + 1}"}] * 2}
    with pytest.raises(CheckTimeError, match="too long"):
        value_check(schema, max_seconds=0.01).error(1)
    nested = "[" * 900 + "]" * 900
    with pytest.raises(CheckTimeError, match="deeply"):
        value_check({"items": {"$ref": "#"}}, max_seconds=30).error_in(nested)
