"""`rt.join`, `rt.format` and `rt.length`: on plain values as Python, on lazy ones without a break where that is possible.

Random expressions are in test_operations.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rtlang as rt
from tests.support.programs.fake_target import FakeTarget, by_name

TEXTS = {"w": "a b", "n": "7", "items": '["p", "q"]', "numbers": "[1, 2.5]", "day": "2024-05-01"}


def outcome(use: Callable[[Any], Any], target: FakeTarget) -> tuple[Any, int]:
    import datetime

    target.script = by_name(TEXTS)

    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("w") + rt.gen("n", type=int) + rt.gen("items", type=list[str]) + rt.gen("numbers", type=list[float])
        s += rt.gen("day", type=datetime.date)
        return use(s)

    result = body.run()
    return result.value, len(result.breaks)


@pytest.mark.parametrize(
    ("use", "expected", "num_breaks"),
    [
        (lambda s: rt.join(", ", ["x", 1, 2.5, True]), "x, 1, 2.5, True", 0),
        (lambda s: rt.join(", ", [s["w"], s["n"], "z"]), "a b, 7, z", 0),
        (lambda s: rt.join(s["w"], ["x", "y"]), "xa by", 0),
        (lambda s: rt.join("-", s["w"].split()), "a-b", 0),
        (lambda s: rt.join("-", s["items"]), "p-q", 0),
        (lambda s: rt.join("-", []), "", 0),
        (lambda s: rt.join("-", s["numbers"]), "1.0-2.5", 1),
        (lambda s: rt.join("-", [s["day"], s["w"]]), "2024-05-01-a b", 1),
        (lambda s: rt.format("{} {}", "x", 1), "x 1", 0),
        (lambda s: rt.format("{1}{{}}{0}", s["w"], s["n"]), "7{}a b", 0),
        (lambda s: rt.format("{:>4}|", s["n"]), "   7|", 1),
        (lambda s: rt.format("{:%d}", s["day"]), "01", 1),
        (lambda s: rt.format(s["w"], 1), "a b", 1),
        (lambda s: rt.length([1, 2]), 2, 0),
        (lambda s: rt.length(s["items"]) + rt.length(s["w"]), 5, 0),
        (lambda s: rt.length(s["messages"] if "messages" in s else s.messages()), 0, 1),
    ],
)
def test_the_result_is_that_of_python(use: Any, expected: Any, num_breaks: int, target: FakeTarget) -> None:
    found, breaks = outcome(use, target)
    assert found == expected
    assert type(found) is type(expected)
    assert breaks == num_breaks


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda s: rt.join(", ", "abc"), "expected a list"),
        (lambda s: rt.join(", ", 3), "expected a list"),
        (lambda s: rt.join(", ", s["w"]), "expected a list"),
        (lambda s: rt.format("{}", rt.gen("x")), r"rt\.text"),
    ],
)
def test_what_cannot_be_composed_is_refused(use: Any, words: str, target: FakeTarget) -> None:
    with pytest.raises(rt.TraceError, match=words):
        outcome(use, target)


@pytest.mark.parametrize("template", ["{", "{2}", "{}{}{}", "}"])
def test_a_wrong_template_fails_as_in_python(template: str, target: FakeTarget) -> None:
    with pytest.raises((ValueError, IndexError)) as expected:
        template.format("a b")
    with pytest.raises(type(expected.value)) as caught:
        outcome(lambda s: rt.format(template, s["w"]), target)
    assert str(caught.value) == str(expected.value)
