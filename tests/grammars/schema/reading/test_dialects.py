"""Detection of the dialect of a schema, and the differences between dialects."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.dialects import detect_dialect, survey
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.schema.value_checks import value_check
from rtlang_grammars.spec.errors import GrammarError
from tests.support.schemas.shape_interpreter import shape_accepts


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "draft-04"),
        ({"$schema": "https://json-schema.org/draft-07/schema"}, "draft-07"),
        ({"$schema": "http://json-schema.org/schema#"}, "2020-12"),
        ({"properties": {"dependencies": {"type": "object"}, "items": {"enum": [[1]]}}}, "2020-12"),
        ({"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}, "draft-04"),
        ({"items": [{"type": "string"}], "additionalItems": False}, "2019-09"),
        ({"dependencies": {"a": ["b"]}}, "2019-09"),
        (True, "2020-12"),
    ],
)
def test_the_dialect_is_detected(schema: Any, name: str) -> None:
    assert detect_dialect(schema, survey(schema, 100)).name == name


def test_formats_are_asserted_if_the_dialect_defines_them_and_the_options_ask_for_it() -> None:
    date = {"type": "string", "format": "date"}
    assert not shape_accepts(compile_shapes(date), "2023-02-29")
    assert shape_accepts(compile_shapes({**date, "$schema": "http://json-schema.org/draft-04/schema#"}), "2023-02-29")
    assert shape_accepts(compile_shapes(date, options=SchemaOptions(assert_formats=False)), "2023-02-29")


def test_only_draft_04_does_not_accept_a_number_with_a_zero_fraction_as_an_integer() -> None:
    graph = compile_shapes({"type": "integer"}, options=SchemaOptions(default_dialect="draft-04"))
    assert shape_accepts(graph, 1)
    assert not shape_accepts(graph, 1.0)
    assert shape_accepts(compile_shapes({"type": "integer"}), 1.0)


@pytest.mark.parametrize("keyword", ["type", "enum", "const"])
def test_lenient_keywords_do_not_restrict_the_types(keyword: str) -> None:
    schema = {keyword: {"type": "string", "enum": ["a"], "const": "a"}[keyword], "maximum": 3}
    graph = compile_shapes(schema, options=SchemaOptions(lenient=frozenset({keyword})))
    assert shape_accepts(graph, 1)
    assert shape_accepts(graph, "b")
    assert not shape_accepts(graph, 4)


CUSTOM_DIALECT = "https://example.com/mine"
VOCABULARIES = "https://json-schema.org/draft/2020-12/vocab/"


def schema_with_meta_schema(
    vocabulary: Any, base: str = "https://json-schema.org/draft/2020-12/schema"
) -> dict[str, Any]:
    meta_schema = {
        "$id": CUSTOM_DIALECT,
        "$schema": base,
        **({} if vocabulary is None else {"$vocabulary": vocabulary}),
    }
    schema = {"properties": {"bad": False, "number": {"minimum": 10}, "text": {"format": "ipv4"}}, "type": "object"}
    return {"$schema": CUSTOM_DIALECT, "$defs": {"meta": meta_schema}, **schema}


@pytest.mark.parametrize(
    ("names", "rejected"),
    [
        (None, {"bad", "number", "text", "type"}),
        (("core", "applicator", "validation", "format-annotation"), {"bad", "number", "text", "type"}),
        (("core", "applicator", "meta-data"), {"bad"}),
        (("core", "validation"), {"type"}),
        (("core", "applicator", "format-assertion"), {"bad", "text"}),
        ((), set()),
    ],
)
def test_the_vocabularies_of_an_embedded_meta_schema_decide_which_keywords_are_enforced(
    names: tuple[str, ...] | None, rejected: set[str]
) -> None:
    vocabulary = None if names is None else {VOCABULARIES + name: True for name in names}
    graph = compile_shapes(schema_with_meta_schema(vocabulary))
    values = {"bad": {"bad": 1}, "number": {"number": 1}, "text": {"text": "x"}, "type": 7}
    assert {name for name, value in values.items() if not shape_accepts(graph, value)} == rejected
    assert shape_accepts(graph, {"number": 20, "text": "1.2.3.4"})
    ignored = {entry.keyword for entry in graph.report.entries if entry.status is KeywordStatus.IGNORED}
    assert ("minimum" in ignored) is (names is not None and "validation" not in names and "applicator" in names)
    check = value_check(schema_with_meta_schema(vocabulary))
    assert {name for name, value in values.items() if check.error(value) is not None} == rejected


def test_unknown_vocabularies_are_refused_if_they_are_required() -> None:
    known = {VOCABULARIES + "core": True, VOCABULARIES + "validation": True}
    compile_shapes(schema_with_meta_schema(known | {"https://example.com/other": False}))
    with pytest.raises(
        GrammarError, match=r"\$vocabulary requires the unknown vocabulary 'https://example\.com/other'"
    ) as caught:
        compile_shapes(schema_with_meta_schema(known | {"https://example.com/other": True}))
    assert caught.value.location == "#"
    with pytest.raises(GrammarError, match=r"\$vocabulary must be an object"):
        compile_shapes(schema_with_meta_schema(["core"]))
    with pytest.raises(GrammarError, match="unknown dialect"):
        compile_shapes(schema_with_meta_schema(known, base=CUSTOM_DIALECT))


def test_a_subschema_may_have_a_custom_dialect_whose_2019_09_applicators_include_the_unevaluated_keywords() -> None:
    only = {"https://json-schema.org/draft/2019-09/vocab/applicator": True}
    schema = schema_with_meta_schema(only, base="https://json-schema.org/draft/2019-09/schema")
    schema = {
        "$defs": schema["$defs"],
        "properties": {"in": {**schema, "$id": "urn:in", "unevaluatedProperties": False}},
    }
    del schema["properties"]["in"]["$defs"]
    schema["required"] = ["in"]
    graph = compile_shapes(schema)
    assert shape_accepts(graph, {"in": {"number": 1}})
    assert not shape_accepts(graph, {"in": {"bad": 1}})
    assert not shape_accepts(graph, {"in": {"other": 1}})
    assert not shape_accepts(graph, {})
