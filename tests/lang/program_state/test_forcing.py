"""`rt.value` and the end of a program: every lazy value inside plain data becomes actual, in one break."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

import rtlang as rt
from tests.support.programs.fake_target import FakeTarget, by_name

TEXTS = {"a": "one", "b": "2", "c": "[1, 2]"}
Pair = namedtuple("Pair", "left right")


class Plain: ...


@dataclass(frozen=True, slots=True)
class Frozen:
    name: Any
    others: list[Any]
    made: int = field(default=0, init=False)


@dataclass
class Checked:
    name: Any

    def __post_init__(self) -> None:
        raise AssertionError("a copy is not made by the constructor")


class Sheet(BaseModel, extra="allow"):
    name: Any
    inner: Any = None


def checked(name: Any) -> Checked:
    made = object.__new__(Checked)
    made.name = name
    return made


MAKERS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, b, c: a,
    lambda a, b, c: [a, [b, (c,)], {"k": {"l": a}}],
    lambda a, b, c: Pair(a, [b]),
    lambda a, b, c: OrderedDict(x=a, y=[c]),
    lambda a, b, c: defaultdict(list, x=a),
    lambda a, b, c: Frozen(a, [b, c]),
    lambda a, b, c: checked(Frozen(a, [])),
    lambda a, b, c: Sheet(name=a, inner=Sheet(name=[b]), more=c),
    lambda a, b, c: ("x", b"y", None, 3, {"z"}),
]


def run(body: Any, target: FakeTarget) -> rt.Result[Any]:
    target.script = by_name(TEXTS)

    @rt.program
    def outer(s: Any) -> Any:
        s += rt.gen("a") + rt.gen("b", type=int) + rt.gen("c", type=list[int])
        return body(s["a"], s["b"], s["c"])

    return outer.run()


@pytest.mark.parametrize("make", MAKERS)
def test_everything_inside_becomes_actual_in_one_break(make: Callable[..., Any], target: FakeTarget) -> None:
    expected = make("one", 2, [1, 2])
    found: list[Any] = []
    result = run(lambda *values: found.append(rt.value(make(*values))), target)
    assert found == [expected]
    assert [type(found[0])] == [type(expected)]
    assert len(result.breaks) == (0 if expected == MAKERS[-1](1, 2, 3) else 1)


@pytest.mark.parametrize("make", MAKERS)
def test_a_returned_value_is_resolved_all_the_way_down(make: Callable[..., Any], target: FakeTarget) -> None:
    result = run(make, target)
    assert result.value == make("one", 2, [1, 2])
    assert result.breaks == ()


def test_sets_and_keys_are_resolved(target: FakeTarget) -> None:
    result = run(lambda a, b, c: rt.value([{a: 1}, {a, b}, frozenset((a,))]), target)
    assert result.value == [{"one": 1}, {"one", 2}, frozenset(("one",))]


def test_what_holds_nothing_lazy_is_returned_itself(target: FakeTarget) -> None:
    given = [[1], {"a": Plain()}, Frozen(1, [])]
    assert rt.value(given) is given
    assert run(lambda a, b, c: [given, rt.value([given, a])], target).value[1][0] is given


def test_the_break_names_what_it_waited_for(target: FakeTarget) -> None:
    (only,) = run(lambda a, b, c: rt.value({"x": a, "y": [b]}), target).breaks
    assert (only.what, only.reason) == ("'a', 'b'", "rt.value()")
    assert only.location.startswith(__file__)


def test_data_that_contains_itself_is_refused(target: FakeTarget) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(rt.TraceError, match="contains itself"):
        rt.value(endless)
    with pytest.raises(rt.TraceError, match="contains itself"):
        run(lambda a, b, c: [a, endless], target)


def test_an_expression_is_refused() -> None:
    with pytest.raises(rt.TraceError, match="append it"):
        rt.value(rt.gen("x"))


def test_the_error_of_a_failed_generation_is_raised(target: FakeTarget) -> None:
    target.script = by_name({"a": rt.RequestError("broken"), "b": "2"})

    @rt.program
    def body(s: Any) -> Any:
        forks = s.fork(2)
        forks[0] += rt.gen("a")
        forks[1] += rt.gen("b")
        with pytest.raises(rt.RequestError, match="broken"):
            rt.value([forks[1]["b"], forks[0]["a"]])
        return rt.value({"b": forks[1]["b"]})

    assert body.run().value == {"b": "2"}


def test_ahead_of_time_it_is_a_refused_break() -> None:
    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("a")
        rt.value([s["a"]])

    with pytest.raises(rt.TraceError, match=r"rt.value\(\) needs 'a'"):
        body.graph()


def test_async_programs_await_it(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)

    @rt.program
    async def body(s: Any) -> Any:
        s += rt.gen("a") + rt.gen("b", type=int)
        both = await rt.value({"x": [s["a"]], "y": s["b"]})
        assert type(both["x"][0]) is str
        assert await rt.value(3) == 3
        return both, await asyncio.gather(rt.value(s["a"]), rt.value([s["b"]]))

    result = body.run()
    assert result.value == ({"x": ["one"], "y": 2}, ["one", [2]])
    assert len(result.breaks) == 1


def test_a_forgotten_await_is_said(target: FakeTarget) -> None:
    @rt.program
    async def body(s: Any) -> Any:
        s += rt.gen("a")
        waiting = rt.value(s["a"])
        try:
            s += rt.user(waiting)
        finally:
            waiting.close()

    with pytest.raises(rt.TraceError, match="write await"):
        body.run()
