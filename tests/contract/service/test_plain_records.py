"""Records become plain maps and come back; unknown fields are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from rtlang.contract.service.plain_records import record_from_plain, record_to_plain


class Pair(NamedTuple):
    left: int
    right: str


@dataclass(frozen=True)
class Inner:
    size: float


@dataclass(frozen=True)
class Outer:
    name: str
    age: int | None
    inner: tuple[Inner, ...] = ()
    pairs: tuple[Pair, ...] = ()


def test_a_record_comes_back() -> None:
    record = Outer("a", None, (Inner(1.5), Inner(2.0)), (Pair(1, "x"),))
    plain = record_to_plain(record)
    assert plain == {"name": "a", "age": None, "inner": [{"size": 1.5}, {"size": 2.0}], "pairs": [(1, "x")]}
    assert record_from_plain(Outer, plain | {"later": 1}) == record


@pytest.mark.parametrize(
    ("plain", "named"),
    [
        ({}, "name = None"),
        ({"name": "a", "age": True}, "age = True: expected int or NoneType"),
        ({"name": "a", "inner": [3], "pairs": []}, "expected a map for Inner"),
        ({"name": "a", "inner": [], "pairs": [[1, 2]]}, "expected an array of left, right"),
        ({"name": "a", "inner": {}, "pairs": []}, "inner = {}: expected an array"),
        (3, "expected a map for Outer"),
    ],
)
def test_what_does_not_fit_is_named(plain: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        record_from_plain(Outer, plain)


def test_an_integer_is_a_number_of_the_kind_that_is_wanted() -> None:
    assert record_from_plain(Inner, {"size": 2}) == Inner(2.0)
