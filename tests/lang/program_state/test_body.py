"""A function with its arguments."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

import rtlang as rt
from rtlang.lang.program_state.body import Body, current_state
from rtlang.lang.program_state.state import State
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording
from rtlang.testing import ScriptedRuntime


def plain(s: Any, a: int, b: int = 2) -> Any:
    return current_state(), a, b


async def coroutine(s: Any, a: int) -> Any:
    await asyncio.sleep(0)
    return current_state(), a


def state(is_async: bool = False) -> State:
    return State(StateRecord(Recording(AheadOfTime(is_async))))


def test_arguments_add_up() -> None:
    body = Body(plain).bound((1,), {}).bound((), {"b": 3}).bound((), {"b": 4})
    s = state()
    assert body.call(s) == (s, 1, 4)
    assert (body.name, body.is_async, Body(coroutine).is_async) == ("plain", False, True)


@pytest.mark.parametrize(("args", "kwargs"), [((1, 2, 3), {}), ((), {"c": 1}), ((1,), {"a": 1})])
def test_arguments_the_function_does_not_take_are_refused(args: tuple[int, ...], kwargs: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Body(plain).bound(args, kwargs)


def test_a_missing_argument_is_named_with_the_function() -> None:
    with pytest.raises(TypeError, match=r"plain\(\).*'a'"):
        Body(plain).check_complete()
    with pytest.raises(rt.TraceError, match="'who'"):
        Body(plain, (rt.arg("who"),)).check_complete()
    Body(plain, (1,)).check_complete()


def test_the_current_state_is_that_of_the_innermost_body() -> None:
    outer, inner = state(), state()

    def calls(s: Any) -> Any:
        found = Body(plain, (1,)).call(inner)[0]
        return found, current_state()

    assert Body(calls).call(outer) == (inner, outer)
    assert current_state() is None


def test_coroutines_have_a_current_state_each() -> None:
    async def both() -> Any:
        first, second = state(True), state(True)
        found = await asyncio.gather(
            asyncio.create_task(Body(coroutine, (1,)).call_async(first)),
            asyncio.create_task(Body(coroutine, (2,)).call_async(second)),
        )
        assert current_state() is None
        return list(found) == [(first, 1), (second, 2)]

    assert asyncio.run(both())


def test_an_expression_that_is_not_appended_is_refused() -> None:
    @rt.program
    def returns(s: Any) -> Any:
        return rt.gen("z")

    @rt.program
    def sets(s: Any) -> None:
        s.set("z", rt.text("a", rt.gen("z")))

    @rt.program
    async def forgets(s: Any) -> Any:
        s += "a" + rt.gen("z")
        return rt.value({"z": s["z"]})

    with ScriptedRuntime({"z": "y"}, checks=False) as runtime:
        with pytest.raises(rt.TraceError, match=r"returns\(\) returns rt.gen\('z'\), which is not part of a sequence"):
            returns.run(runtime=runtime)
        with pytest.raises(rt.TraceError, match=r"set\('z'\) got rt.gen\('z'\), which is not part of a sequence"):
            sets.run(runtime=runtime)
        assert forgets.run(runtime=runtime).value == {"z": "y"}


class Method:
    def plain(self, s: Any, a: int, *rest: int, **options: Any) -> None: ...


def test_a_run_is_identified_by_what_its_parameters_get() -> None:
    digest = Body(plain, (1,), {"b": 3}).arguments_digest()
    assert digest == Body(plain, (1, 3)).arguments_digest() == Body(plain, (), {"b": 3, "a": 1}).arguments_digest()
    assert digest == Body(plain, (1,)).bound((), {"b": 3}).arguments_digest()
    assert digest != Body(plain, (3, 1)).arguments_digest() != Body(plain, (1,)).arguments_digest()
    method, receiver = Method.plain, (Method(),)
    named = Body(method, (), {"a": 1, "x": object()}, receiver)
    assert named.arguments_digest() == Body(method, (1,), {"x": object()}, receiver).arguments_digest()
    assert (
        Body(method, (1, 2), {}, receiver).arguments_digest() != Body(method, (1, 3), {}, receiver).arguments_digest()
    )
    endless: list[Any] = [1]
    endless.append(endless)
    assert Body(plain, (endless,)).arguments_digest() == Body(plain, (), {"a": endless}).arguments_digest()


def test_a_run_has_the_same_identity_in_every_process() -> None:
    """The order of sets of texts differs from one process to the next."""
    code = """
from rtlang.lang.program_state.body import Body
def plain(s, a): ...
print(Body(plain, ({"a": [set("abcdefgh")]},)).identity())
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(runs)) == 1
