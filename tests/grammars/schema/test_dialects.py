"""Which draft a schema is read in, and what that changes."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.dialects import detect, survey
from rtlang_grammars.schema.options import SchemaOptions
from tests.support.shape_interpreter import shape_accepts


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
def test_the_draft_is_detected(schema: Any, name: str) -> None:
    assert detect(schema, survey(schema, 100)).name == name


def test_formats_are_those_of_the_dialect_and_can_be_left_as_annotations() -> None:
    date = {"type": "string", "format": "date"}
    assert not shape_accepts(compile_shapes(date), "2023-02-29")
    assert shape_accepts(compile_shapes({**date, "$schema": "http://json-schema.org/draft-04/schema#"}), "2023-02-29")
    assert shape_accepts(compile_shapes(date, options=SchemaOptions(assert_formats=False)), "2023-02-29")


def test_a_number_that_is_written_as_a_fraction_is_no_integer_in_draft_04() -> None:
    graph = compile_shapes({"type": "integer"}, options=SchemaOptions(default_dialect="draft-04"))
    assert shape_accepts(graph, 1)
    assert not shape_accepts(graph, 1.0)
    assert shape_accepts(compile_shapes({"type": "integer"}), 1.0)
