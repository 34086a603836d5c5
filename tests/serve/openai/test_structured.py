"""Every way to ask for structured output becomes the same constraint; two ways at once and malformed ones are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.serve.openai.structured import grammar_constraint, read_structured, read_style
from rtlang_grammars import JsonStyle, Numbers, PropertyOrder, Whitespace
from tests.support.grammars.type_walks import byte_backend

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
JSON = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA))
CLOSED = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA | {"additionalProperties": False}))
OBJECT = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "object"}))
GBNF = 'root ::= "a" | "b"'
LARK = 'start: "x" "y"'
TAG = {
    "type": "structural_tag",
    "triggers": ["<f"],
    "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}],
}


@pytest.mark.parametrize(
    ("body", "constraint"),
    [
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": SCHEMA, "strict": True},
                }
            },
            CLOSED,
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": json.dumps(SCHEMA), "strict": False},
                }
            },
            JSON,
        ),
        ({"response_format": {"type": "json_object"}}, OBJECT),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, JSON),
        ({"response_format": {"type": "json_object", "value": SCHEMA}}, JSON),
        ({"response_format": {"type": "json", "value": SCHEMA}}, JSON),
        ({"response_format": {"type": "regex", "value": "a+"}}, Constraint(ConstraintKind.REGEX, "a+")),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, OBJECT),
        ({"structured_outputs": {"json": SCHEMA}}, JSON),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, JSON),
        ({"structured_outputs": {"json_object": True}}, OBJECT),
        (
            {"structured_outputs": {"regex": "a+", "disable_any_whitespace": False}},
            Constraint(ConstraintKind.REGEX, "a+"),
        ),
        ({"structured_outputs": {"choice": ["é", "b"]}}, Constraint(ConstraintKind.CHOICE, '["é", "b"]')),
        ({"structured_outputs": {"grammar": GBNF}}, Constraint(ConstraintKind.GBNF, GBNF)),
        ({"guided_json": SCHEMA}, JSON),
        ({"guided_regex": "a+"}, Constraint(ConstraintKind.REGEX, "a+")),
        ({"guided_choice": ["a"]}, Constraint(ConstraintKind.CHOICE, '["a"]')),
        ({"guided_grammar": LARK}, Constraint(ConstraintKind.LARK, LARK)),
        ({"json_schema": json.dumps(SCHEMA)}, JSON),
        ({"regex": "a+"}, Constraint(ConstraintKind.REGEX, "a+")),
        ({"ebnf": GBNF}, Constraint(ConstraintKind.GBNF, GBNF)),
    ],
)
def test_a_field_becomes_a_constraint(body: dict[str, Any], constraint: Constraint) -> None:
    found = read_structured(body)
    assert found is not None
    assert found.constraint == constraint
    assert found.field.split(".")[0] in body
    assert found.is_json is (constraint.kind is ConstraintKind.JSON_SCHEMA)


def test_structural_tags_are_read() -> None:
    for body in ({"response_format": TAG}, {"structured_outputs": {"structural_tag": json.dumps(TAG)}}):
        found = read_structured(body)
        assert found is not None
        assert found.constraint.kind is ConstraintKind.STRUCTURE


STYLE = {"order": "any", "numbers": "any", "whitespace": "compact"}
STYLED = JsonStyle(Whitespace.COMPACT, PropertyOrder.ANY, numbers=Numbers.ANY)


@pytest.mark.parametrize(
    "body",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
        {"response_format": {"type": "json_object"}},
        {"response_format": TAG},
        {"structured_outputs": {"json": SCHEMA}},
        {"structured_outputs": {"structural_tag": json.dumps(TAG)}},
        {"guided_json": SCHEMA},
        {"json_schema": json.dumps(SCHEMA)},
    ],
    ids=str,
)
def test_the_style_of_a_request_is_that_of_its_json(body: dict[str, Any]) -> None:
    plain, styled = read_structured(body), read_structured(body | {"json_style": STYLE})
    assert plain is not None
    assert styled is not None
    assert plain.constraint.style == JsonStyle()
    assert styled.constraint.style == STYLED
    assert read_style({"json_style": {"order": "declared"}}) == JsonStyle(order=PropertyOrder.DECLARED)


def test_tags_of_parameters_in_xml_follow_the_order_of_the_style() -> None:
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}
    content = {"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}
    body = {"response_format": {"type": "structural_tag", "format": content}}
    plain, styled = read_structured(body), read_structured(body | {"json_style": STYLE})
    assert plain is not None
    assert styled is not None
    backward = b"<parameter=a>\nx\n</parameter>\n<parameter=b>\nx\n</parameter>\n"
    for structured, accepts in ((plain, False), (styled, True)):
        assert byte_backend().compile(structured.constraint).matcher().accepts([*backward, 256]) is accepts


@pytest.mark.parametrize("body", [{}, {"response_format": {"type": "text"}}, {"guided_json_object": False}])
def test_a_request_may_ask_for_nothing(body: dict[str, Any]) -> None:
    assert read_structured(body) is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"regex": "a", "ebnf": GBNF}, "regex"),
        ({"response_format": {"type": "json_object"}, "guided_choice": ["a"]}, "response_format"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}},
            "response_format.json_schema.schema",
        ),
        ({"response_format": {"type": "json_object", "mode": 1}}, "response_format.mode"),
        ({"response_format": {"type": "json_object", "schema": SCHEMA, "value": SCHEMA}}, "response_format.value"),
        ({"response_format": {"type": "json"}}, "response_format.value"),
        ({"response_format": {"type": "json", "value": 3}}, "response_format.value"),
        ({"response_format": {"type": "regex"}}, "response_format.value"),
        ({"response_format": {"type": "structural_tag"}}, "response_format"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs"),
        ({"structured_outputs": {"whitespace_pattern": " "}}, "structured_outputs.whitespace_pattern"),
        ({"structured_outputs": {"regex": "a", "disable_fallback": True}}, "structured_outputs.disable_fallback"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_choice": "a"}, "guided_choice"),
        ({"regex": 3}, "regex"),
        ({"ebnf": {}}, "ebnf"),
        ({"json_style": "any"}, "json_style"),
        ({"json_style": {"order": "sorted"}}, "json_style.order"),
        ({"json_style": {"numbers": ["any"]}}, "json_style.numbers"),
        ({"json_style": {"indent": 2}}, "json_style.indent"),
    ],
)
def test_malformed_requests_name_the_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_structured(body)
    assert caught.value.field.removeprefix(caught.value.field.split(".")[0]) == field.removeprefix(field.split(".")[0])
    assert caught.value.field.split(".")[0] in body


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (GBNF, ConstraintKind.GBNF),
        (f"# a comment\n\n{GBNF}", ConstraintKind.GBNF),
        ("digit ::= [0-9]\nnumber ::= digit+", ConstraintKind.EBNF),
        (LARK, ConstraintKind.LARK),
        ('start: "::=" NAME\nNAME: /[a-z]+/', ConstraintKind.LARK),
        ("start: A\nA: /x ::= y/", ConstraintKind.LARK),
    ],
)
def test_the_notation_of_a_grammar_is_detected(source: str, kind: ConstraintKind) -> None:
    assert grammar_constraint(source).kind is kind
