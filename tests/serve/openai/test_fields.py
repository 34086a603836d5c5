"""Strict fields: unknown ones are refused by name, the published list is ignored, and null means missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.fields import IGNORED, FieldTable, check_inner, read_int

TABLE = FieldTable(frozenset({"a"}), {"b": (1.0, 1), "c": (False,)}, {"d": "use a"})


def test_accepted_fields_are_kept_and_nulls_and_ignored_ones_dropped() -> None:
    assert TABLE.given({"a": 3, "b": 1, "c": False, "d": None, "x": None, "user": "me"}) == {"a": 3}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"x": 0}, "x = 0: this field is not supported"),
        ({"b": 2}, "b = 2: only 1.0 or 1 is supported"),
        ({"b": True}, "b = True: only"),
        ({"c": 0}, "c = 0: only false is supported"),
        ({"d": 1}, "d = 1: use a"),
    ],
)
def test_other_fields_are_refused_by_name(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)) as caught:
        TABLE.given(body)
    assert caught.value.field == next(iter(body))


def test_inner_fields_are_named_by_their_path() -> None:
    assert check_inner("a", {"x": 1, "y": None, "z": 2}, ("x",), ("z",)) == {"x": 1}
    with pytest.raises(ParameterError) as caught:
        check_inner("a[0]", {"w": 1}, ("x",))
    assert caught.value.field == "a[0].w"


@pytest.mark.parametrize("value", [True, 1.0, "1", -1, 3])
def test_an_integer_has_its_type_and_range(value: Any) -> None:
    with pytest.raises(ParameterError):
        read_int({"n": value}, "n", 0, 2)


def test_the_ignored_fields_are_published() -> None:
    page = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"(?m)^Ignored fields: (.*(?:\n.+)*)", page)
    assert set(re.findall(r"`(\w+)`", line)) == set(IGNORED)
