"""Digests of functions: equal for the same function made again, different for another body or other values around it."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rtlang.lang.function_digest import function_digest


def around(value: Any) -> Callable[[int], Any]:
    def check(number: int) -> Any:
        return number, value

    return check


def by_default(value: Any) -> Callable[[int], Any]:
    def check(number: int, *, limit: Any = value) -> Any:
        return number, limit

    return check


@dataclass
class Limit:
    """An object whose fields are not looked into."""

    most: int

    def check(self, number: int) -> bool:
        return number < self.most


VALUES: list[Any] = [1, True, 1.0, "1", b"1", None, [1], (1,), {1}, {"a": 1}, {"a": [2]}, around(1), around(2)]


@pytest.mark.parametrize("make", [around, by_default, lambda value: functools.partial(around, value)])
def test_values_around_a_function_tell_it_apart(make: Callable[[Any], Callable[..., Any]]) -> None:
    digests = [function_digest([make(value)]) for value in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert digests == [function_digest([make(value)]) for value in VALUES]


def test_another_body_is_another_function_and_a_moved_one_is_not() -> None:
    def compiled(source: str) -> Any:
        found: dict[str, Any] = {}
        exec(source, found)
        return found["check"]

    body = "def check(x):\n    return [y for y in x if y > {}]\n"
    first = function_digest([compiled(body.format(1))])
    assert function_digest([compiled("\n\n" + body.format(1))]) == first
    assert function_digest([compiled(body.format(2))]) != first


def test_objects_count_by_their_types_and_nothing_fails() -> None:
    assert function_digest([Limit(1).check]) == function_digest([Limit(2).check])
    assert function_digest([around(Limit(1))]) == function_digest([around(Limit(2))])
    assert function_digest([len]) != function_digest([around(1)])
    deep: list[Any] = []
    deep.append(deep)
    function_digest([around(deep), print, Limit, functools.partial(Limit, 1)])

    def recursive(number: int) -> int:
        return recursive(number - 1)

    function_digest([recursive])


def test_the_digest_is_the_same_in_another_process() -> None:
    code = (
        "from tests.lang.test_function_digest import around\n"
        "from rtlang.lang.function_digest import function_digest\n"
        "print(function_digest([around({'b', 'a', 'c'})]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == function_digest([around({"b", "a", "c"})])
