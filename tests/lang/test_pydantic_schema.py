"""Schemas of pydantic types: whatever meets one is read by its type, and what people write meets it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, Field, HttpUrl, NaiveDatetime, PostgresDsn, RedisDsn, TypeAdapter

from rtlang.lang.pydantic_schema import generator
from rtlang.lang.types import output_type

MANY = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def schema_of(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema(schema_generator=generator())


@pytest.mark.parametrize("kind", [HttpUrl, PostgresDsn, RedisDsn, NaiveDatetime], ids=str)
@given(data=st.data())
@MANY
def test_every_text_of_a_pattern_is_read(kind: Any, data: st.DataObject) -> None:
    schema = schema_of(kind)
    text = data.draw(st.from_regex(schema["pattern"].rstrip("$") + r"\Z"))
    if len(text) <= schema.get("maxLength", len(text)):
        TypeAdapter(kind).validate_json(json.dumps(text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (HttpUrl, "https://example.org/a/b?c=d&e=%20#f"),
        (HttpUrl, "http://my-host.example.co.uk:8080"),
        (HttpUrl, "https://localhost/"),
        (PostgresDsn, "postgresql+asyncpg://db.internal:5432/orders"),
        (NaiveDatetime, "2024-05-17T09:30:00"),
        (NaiveDatetime, "2024-05-17T09:30:00.250"),
    ],
)
def test_what_people_write_meets_the_schema(kind: Any, text: str) -> None:
    TypeAdapter(kind).validate_json(json.dumps(text))
    jsonschema.validate(text, schema_of(kind))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Decimal, [1, -2.5, "12.50", "0"], ["", ": [", "1.", "+1", True]),
        (Annotated[Decimal, Field(ge=0, lt=10)], [0, 9.99], [-1, 10, "5"]),
        (Annotated[Decimal, Field(max_digits=5, decimal_places=2)], [999.99, -0.01, 0], [1000, 0.001, "x"]),
        (Annotated[Decimal, Field(decimal_places=0)], [7], [7.5]),
        (Annotated[Decimal, Field(max_digits=3)], [999, -7], [1000, 12.25]),
        (Annotated[Decimal, Field(multiple_of=5)], [10, 0], [7]),
    ],
)
def test_decimals_are_numbers_within_their_limits(kind: Any, good: list[Any], bad: list[Any]) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(kind))
    for value in good:
        TypeAdapter(kind).validate_json(json.dumps(value))
        assert validator.is_valid(value), value
    assert not [value for value in bad if validator.is_valid(value)]


def test_types_that_say_all_keep_their_schema() -> None:
    for kind in (int, str, AnyUrl, list[float]):
        assert schema_of(kind) == TypeAdapter(kind).json_schema()


def test_models_use_it_unless_they_make_their_own_schema() -> None:
    class Bill(BaseModel):
        total: Decimal

    class Own(BaseModel):
        total: Decimal

        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:  # type: ignore[override]
            return {"const": {"total": 1}}

    def source(kind: Any) -> Any:
        constraint = output_type(type=kind).constraint
        assert constraint is not None
        return json.loads(constraint.source)

    assert source(Bill)["properties"]["total"]["anyOf"][1]["type"] == "string"
    assert "pattern" in source(Bill)["properties"]["total"]["anyOf"][1]
    assert source(Own) == {"const": {"total": 1}}
    assert source(list[HttpUrl])["items"]["pattern"].startswith("^(http|https)://")
