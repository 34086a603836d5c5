"""Time and randomness are nodes: a run that goes on, or is replayed, has the values of its first time."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime


@rt.program
def dice(s: rt.State) -> list[Any]:
    s += "A"
    s += rt.gen("x")
    found = [rt.random(), rt.random(), random.Random(rt.random()).randrange(1000)]
    for fork in s.fork(2):
        with fork.scope("own"):
            fork += rt.gen("y")
    return [*found, rt.now()]


def test_a_seeded_run_repeats_its_numbers_and_others_do_not() -> None:
    with ScriptedRuntime() as runtime:
        one, same = (dice.run(runtime=runtime, seed=7).value for _ in range(2))
        others = [dice.run(runtime=runtime, **options).value for options in ({"seed": 8}, {}, {})]
    assert one[:3] == same[:3]
    assert len({each[0] for each in (one, *others)}) == 4
    assert one[0] != one[1]
    assert all(0 <= number < 1 for number in one[:2])
    assert isinstance(one[0], float)


def test_numbers_are_spread_evenly() -> None:
    @rt.program
    def many(s: rt.State) -> list[Any]:
        return [rt.random() for _ in range(400)]

    with ScriptedRuntime() as runtime:
        found = sorted(many.run(runtime=runtime, seed=1).value)
    assert len(set(found)) == 400
    assert (
        max(abs(value - (index + 0.5) / 400) for index, value in enumerate(found)) < 0.08
    )  # Kolmogorov-Smirnov, p = 0.01


def test_the_time_is_aware_and_recorded(tmp_path: Path) -> None:
    @rt.program
    def clock(s: rt.State) -> datetime.datetime:
        s += "A"
        s += rt.gen("x")
        at = rt.now()
        assert isinstance(at, datetime.datetime)
        s += rt.text("It is ", str(at))
        s += rt.gen("y")
        return at

    with ScriptedRuntime() as runtime:
        before = datetime.datetime.now(datetime.UTC)
        for keep in (lambda: rt.journal(tmp_path / "journal", runtime), lambda: rt.record(tmp_path / "tape", runtime)):
            found = []
            for _ in range(2):
                with keep():  # type: ignore[attr-defined]
                    found.append(clock.run().value)
            assert before <= found[0] == found[1]
            assert found[0].tzinfo is datetime.UTC
        with rt.replay(tmp_path / "tape"):
            assert clock.run().value == found[0]


def test_async_bodies_await_and_branches_have_lazy_values() -> None:
    @rt.program
    async def waits(s: rt.State) -> tuple[Any, ...]:
        return await rt.random(), await rt.now()

    @rt.program
    def branches(s: rt.State) -> str:
        s += "A"

        def turn(inner: rt.State) -> None:
            inner += rt.text(" ", rt.random(), " at ", rt.now())
            inner += rt.gen("x")

        rt.repeat(turn, at_most=3)
        return str(s.text())

    with ScriptedRuntime({"x": ";"}) as runtime:
        number, at = waits.run(runtime=runtime, seed=3).value
        assert (number, at.tzinfo) == (waits.run(runtime=runtime, seed=3).value[0], datetime.UTC)
        text = branches.run(runtime=runtime, seed=3).value
        assert text.split(" at ")[0] == branches.run(runtime=runtime, seed=3).value.split(" at ")[0]
    turns = text.split(";")[:-1]
    numbers = [float(each.rpartition("A ")[2].split(" at ")[0]) for each in turns]
    assert len(set(numbers)) == 3, "each turn has a path of its own"
    assert all(datetime.datetime.fromisoformat(each.split(" at ")[1]).tzinfo for each in turns)
    assert len(dice_graph()) == 2


def dice_graph() -> list[str]:
    @rt.program
    def body(s: rt.State) -> Any:
        s += rt.text(rt.random(), rt.now())
        s += rt.gen("x")

    return [node.path for node in body.graph().nodes if getattr(node, "function", "").startswith("rt.")]


def test_outside_of_programs_they_are_refused() -> None:
    for function in (rt.now, rt.random, lambda: rt.ask("?")):
        with pytest.raises(rt.TraceError, match="works only inside a program"):
            function()
