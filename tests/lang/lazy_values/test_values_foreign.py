"""Lazy values given to code that does not know them: what is said, and what asyncio does with them."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import fractions
import json
import os
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import rtlang as rt
from tests.support.programs.fake_target import FakeTarget, by_name


class Model(BaseModel):
    text: str = ""
    number: int = 0
    flag: bool = False
    items: list[str] = []


def attempt(use: Callable[[Any], Any], target: FakeTarget) -> BaseException:
    caught: list[BaseException] = []

    @rt.program
    def body(s: Any) -> None:
        s += rt.gen("answer")
        try:
            use(s["answer"])
        except Exception as error:
            caught.append(error)

    body.run()
    assert caught, "nothing was raised"
    return caught[0]


REFUSED: dict[str, Callable[[Any], Any]] = {
    "json.dumps": json.dumps,
    "json.dumps, nested": lambda v: json.dumps({"a": [v]}),
    "json.dumps, key": lambda v: json.dumps({v: 1}),
    "join": lambda v: ",".join([v, "a"]),
    "bytes join": lambda v: b",".join([v]),
    "re.match": lambda v: re.match("a", v),
    "re.sub": lambda v: re.sub("a", "b", v),
    "Decimal": decimal.Decimal,
    "pickle": pickle.dumps,
    "str.replace": lambda v: "abc".replace("a", v),
    "str.startswith": lambda v: "abc".startswith(v),
    "str.split": lambda v: "abc".split(v),
    "json.loads": json.loads,
    "timedelta": lambda v: datetime.timedelta(days=v),
    "environment": lambda v: os.environ.__setitem__("RTLANG_X", v),
    "model, text": lambda v: Model(text=v),
    "model, number": lambda v: Model(number=v),
    "model, flag": lambda v: Model(flag=v),
    "model, items": lambda v: Model(items=[v]),
    "model, items itself": lambda v: Model(items=v),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_an_error_names_the_variable_and_the_remedy(use: Callable[[Any], Any], target: FakeTarget) -> None:
    error = attempt(use, target)
    assert isinstance(error, (TypeError, ValueError))
    assert "'answer'" in str(error)
    assert "rt.value(" in str(error)


@pytest.mark.parametrize(
    "use", [lambda v: bytes(v, "utf-8"), lambda v: int(v, 16), fractions.Fraction], ids=["bytes", "int", "Fraction"]
)
def test_some_functions_refuse_a_value_without_naming_it(use: Callable[[Any], Any], target: FakeTarget) -> None:
    assert isinstance(attempt(use, target), TypeError)


def test_a_list_is_read_by_a_model(target: FakeTarget) -> None:
    target.script = by_name({"items": '["a", "b"]', "number": "2.5"})

    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("items", type=list[str]) + rt.gen("number", type=float)
        return Model(items=s["items"]).items, Price(price=s["number"]).price

    class Price(BaseModel):
        price: float

    assert body.run().value == (["a", "b"], 2.5)


def test_values_of_expressions_have_short_names(target: FakeTarget) -> None:
    error = attempt(lambda v: json.dumps("x" * 300 + v), target)
    assert "joined text" in str(error)
    assert len(str(error)) < 200


def test_endless_names_do_not_fill_the_memory(target: FakeTarget) -> None:
    from rtlang.lang.lazy_values import values

    before = dict(values._classes)
    try:
        for number in range(values._MAX_CLASSES + 50):
            values.text_value(None, ("x",), f"name {number}")
        assert len(values._classes) <= values._MAX_CLASSES + 2
        with pytest.raises(TypeError, match="lazy value of a variable"):
            json.dumps(values.text_value(None, ("x",), "one more"))
    finally:
        values._classes.clear()
        values._classes.update(before)


def test_asyncio_takes_values(target: FakeTarget) -> None:
    target.script = by_name({"a": "x", "b": "2", "c": "z"})

    @rt.program
    async def body(s: Any) -> Any:
        forks = s.fork(3)
        forks[0] += rt.gen("a")
        forks[1] += rt.gen("b", type=int)
        forks[2] += rt.gen("c")
        a, b, c = forks[0]["a"], forks[1]["b"], forks[2]["c"]
        gathered = await asyncio.gather(a, b, a, c)
        completed = {await each for each in asyncio.as_completed([a, b, c])}
        waited = await asyncio.wait_for(b, 30)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in (a, b, a)]
        grouped = [task.result() for task in tasks]
        own = await asyncio.create_task(c)
        ended, _ = await asyncio.wait([asyncio.create_task(each) for each in (a, c)])
        return gathered, completed, waited, grouped, own, {task.result() for task in ended}

    expected = (["x", 2, "x", "z"], {"x", 2, "z"}, 2, ["x", 2, "x"], "z", {"x", "z"})
    assert body.run().value == expected


@pytest.mark.parametrize("how", ["gather", "as_completed", "TaskGroup", "create_task", "wait_for"])
def test_asyncio_waits_for_values_that_do_not_exist_yet(how: str, target: FakeTarget) -> None:
    target.script = by_name({"a": "x", "b": "y"})
    target.hold("a", "b")

    @rt.program
    async def body(s: Any) -> Any:
        forks = s.fork(2)
        forks[0] += rt.gen("a")
        forks[1] += rt.gen("b")
        values = [forks[0]["a"], forks[1]["b"]]

        async def release_in_turn() -> None:
            await asyncio.sleep(0)  # the code below waits by now
            target.release("b")
            await forks[1]["b"]
            target.release("a")

        async with asyncio.TaskGroup() as background:
            background.create_task(release_in_turn())
            match how:
                case "gather":
                    return await asyncio.gather(*values)
                case "as_completed":
                    return [await each for each in asyncio.as_completed(values)][::-1]
                case "TaskGroup":
                    async with asyncio.TaskGroup() as group:
                        tasks = [group.create_task(each) for each in values]
                    return [task.result() for task in tasks]
                case "create_task":
                    tasks = [asyncio.create_task(each) for each in values]
                    assert "Task pending" in repr(tasks[0])
                    return [await task for task in tasks]
                case "wait_for":
                    return [await asyncio.wait_for(each, 30) for each in values]

    result = body.run()
    assert result.value == ["x", "y"]
    assert all(each.location.startswith(__file__) for each in result.breaks)


def test_a_cancelled_task_leaves_the_value_readable(target: FakeTarget) -> None:
    target.script = by_name({"a": "x"})
    target.hold("a")

    @rt.program
    async def body(s: Any) -> Any:
        s += rt.gen("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(s["a"], 0.01)
        task = asyncio.create_task(s["a"])
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        target.release("a")
        return await s["a"]

    assert body.run().value == "x"


def test_the_error_of_a_generation_ends_a_task(target: FakeTarget) -> None:
    target.script = by_name({"a": rt.RequestError("broken")})

    @rt.program
    async def body(s: Any) -> Any:
        s += rt.gen("a")
        return await asyncio.gather(s["a"], return_exceptions=True)

    (error,) = body.run().value
    assert isinstance(error, rt.RequestError)
