"""Schemas of pydantic types: whatever meets one is read by its type, and what people write meets it."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import (
    AnyUrl,
    AwareDatetime,
    BaseModel,
    Field,
    FileUrl,
    HttpUrl,
    MongoDsn,
    NaiveDatetime,
    PostgresDsn,
    RedisDsn,
    TypeAdapter,
)

from rtlang.lang.output_types.schemas.pydantic_schema import generator
from rtlang.lang.output_types.types import output_type
from tests.support.long_tests import sized

MANY = settings(max_examples=sized(40), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def schema_of(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema(schema_generator=generator())


TIMES = [datetime.datetime, AwareDatetime, NaiveDatetime, datetime.time, datetime.timedelta]
READ = [AnyUrl, FileUrl, HttpUrl, MongoDsn, PostgresDsn, RedisDsn, *TIMES]


@pytest.mark.parametrize("kind", READ, ids=str)
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
        (HttpUrl, "http://192.168.0.1:49152/status"),
        (AnyUrl, "mailto:ann@example.org"),
        (AnyUrl, "s3://a-bucket/a/key.txt"),
        (AnyUrl, "https://example.org"),
        (FileUrl, "file:///etc/hosts"),
        (FileUrl, "file://server/share/a.txt"),
        (MongoDsn, "mongodb://ann:secret@localhost:27017/orders"),
        (PostgresDsn, "postgresql+asyncpg://ann:s3cr-et@db.internal:5432/orders"),
        (NaiveDatetime, "2024-05-17T09:30:00"),
        (NaiveDatetime, "2024-05-31T09:30:00.250"),
        (NaiveDatetime, "2024-02-29T23:59:59"),
        (datetime.datetime, "2024-05-17T09:30:00"),
        (datetime.datetime, "2024-05-17T09:30:00.250000+02:00"),
        (AwareDatetime, "2024-05-17T09:30:00Z"),
        (datetime.time, "09:30:00"),
        (datetime.time, "09:30:00.5-03:30"),
        (datetime.timedelta, "P3DT12H30M5S"),
        (datetime.timedelta, "PT90M"),
        (datetime.timedelta, "PT0.5S"),
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
        (Annotated[Decimal, Field(max_digits=3)], [999, -7, 12.5, 0.125], [1000, 12.25, 100.5]),
        (Annotated[Decimal, Field(max_digits=2, decimal_places=3)], [0.25, -0.5], [0.125, 1, 0]),
        (Annotated[Decimal, Field(max_digits=3, lt=5000, gt=-20)], [999, -19], [1000, 4999, -20]),
        (Annotated[Decimal, Field(max_digits=400)], [10**30, 0.5], ["x"]),
        (Annotated[Decimal, Field(multiple_of=5)], [10, 0], [7]),
        (Annotated[Decimal, Field(multiple_of=0.5, decimal_places=1)], [0.5, 3], [0.1]),
        (Annotated[Decimal, Field(multiple_of=0.125, decimal_places=2)], [0.25, 1], [0.125]),
    ],
)
def test_decimals_are_numbers_within_their_limits(kind: Any, good: list[Any], bad: list[Any]) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(kind))
    for value in good:
        TypeAdapter(kind).validate_json(json.dumps(value))
        assert validator.is_valid(value), value
    assert not [value for value in bad if validator.is_valid(value)]


def test_no_url_without_a_host_where_one_is_needed() -> None:
    validator = jsonschema.Draft202012Validator(schema_of(AnyUrl))
    for text in ("http:", "https://", "ftp:///a", "ws://1.2.3.4.5", "a://b:99999", "file://host:80/a", "http://xn--a/"):
        assert not validator.is_valid(text), text


def test_times_have_no_more_digits_than_a_value_keeps() -> None:
    for kind, text in (
        (datetime.datetime, "2024-05-17T09:30:00.1234567Z"),
        (AwareDatetime, "2024-05-17T09:30:00"),
        (NaiveDatetime, "2024-05-17T09:30:00Z"),
        (datetime.time, "09:30:00.1234567"),
        (datetime.timedelta, "P12345678D"),
        (datetime.timedelta, "P"),
        (datetime.timedelta, "P1DT"),
    ):
        assert not jsonschema.Draft202012Validator(schema_of(kind)).is_valid(text), text


def test_types_that_say_all_keep_their_schema() -> None:
    for kind in (int, str, datetime.date, list[float]):
        assert schema_of(kind) == TypeAdapter(kind).json_schema()


def test_models_use_it_unless_they_make_their_own_schema() -> None:
    class Bill(BaseModel):
        total: Decimal

    class Own(BaseModel):
        total: Decimal

        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:  # type: ignore[override]
            return {"const": {"total": 1}}

    class Plain(BaseModel):
        total: Decimal

        @staticmethod
        def model_json_schema() -> dict[str, Any]:  # type: ignore[override]
            return {"const": {"total": 2}}

    def source(kind: Any) -> Any:
        constraint = output_type(type=kind).constraint
        assert constraint is not None
        return json.loads(constraint.source)

    assert source(Bill)["properties"]["total"]["anyOf"][1]["type"] == "string"
    assert "pattern" in source(Bill)["properties"]["total"]["anyOf"][1]
    assert source(Own) == {"const": {"total": 1}}
    assert source(Plain) == {"const": {"total": 2}}
    assert source(list[HttpUrl])["items"]["pattern"].startswith("^((http|https)://")
