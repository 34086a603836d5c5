"""The best candidate by a score: a function, a coroutine function, or a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.errors import CallError, ParameterError, TraceError
from rtlang.testing import ScriptedRuntime
from tests.support.servers.serving import serving


class Thing(BaseModel):
    name: str
    size: int


@pytest.fixture(params=["local", "remote"])
def serve(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Makes a runtime that answers from a script, in this process or behind a socket."""
    closers: list[Any] = []

    def start(answers: dict[str | None, Any]) -> Any:
        script = ScriptedRuntime(answers)
        closers.append(script)
        if request.param == "local":
            return script
        server = serving(cast(Any, script))
        remote = rt.connect(server.__enter__().url)
        closers.extend((_Exit(server), remote))
        return remote

    yield start
    for each in reversed(closers):
        each.close()


class _Exit:
    def __init__(self, context: Any) -> None:
        self._context = context

    def close(self) -> None:
        self._context.__exit__(None, None, None)


def asked(by: Any, n: int = 3, **options: Any) -> Any:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        s += rt.assistant("> ", rt.best_of(n, rt.gen("x", 60, temperature=1.0, **options), by=by))
        s += rt.user("so")
        s += rt.assistant(rt.gen("y", 9))
        return s["x"]

    return ask


def test_the_best_by_a_function_goes_on(serve: Any) -> None:
    result = asked(len).run(runtime=serve({None: ["a", "ccc", "bb"], "y": "end"}))
    assert (result.value, result["x"], result.breaks) == ("ccc", "ccc", ())
    assert [message["content"] for message in result.messages] == ["hi", "> ccc", "so", "end"]
    assert result.meta("x").token_ids == tuple(map(ord, "ccc"))
    assert result.text("x") == "ccc"


def test_the_earliest_wins_a_tie_and_coroutine_functions_are_awaited(serve: Any) -> None:
    async def score(text: str) -> float:
        return 1.5 if text in "ab" else -1.0

    assert asked(score).run(runtime=serve({None: ["c", "b", "a"]})).value == "b"


def test_functions_get_typed_values_whose_fields_stay_lazy(serve: Any) -> None:
    seen: list[Any] = []

    def score(thing: Thing) -> int:
        seen.append(thing)
        return thing.size

    @rt.program
    def ask(s: rt.State) -> Any:
        s += "x" + rt.best_of(2, rt.gen("thing", 60, schema=Thing, temperature=1.0), by=score)
        s += rt.text(" is ", s["thing"].name) + rt.gen("y", 9)
        return s["thing"]

    answers: dict[str | None, Any] = {None: ['{"name":"a","size":1}', '{"name":"b","size":2}'], "y": "."}
    result = ask.run(runtime=serve(answers))
    assert result.value == Thing(name="b", size=2)
    assert sorted(seen, key=lambda each: each.size) == [Thing(name="a", size=1), Thing(name="b", size=2)]
    assert result.text().endswith(" is b.")
    assert result.breaks == ()


def test_a_program_can_be_the_judge(serve: Any) -> None:
    @rt.program
    def judge(s: rt.State, text: str) -> Any:
        s += rt.user("Rate: ", text)
        s += rt.assistant(rt.gen("rating", 4, type=int))
        return s["rating"]

    def rating(prompt: str) -> str:
        return {"a": "3", "b": "9", "c": "4"}[prompt.rstrip().splitlines()[0][-1]]

    result = asked(judge).run(runtime=serve({None: ["a", "b", "c"], "rating": rating, "y": "end"}))
    assert (result.value, result.breaks) == ("b", ())
    assert sorted(result[f"judge{number}.rating"] for number in ("", "#2", "#3")) == [3, 4, 9]


def test_a_candidate_whose_score_fails_does_not_win_and_is_an_error(serve: Any) -> None:
    def score(text: str) -> int:
        if text == "ccc":
            raise ValueError("too long")
        return len(text)

    result = asked(score).run(runtime=serve({None: ["a", "ccc", "bb"]}), on_error="result")
    assert result["x"] == "bb"
    assert isinstance(result.error, CallError)
    assert "too long" in str(result.error)


def test_the_sequence_continues_with_the_tokens_of_the_winner() -> None:
    def vowels(text: str) -> int:
        return sum(text.count(each) for each in "aeiou")

    @rt.program
    def one(s: rt.State, seed: int) -> None:
        s += rt.user("Hi")
        s += rt.assistant(rt.gen("x", 12, temperature=1.0, seed=seed))
        s += rt.user("Again")
        s += rt.gen("y", 6)

    @rt.program
    def several(s: rt.State, seed: int) -> None:
        s += rt.user("Hi")
        s += rt.assistant(rt.best_of(4, rt.gen("x", 12, temperature=1.0, seed=seed), by=vowels))
        s += rt.user("Again")
        s += rt.gen("y", 6)

    with rt.Runtime(dtype="float32") as runtime:
        for seed in (3, 11, 20):
            every = [one.run(seed + number, runtime=runtime) for number in range(4)]
            expected = max(every, key=lambda result: vowels(result["x"]))
            for passes in (True, False):
                result = several.run(seed, runtime=runtime, passes=passes)
                assert result["x"] == expected["x"]
                assert result.meta("x").token_ids == expected.meta("x").token_ids
                assert result["y"] == expected["y"]
                assert result.messages == expected.messages
                assert result.meta("y").usage.prompt_tokens == expected.meta("y").usage.prompt_tokens


def test_one_candidate_needs_no_score() -> None:
    with ScriptedRuntime({"x": "a"}) as runtime:
        assert asked(lambda text: 1 // 0, n=1).run(runtime=runtime).value == "a"


def test_mistakes_are_refused() -> None:
    for wrong in (3, "length", None):
        with pytest.raises(ParameterError, match="by"):
            rt.best_of(3, rt.gen("x", temperature=1.0), by=cast(Any, wrong))

    @rt.program
    def inside(s: rt.State) -> None:
        s += "a" + rt.gen("y", 5)
        rt.switch(s["y"], {"a": rt.best_of(3, rt.gen("x", temperature=1.0), by=len)})

    @rt.program
    def greedy(s: rt.State) -> None:
        s += "a" + rt.best_of(3, rt.gen("x", 5), by=len)

    with ScriptedRuntime() as runtime:
        with pytest.raises(TraceError, match=r"test_best_of.py:\d+: rt.best_of"):
            inside.run(runtime=runtime)
        with pytest.raises(ParameterError, match="best_of"):
            greedy.run(runtime=runtime)
