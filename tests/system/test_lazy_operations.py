"""Operations on values on a real engine: computed in the graph, by Python, over a socket, with any passes, the same text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

import rtlang as rt
from rtlang.contract.request_graph import Apply
from rtlang.serve.server import running_server


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)
    tags: list[str] = Field(min_length=2, max_length=2)


@rt.program
def describe(s: Any, is_eager: bool) -> Any:
    """The same operations, on lazy values or on actual ones."""
    read = rt.value if is_eager else lambda value: value
    s += rt.user("A person as JSON.")
    s += rt.assistant(rt.gen("person", schema=Person, max_tokens=60))
    s += rt.text("Words: ", rt.gen("words", max_tokens=8, temperature=1.0, seed=5))
    s += rt.text(" Number: ", rt.gen("number", type=int, max_tokens=4), " ", rt.gen("ratio", type=float, max_tokens=6))
    person, words, number, ratio = read(s["person"]), read(s["words"]), read(s["number"]), read(s["ratio"])
    pieces = [
        person.name.strip().title(),
        person.age + 1,
        person.tags[0].upper() + "/" + person.tags[-1][::-1],
        words.replace("a", "b").lower()[:5],
        rt.join("-", words.split()),
        rt.format("{1} of {0}", number * 2, -ratio),
        number / 7,
        ratio >= number,
        rt.length(person.tags),
    ]
    for piece in pieces:
        s += rt.text("[", piece, "]")
    s += rt.gen("end", max_tokens=6)
    return pieces


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(device="cpu", dtype="float32", num_pages=512) as runtime:
        yield runtime


def facts(result: rt.Result[Any]) -> tuple[Any, ...]:
    return result.value, result.text(), result.messages, [result.text(name) for name in result.names]


def test_lazy_eager_remote_and_uncompiled_runs_are_equal(runtime: rt.Runtime) -> None:
    lazy = describe.run(is_eager=False, runtime=runtime)
    eager = describe.run(is_eager=True, runtime=runtime)
    assert lazy.breaks == ()
    assert len(eager.breaks) >= 1
    assert sum(isinstance(node, Apply) for node in lazy.graph.nodes) >= 15
    assert not any(isinstance(node, Apply) for node in eager.graph.nodes)
    assert facts(lazy) == facts(eager)
    assert facts(describe.run(is_eager=False, runtime=runtime, passes=False)) == facts(eager)
    with running_server(runtime) as url, rt.connect(url) as remote:
        assert facts(describe.run(is_eager=False, runtime=remote)) == facts(eager)


def test_a_failed_operation_has_the_same_place_on_a_server(runtime: rt.Runtime) -> None:
    @rt.program
    def failing(s: Any) -> None:
        s += "One word: " + rt.gen("word", regex="[a-z]{1,5}", max_tokens=8)
        s += rt.text(" and ", s["word"].split()[3]) + rt.gen("end", max_tokens=3)

    place = f"{__file__}:{failing.__wrapped__.__code__.co_firstlineno + 3}"  # type: ignore[attr-defined]
    with running_server(runtime) as url, rt.connect(url) as remote:
        errors = [failing.run(runtime=target, on_error="result").error for target in (runtime, remote)]
    for error in errors:
        assert isinstance(error, rt.ApplyError)
        assert error.recorded_at == place
        assert "list index out of range" in str(error)
    assert str(errors[0]) == str(errors[1])
