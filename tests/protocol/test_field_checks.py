"""A field is returned with its type or named in the error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rtlang.contract.errors import ProtocolError
from rtlang.protocol.field_checks import check_float, check_int, check_ints, check_list, check_map, check_str, optional

GOOD: list[tuple[Callable[..., Any], tuple[int, ...], Any, Any]] = [
    (check_int, (1, 5), 5, 5),
    (check_float, (), 2, 2.0),
    (check_str, (), "", ""),
    (check_list, (), [], []),
    (check_ints, (), [1, 2], (1, 2)),
    (check_map, (), {}, {}),
]
BAD: list[tuple[Callable[..., Any], tuple[int, ...], Any]] = [
    (check_int, (1, 5), 6),
    (check_int, (1, 5), 0),
    (check_int, (0, 5), True),
    (check_int, (1, 5), 2.0),
    (check_float, (), True),
    (check_float, (), "1"),
    (check_str, (), 3),
    (check_list, (), {}),
    (check_ints, (), [1, True]),
    (check_ints, (), ["1"]),
    (check_map, (), []),
]


@pytest.mark.parametrize(("check", "args", "value", "expected"), GOOD)
def test_a_good_field_is_returned(check: Callable[..., Any], args: tuple[int, ...], value: Any, expected: Any) -> None:
    assert check({"x": value}, "x", *args) == expected
    assert optional(check, {"x": value}, "x", *args) == expected


@pytest.mark.parametrize(("check", "args", "value"), BAD)
def test_a_bad_field_is_named(check: Callable[..., Any], args: tuple[int, ...], value: Any) -> None:
    for read in (lambda: check({"x": value}, "x", *args), lambda: optional(check, {"x": value}, "x", *args)):
        with pytest.raises(ProtocolError, match="x = ") as caught:
            read()
        assert caught.value.param == "x"


def test_a_missing_field_is_an_error_unless_it_is_optional() -> None:
    with pytest.raises(ProtocolError, match="x is missing"):
        check_str({}, "x")
    assert optional(check_str, {}, "x") is None
    assert optional(check_str, {"x": None}, "x") is None


def test_an_error_quotes_a_bounded_piece_of_what_was_sent() -> None:
    with pytest.raises(ProtocolError) as caught:
        check_int({"x": "y" * 100_000}, "x", 0, 1)
    assert len(str(caught.value)) < 300
