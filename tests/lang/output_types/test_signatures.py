"""Functions as data: schemas of their parameters, descriptions, and values of the annotated types."""

from __future__ import annotations

import datetime
import enum
import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from rtlang.contract.errors import ParameterError
from rtlang.lang.output_types.signatures import signature_of


class Unit(enum.Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


class Place(BaseModel):
    city: str
    population: int = 0


def forecast(
    place: Place, day: datetime.date, unit: Unit = Unit.METRIC, *, hours: Annotated[int, Field(ge=1)] = 24
) -> str:
    """The forecast of a place.

    Longer text.

    Args:
        place: where, with a
            second line.
        hours (int): how many hours.

    Returns:
        text: of the forecast.
    """
    return f"{place} {day} {unit} {hours}"


def test_a_schema_has_the_parameters_their_bounds_and_descriptions_and_no_titles() -> None:
    found = signature_of(forecast, "tools")
    assert found.description == "The forecast of a place.\n\nLonger text."
    properties = found.schema["properties"]
    assert list(properties) == ["place", "day", "unit", "hours"]
    assert found.schema["required"] == ["place", "day"]
    assert properties["hours"] == {"default": 24, "minimum": 1, "type": "integer", "description": "how many hours."}
    assert properties["place"]["description"] == "where, with a second line."
    assert properties["day"] == {"format": "date", "type": "string"}
    assert "title" not in json.dumps(found.schema)


def test_arguments_have_the_annotated_types() -> None:
    text = '{"place": {"city": "Rom"}, "day": "2024-02-29", "unit": "imperial"}'
    assert signature_of(forecast, "tools").read(text) == {
        "place": Place(city="Rom"),
        "day": datetime.date(2024, 2, 29),
        "unit": Unit.IMPERIAL,
        "hours": 24,
    }
    with pytest.raises(ValueError, match="hours"):
        signature_of(forecast, "tools").read(text[:-1] + ', "hours": 0}')


def test_names_of_attributes_of_models_are_names_of_parameters() -> None:
    def store(
        schema: str, json: int, copy: bool, _hidden: str = "", title: str = "", model_config: str = ""
    ) -> None: ...

    found = signature_of(store, "tools")
    assert list(found.schema["properties"]) == ["schema", "json", "copy", "_hidden", "title", "model_config"]
    given = {"schema": "s", "json": 1, "copy": True, "_hidden": "h", "title": "t", "model_config": "c"}
    assert found.read(json.dumps(given)) == given


def test_functions_without_a_schema_are_refused_by_name() -> None:
    def many(*args: int) -> None: ...
    def unknown(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    class Opaque:
        pass

    def opaque(value: Any) -> None: ...

    opaque.__annotations__["value"] = Opaque
    for function, message in ((many, r"\*args"), (unknown, "Missing"), (opaque, "Opaque")):
        with pytest.raises(ParameterError, match=message) as caught:
            signature_of(function, "tools")
        assert caught.value.field == "tools"
