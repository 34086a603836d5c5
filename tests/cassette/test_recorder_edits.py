"""Edited programs over a recording: what an edit does not touch is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, field_validator

import rtlang as rt

NUM_SWITCHES = 3
"""One in each row. They are decided again, which computes nothing."""


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as started:
        yield started


def steps(s: Any, x: str) -> None:
    """Ten generations: greedy, sampled, constrained, in forks, in a loop, in a branch of the graph."""
    s += rt.user("Hello ", x)
    s += rt.assistant(rt.gen("greeting", max_tokens=4))
    s += rt.user("A word?")
    s += rt.assistant(rt.gen("word", max_tokens=4, temperature=1.0))
    for kind, fork in zip(("red", "blue"), s.fork(2), strict=True):
        fork += rt.user("Why ", kind)
        fork += rt.assistant(rt.gen("why", max_tokens=3, temperature=1.0), rt.gen("sure", type=bool))
    rt.switch(s["greeting"], {}, default=rt.user("Well?") + rt.assistant(rt.gen("well", 3)))
    s += rt.user("Pick.")
    s += rt.assistant(rt.gen("pick", type=Literal["a", "bb"], temperature=1.0), rt.select("sel", ["x", "y"]))
    s += rt.user("A number?")
    s += rt.assistant(rt.gen("number", type=int, max_tokens=4))


def printed(s: Any, x: str) -> None:
    s += rt.user("Hello ", x)
    s += rt.assistant(rt.gen("greeting", max_tokens=4))
    print(s["greeting"])
    s += rt.user("A word?")
    s += rt.assistant(rt.gen("word", max_tokens=4, temperature=1.0))
    if "q" in str(s["word"]):
        print("a q")
    for kind, fork in zip(("red", "blue"), s.fork(2), strict=True):
        fork += rt.user("Why ", kind)
        fork += rt.assistant(rt.gen("why", max_tokens=3, temperature=1.0), rt.gen("sure", type=bool))
        print(fork["sure"])
    rt.switch(s["greeting"], {}, default=rt.user("Well?") + rt.assistant(rt.gen("well", 3)))
    s += rt.user("Pick.")
    s += rt.assistant(rt.gen("pick", type=Literal["a", "bb"], temperature=1.0), rt.select("sel", ["x", "y"]))
    s += rt.user("A number?")
    s += rt.assistant(rt.gen("number", type=int, max_tokens=4))


def continued(s: Any, x: str) -> None:
    aside = s.copy()
    aside += rt.user("Aside ", x)
    aside += rt.assistant(rt.gen("aside", max_tokens=2))
    steps(s, x)
    s += rt.user("Anything else?")
    s += rt.assistant(rt.gen("else", max_tokens=2))


def run(path: Path, runtime: rt.Runtime, body: Callable[..., Any]) -> tuple[list[Any], int, int]:
    """The values of all rows, and the numbers of outcomes that were replayed and recorded."""
    named = rt.program(body)
    body.__name__ = "steps"  # the program that was edited
    with rt.record(path, runtime) as recorder:
        results = named.run_batch([{"x": str(number)} for number in range(3)])
    assert [each.error for each in results] == [None] * 3
    names = ("greeting", "word", "why", "sure", "pick", "sel", "number")
    values = [[result[name] for name in names] for result in results]
    return values, recorder.num_replayed, recorder.num_recorded


def test_a_print_recomputes_nothing(runtime: rt.Runtime, tmp_path: Path) -> None:
    values, _, num = run(tmp_path / "x", runtime, steps)
    assert run(tmp_path / "x", runtime, printed) == (values, num - NUM_SWITCHES, 0)


def test_a_later_step_and_a_side_branch_compute_themselves_only(runtime: rt.Runtime, tmp_path: Path) -> None:
    values, _, num = run(tmp_path / "x", runtime, steps)
    assert run(tmp_path / "x", runtime, continued) == (values, num - NUM_SWITCHES, 6)


def test_a_renamed_greedy_variable_recomputes_nothing(runtime: rt.Runtime, tmp_path: Path) -> None:
    def before(s: Any) -> None:
        for name in ("a", "b", "c"):
            s += "x" + rt.gen(name, max_tokens=3) + rt.gen(f"{name}_sure", type=bool)

    def after(s: Any) -> None:
        for name in ("a", "beta", "c"):
            s += "x" + rt.gen(name, max_tokens=3) + rt.gen(f"{name}_sure", type=bool)

    for body, expected in ((before, (0, 6)), (after, (6, 0))):
        body.__name__ = "body"
        with rt.record(tmp_path / "x", runtime) as recorder:
            rt.program(body).run()
        assert (recorder.num_replayed, recorder.num_recorded) == expected


def sampled(*names: str) -> Callable[..., Any]:
    """A body that samples variables of these names one after the other, in two forks, with a call."""

    def body(s: Any) -> None:
        for fork in s.fork(2):
            for name in names:
                fork += "x" + rt.gen(name, max_tokens=3, temperature=1.0)
                fork += "y" + rt.gen(f"{name}_more", max_tokens=2)

    return body


@pytest.mark.parametrize("names", [("a", "beta", "c"), ("alpha", "beta", "gamma")])
def test_a_renamed_sampled_variable_recomputes_nothing(
    runtime: rt.Runtime, tmp_path: Path, names: tuple[str, ...]
) -> None:
    texts = []
    for body, expected in ((sampled("a", "b", "c"), (0, 12)), (sampled(*names), (12, 0)), (sampled(*names), (12, 0))):
        with rt.record(tmp_path / "x", runtime) as recorder:
            texts.append(rt.program(body).run().text())
        assert (recorder.num_replayed, recorder.num_recorded) == expected
    with rt.replay(tmp_path / "x"):
        texts.append(rt.program(sampled(*names)).run().text())
    assert len(set(texts)) == 1


def test_a_variable_that_is_added_takes_nothing_over(runtime: rt.Runtime, tmp_path: Path) -> None:
    def before(s: Any) -> None:
        s += "x" + rt.gen("a", max_tokens=8, temperature=1.0, n=2)

    def after(s: Any) -> None:
        s += "x"
        s += rt.gen("b", max_tokens=8, temperature=1.0, n=2)
        s += rt.gen("a", max_tokens=8, temperature=1.0, n=2)

    results = []
    for body, expected in ((before, (0, 1)), (after, (1, 1))):
        body.__name__ = "body"
        with rt.record(tmp_path / "x", runtime) as recorder:
            results.append(rt.program(body).run())
        assert (recorder.num_replayed, recorder.num_recorded) == expected
    assert results[1].text("a") == results[0].text("a")
    assert all(each.is_replayed for each in results[1].meta("a"))
    assert not any(each.is_replayed for each in results[1].meta("b"))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_of_five_prompts_only_the_edited_one_is_computed(
    runtime: rt.Runtime, tmp_path: Path, temperature: float
) -> None:
    def five(s: Any, x: str, last: str) -> None:
        for number, fork in enumerate(s.fork(5)):
            fork += rt.user(last if number == 4 else f"Question {number}", " about ", x)
            fork += rt.assistant(rt.gen("answer", max_tokens=6, temperature=temperature))

    def run(last: str) -> tuple[int, int]:
        def edited(s: Any, x: str) -> None:
            five(s, x, last)

        with rt.record(tmp_path / "x", runtime) as recorder:
            rt.program(edited).run_batch([{"x": str(number)} for number in range(8)])
        return recorder.num_replayed, recorder.num_recorded

    assert run("Question 4") == (0, 40)
    assert run("Another one") == (32, 8)
    assert run("Question 4") == (40, 0)


def test_pure_functions_of_one_name_are_not_taken_for_each_other(runtime: rt.Runtime, tmp_path: Path) -> None:
    """Checks and pure calls that rows define with values of their own, over one text of all rows."""

    def body(s: Any, row: int, limit: int) -> None:
        @rt.pure
        def shown(text: str) -> str:
            return f"{row} of {len(text)}"

        def is_long(text: str) -> str | None:
            return None if row % 2 else f"write {row} again"

        s += rt.user("Hello")
        s += rt.assistant(rt.gen("text", max_tokens=3, check=is_long, repair=1, on_repair="{message}"))
        s.set("shown", rt.call(shown, s["text"]))

    rows = [{"row": row, "limit": 5} for row in range(4)]
    found = []
    for _ in range(2):
        with rt.record(tmp_path / "x", runtime) as recorder:
            results = rt.program(body).run_batch(rows)
        messages = [[each.message for each in result.meta("text").attempts] for result in results]
        shown = [result["shown"] if row % 2 else None for row, result in enumerate(results)]
        found.append((messages, shown))
        assert [each[0] for each in messages] == ["write 0 again", None, "write 2 again", None]
        assert all(str(each).startswith(f"{row} of") for row, each in enumerate(shown) if row % 2)
    assert found[0] == found[1]
    assert recorder.num_recorded == 0


def test_an_edited_check_is_asked_again(runtime: rt.Runtime, tmp_path: Path) -> None:
    class Short(BaseModel):
        ok: bool

    class Stricter(BaseModel):
        ok: bool

        @field_validator("ok")
        @classmethod
        def refuse(cls, value: bool) -> bool:
            raise ValueError("never")

    Stricter.__name__ = Stricter.__qualname__ = "Short"

    def tried(kind: Any, check: Callable[[Any], bool]) -> list[str | None]:
        def body(s: Any) -> None:
            s += rt.user("Hello")
            s += rt.assistant(rt.gen("value", type=kind, max_tokens=20, check=check))

        with rt.record(tmp_path / "x", runtime):
            result = rt.program(body).run(on_error="result")
        return [each.message for each in result.meta("value").attempts]

    assert tried(Short, lambda value: True) == [None]
    assert tried(Short, lambda value: False) != [None]
    assert "never" in str(tried(Stricter, lambda value: True)[0])
    assert tried(Short, lambda value: True) == [None]
