"""Objects whose fields are at paths."""

from __future__ import annotations

import pytest

from rtlang.lang.output_types.schemas.aliased_objects import AliasConflictError, AliasSlot, object_schema

INTEGER = {"type": "integer"}


def test_paths_become_objects_and_arrays() -> None:
    slots = [
        AliasSlot([["a"]], INTEGER, True),
        AliasSlot([["deep", 1, "b"]], INTEGER, True),
        AliasSlot([["deep", 0]], INTEGER, False),
    ]
    assert object_schema(slots) == {
        "type": "object",
        "properties": {
            "a": INTEGER,
            "deep": {
                "type": "array",
                "prefixItems": [
                    INTEGER,
                    {"type": "object", "properties": {"b": INTEGER}, "required": ["b"], "additionalProperties": False},
                ],
                "minItems": 2,
                "maxItems": 2,
            },
        },
        "required": ["a", "deep"],
    }


def test_an_index_from_the_end_is_the_first_of_as_many_items() -> None:
    (array,) = object_schema([AliasSlot([["last", -2]], INTEGER, True)])["properties"].values()
    assert array == {"type": "array", "prefixItems": [INTEGER, {}], "minItems": 2, "maxItems": 2}


def test_what_has_only_optional_fields_is_left_out_or_has_one() -> None:
    found = object_schema([AliasSlot([["q", "r"]], INTEGER, False), AliasSlot([["p", 1]], INTEGER, False)])
    assert "required" not in found
    assert found["properties"]["q"]["minProperties"] == 1
    assert found["properties"]["p"]["minItems"] == 2


def test_the_next_choice_is_taken_where_a_place_is_taken() -> None:
    found = object_schema([AliasSlot([["a"]], INTEGER, True), AliasSlot([["a", "b"], ["c"]], INTEGER, True)])
    assert list(found["properties"]) == ["a", "c"]


@pytest.mark.parametrize("path", [["a"], ["a", "b"], ["d", 0], ["e", 0]])
def test_two_fields_at_one_place_are_refused(path: list[str | int]) -> None:
    places: list[list[str | int]] = [["a"], ["d", "x"], ["e", -1]]
    taken = [AliasSlot([each], INTEGER, True) for each in places]
    with pytest.raises(AliasConflictError, match="already taken"):
        object_schema([*taken, AliasSlot([path], INTEGER, True)])
