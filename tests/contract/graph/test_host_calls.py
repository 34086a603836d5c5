"""Functions of host calls that return or raise odd things: the call fails, and nothing waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.errors import CallError
from rtlang.testing import ScriptedRuntime


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message")


@dataclass
class Broken:
    amount: int = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "amount":
            raise RuntimeError("no amount")
        return super().__getattribute__(name)


class Holder(BaseModel, arbitrary_types_allowed=True):
    item: object


class Pair(BaseModel):
    first: str
    second: str


def cycle() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def mute() -> Any:
    raise Mute


def leave() -> Any:
    raise SystemExit("enough")


ODD: list[tuple[Callable[[], Any], str]] = [
    (cycle, "RecursionError"),
    (lambda: Holder(item=object()), "expected plain data as its return value"),
    (lambda: Broken(), "no amount"),
    (mute, "Mute"),
    (leave, "SystemExit: enough"),
]


@pytest.mark.parametrize(("function", "named"), ODD)
def test_odd_values_and_errors_fail_the_call(function: Callable[[], Any], named: str) -> None:
    @rt.program
    def calls(s: rt.State) -> Any:
        return rt.call(function)

    with ScriptedRuntime() as runtime:
        error = calls.run(runtime=runtime, on_error="result", deadline_s=20).error
    assert isinstance(error, CallError)
    assert named in str(error)


def test_a_loaded_graph_takes_coroutines_and_models() -> None:
    async def double(value: str) -> Any:
        return Pair(first=value, second=value)

    @rt.program
    def calls(s: rt.State) -> Any:
        s += "x" + rt.gen("word", max_tokens=6)
        s += rt.text(rt.call(double, s["word"]))
        s += rt.gen("end", max_tokens=3)

    with ScriptedRuntime() as runtime:
        calls.graph().run(runtime, functions={"double": double}, deadline_s=20)
        assert runtime.prompts("end") == ["x<word>{'first': '<word>', 'second': '<word>'}"]
        with pytest.raises(rt.ParameterError, match=r"functions = .*expected a mapping of names to functions"):
            calls.graph().run(runtime, functions={"double": 3})  # type: ignore[dict-item]
        with pytest.raises(rt.ParameterError, match="runtime = 3"):
            calls.graph().run(3)  # type: ignore[arg-type]


def test_a_wrong_number_of_arguments_has_no_place_inside_of_the_package() -> None:
    @rt.program
    def calls(s: rt.State) -> Any:
        return rt.call(lambda one: one)

    with ScriptedRuntime() as runtime, pytest.raises(CallError) as caught:
        calls.run(runtime=runtime)
    assert "missing 1 required positional argument" in str(caught.value)
    assert "(at " not in str(caught.value)


@pytest.mark.parametrize("function", [cycle, mute, leave])
def test_a_loaded_graph_fails_likewise(function: Callable[[], Any]) -> None:
    @rt.program
    def calls(s: rt.State) -> Any:
        s += "x"
        s += rt.text(rt.call(function))
        s += rt.gen("end", max_tokens=3)

    with ScriptedRuntime() as runtime, pytest.raises(CallError):
        calls.graph().run(runtime, functions={function.__name__: function}, deadline_s=20)
