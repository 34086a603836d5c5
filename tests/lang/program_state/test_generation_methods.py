"""`s.gen`, `s.select` and those of forks: they append as `s += rt.gen(...)` does and return the value, which stays lazy."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Optional

import pytest

import rtlang as rt
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.lang.program_state.generation_methods import GenOptions
from rtlang.testing import ScriptedRuntime


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Invoice:
    total: int
    note: str | None = None


def search(query: str) -> str:
    """Search."""
    return query


ANSWERS = {
    "invoice": '{"total": 3, "note": "paid"}',
    "color": "blue",
    "tool": '{"name": "search", "arguments": {"query": "x"}}',
}

Appended = Callable[[Any], Any]
PAIRS: list[tuple[Appended, Appended]] = [
    (lambda s: s.gen("x"), lambda s: rt.gen("x")),
    (lambda s: s.gen("x", max_tokens=9, stop="\n"), lambda s: rt.gen("x", 9, stop="\n")),
    (lambda s: s.gen("x", int), lambda s: rt.gen("x", type=int)),
    (lambda s: s.gen(name="x", type=int), lambda s: rt.gen("x", type=int)),
    (
        lambda s: s.gen("invoice", Invoice, temperature=0.5),
        lambda s: rt.gen("invoice", schema=Invoice, temperature=0.5),
    ),
    (lambda s: s.gen("x", Optional[Invoice]), lambda s: rt.gen("x", type=Optional[Invoice])),  # noqa: UP045
    (lambda s: s.gen("x", list[Invoice]), lambda s: rt.gen("x", type=list[Invoice])),
    (lambda s: s.gen("x", Literal["a", "b"]), lambda s: rt.gen("x", type=Literal["a", "b"])),
    (lambda s: s.gen("x", n=3), lambda s: rt.gen("x", n=3)),
    (lambda s: s.gen("x", regex="[ab]"), lambda s: rt.gen("x", regex="[ab]")),
    (lambda s: s.gen("tool", tools=[search]), lambda s: rt.gen("tool", tools=[search])),
    (
        lambda s: s.gen("x", tools=[search], tool_choice="auto"),
        lambda s: rt.gen("x", tools=[search], tool_choice="auto"),
    ),
    (lambda s: s.gen(), lambda s: rt.gen()),
    (lambda s: s.select("color", Color), lambda s: rt.select("color", Color)),
    (lambda s: s.select("x", Literal["a", "b"]), lambda s: rt.select("x", ["a", "b"])),
    (
        lambda s: s.select("x", [1, 2], method="full_likelihood"),
        lambda s: rt.select("x", [1, 2], method="full_likelihood"),
    ),
]


@pytest.mark.parametrize("place", ["plain", "in a block", "in a scope"])
@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_a_handle_records_what_an_appended_generation_does(pair: tuple[Appended, Appended], place: str) -> None:
    of_handle, of_expression = pair

    def program(appends: Callable[[Any], Any]) -> Any:
        @rt.program
        def body(s: Any) -> Any:
            s += rt.user("Begin")
            if place == "in a block":
                with s.assistant():
                    value = appends(s)
            elif place == "in a scope":
                with s.scope("inner"):
                    value = appends(s)
            else:
                value = appends(s)
            s += rt.text(" end")
            return value

        return body

    def by_expression(s: Any) -> Any:
        s += of_expression(s)
        return s.last

    one, other = program(of_handle), program(by_expression)
    runs = [each.run(runtime=ScriptedRuntime(ANSWERS)) for each in (one, other)]
    assert runs[0].graph == runs[1].graph
    assert runs[0].value == runs[1].value
    assert type(runs[0].value) is type(runs[1].value)
    assert runs[0].breaks == ()


def test_a_handle_is_lazy_and_waits_where_python_needs_it() -> None:
    @rt.program
    def body(s: rt.State) -> str:
        invoice = s.gen("invoice", Invoice, max_tokens=60)
        s += rt.text("Total: ", invoice.total + 1)
        return "high" if invoice.total > 2 else "low"

    result = body.run(runtime=ScriptedRuntime(ANSWERS))
    assert result.value == "high"
    assert [each.reason for each in result.breaks] == ["a truth test"]
    assert result.text().endswith("Total: 4")


def test_forks_generate_side_by_side() -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        forks = s.fork(3)
        numbers = forks.gen("number", int)
        colors = forks.select("color", Color)
        forks.join()
        return numbers, s["number"], colors

    numbers, joined, colors = body.run(
        runtime=ScriptedRuntime({"number": ["1", "2", "3"], "color": ["red", "blue", "red"]}), passes="-merge"
    ).value
    assert numbers == joined == [1, 2, 3]
    assert colors == [Color.RED, Color.BLUE, Color.RED]


def test_a_handle_with_n_is_a_list_even_of_one() -> None:
    @rt.program
    def body(s: rt.State, count: int) -> list[int]:
        return s.gen("x", int, n=count)

    scripted = ScriptedRuntime({"x": "7"})
    assert body.run(1, runtime=scripted).value == [7]
    assert body.run(2, runtime=scripted).value == [7, 7]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (20, "max_tokens="),
        (True, "max_tokens="),
        ({"type": "object"}, "schema="),
        (["a", "b"], "choices="),
        ("[a-z]+", "regex="),
    ],
)
def test_a_second_argument_that_is_no_type_says_what_to_write(wrong: Any, hint: str) -> None:
    @rt.program
    def body(s: Any) -> None:
        s.gen("number", wrong)

    with pytest.raises(ParameterError, match=hint) as caught:
        body.run(runtime=ScriptedRuntime())
    assert "(generation 'number' at " in str(caught.value)
    assert "test_generation_methods.py" in str(caught.value)


def test_a_joined_fork_takes_no_generation() -> None:
    @rt.program
    def body(s: rt.State) -> None:
        forks = s.fork(2)
        forks.join()
        forks.gen("x")

    with pytest.raises(TraceError, match="joined"):
        body.run(runtime=ScriptedRuntime())


def test_an_async_program_awaits_a_handle() -> None:
    @rt.program
    async def body(s: rt.State) -> int:
        invoice = await rt.value(s.gen("invoice", Invoice))
        assert type(invoice) is Invoice
        return invoice.total

    assert body.run(runtime=ScriptedRuntime(ANSWERS)).value == 3


def test_the_typed_keywords_are_those_of_gen() -> None:
    of_value = {"name", "type", "schema", "regex", "choices", "grammar", "tools", "tool_choice", "parallel", "n"}
    parameters = inspect.signature(rt.gen).parameters
    assert set(parameters) - of_value == set(GenOptions.__annotations__)
    for name, annotation in GenOptions.__annotations__.items():
        assert annotation.__forward_arg__ == parameters[name].annotation, name
