"""Programs in classes, programs made from callables, and options that a program carries."""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.node_paths import mixed_seed
from rtlang.contract.request_graph import Generate
from tests.support.programs.fake_target import Call, FakeTarget


class Agent:
    kind = "robot"

    def __init__(self, name: str) -> None:
        self.name = name

    @rt.program
    def ask(self, s: rt.State, question: str, *more: str, tone: str = "warm") -> tuple[str, str]:
        """Ask."""
        s += rt.text(self.name, "|", question, "|", *more, "|", tone) + rt.gen("answer")
        return self.name, s["answer"]

    @rt.program
    async def think(self, s: rt.State, question: str) -> str:
        s += rt.text(self.name, "|", question) + rt.gen("thought")
        return str(await s["thought"])

    @rt.program
    def twice(self, s: rt.State, question: str) -> list[Any]:
        return [self.ask(s, question), self.ask(question=question), Agent.count(s, 3)]

    @staticmethod
    @rt.program
    def count(s: rt.State, limit: int) -> int:
        s += rt.text("count|", limit) + rt.gen("count", limit)
        return s["count"]

    @rt.program
    @staticmethod
    def other_count(s: Any, limit: int) -> Any:
        s += rt.text("other|", limit) + rt.gen("count", limit)
        return s["count"]

    @rt.program
    @classmethod
    def about(cls, s: rt.State, topic: str) -> str:
        s += rt.text(cls.kind, "|", topic) + rt.gen("about")
        return s["about"]

    @rt.program
    def named_otherwise(this, s: rt.State) -> str:
        s += rt.text(this.name) + rt.gen("x")
        return s["x"]


class Cat(Agent):
    kind = "cat"

    @rt.program
    def ask(self, s: rt.State, question: str, *more: str, tone: str = "cold") -> tuple[str, str]:
        return super().ask(s, question, "meow", tone=tone)


class Holder:
    """A class with programs of a module as attributes; they stay what they are."""


@pytest.fixture
def target() -> Iterator[FakeTarget]:
    def echo(call: Call) -> str:
        return f"[{call.prompt}]"

    with FakeTarget(echo) as target:
        yield target


@rt.program
def plain(s: rt.State, text: str, n: int = 1) -> str:
    s += rt.text(text, n) + rt.gen("x", max_tokens=7)
    return s["x"]


def test_a_method_has_its_instance_in_front_of_the_state(target: FakeTarget) -> None:
    eve, adam = Agent("Eve"), Agent("Adam")
    assert eve.ask.run("Why?", runtime=target).value == ("Eve", "[Eve|Why?||warm]")
    assert adam.ask.run("Why?", "a", "b", tone="cold", runtime=target).value == ("Adam", "[Adam|Why?|ab|cold]")
    assert eve.think.run("Why?", runtime=target).value == "[Eve|Why?]"
    assert asyncio.run(eve.think.arun(question="Why?", runtime=target)).value == "[Eve|Why?]"
    assert eve.named_otherwise.run(runtime=target).value == "[Eve]"
    batch = eve.ask.run_batch([{"question": "1"}, {"question": "2"}], runtime=target)
    assert [each.value[1] for each in batch] == ["[Eve|1||warm]", "[Eve|2||warm]"]
    assert eve.ask.bind("Why?").run(runtime=target).value[1] == "[Eve|Why?||warm]"
    assert [type(node) for node in eve.ask.graph("Why?").nodes].count(Generate) == 1
    assert (eve.ask.name, eve.ask.__doc__, eve.think.is_async) == ("ask", "Ask.", True)


def test_methods_call_each_other_on_the_same_sequence_and_on_new_ones(target: FakeTarget) -> None:
    first, second, count = Agent("Eve").twice.run("?", runtime=target).value
    assert first == ("Eve", "[Eve|?||warm]")
    assert second == ("Eve", "[Eve|?||warm]")
    assert count.startswith("[Eve|?||warm[Eve|?||warm]count|3")


def test_static_and_class_methods_find_their_state(target: FakeTarget) -> None:
    for owner in (Agent, Agent("Eve")):
        assert owner.count.run(5, runtime=target).value == "[count|5]"
        assert owner.other_count.run(limit=5, runtime=target).value == "[other|5]"
        assert owner.about.run("x", runtime=target).value == "[robot|x]"
    assert Cat.about.run("x", runtime=target).value == "[cat|x]"


def test_a_subclass_extends_a_method(target: FakeTarget) -> None:
    assert Cat("Tom").ask.run("?", runtime=target).value == ("Tom", "[Tom|?|meow|cold]")


def test_a_program_that_is_an_attribute_of_a_class_is_no_method(target: FakeTarget) -> None:
    Holder.program = plain  # type: ignore[attr-defined]
    assert Holder().program.run("x", runtime=target).value == "[x1]"  # type: ignore[attr-defined]


def test_a_method_without_instance_says_so() -> None:
    with pytest.raises(AttributeError, match=r"ask\.run: ask is a method, so read it from an instance"):
        Agent.ask.run("Why?")
    with pytest.raises(AttributeError, match=r"write @rt\.program above @classmethod"):
        types.MethodType(vars(Agent)["ask"], Agent).run("x")  # as @classmethod above @rt.program from Python 3.13 on
    with pytest.raises(TraceError, match=r"f\(self\) has no state"):

        @rt.program
        def f(self: Any) -> None: ...


def test_a_class_with_programs_can_be_inspected_and_called_from() -> None:
    found = dict(inspect.getmembers(Agent))
    assert repr(found["ask"]) == "<program method ask>"
    assert found["ask"].__doc__ == "Ask."
    assert list(inspect.signature(Agent("Eve").ask).parameters)[:3] == ["self", "s", "question"]

    @rt.program
    def outer(s: rt.State) -> Any:
        return Agent.ask(Agent("Eve"), s, "Why?")

    with FakeTarget(lambda call: call.prompt) as target:
        assert outer.run(runtime=target).value == ("Eve", "Eve|Why?||warm")


def test_partial_functions_and_callable_objects_are_programs(target: FakeTarget) -> None:
    class Writer:
        async def __call__(self, s: rt.State, text: str) -> str:
            s += rt.text(text) + rt.gen("x")
            return str(await s["x"])

    def write(s: rt.State, text: str, end: str) -> str:
        s += rt.text(text, end) + rt.gen("x")
        return s["x"]

    assert rt.program(functools.partial(write, end="!")).run("Hi", runtime=target).value == "[Hi!]"
    written = rt.program(Writer())
    assert written.run("Hi", runtime=target).value == "[Hi]"
    assert written.name == "Writer"


def test_options_of_a_program_hold_for_its_runs_and_those_of_a_run_override_them(target: FakeTarget) -> None:
    with FakeTarget(lambda call: "other") as other:
        mine = plain.with_options(runtime=other, params=rt.Sampling(temperature=0.5, seed=3), on_error="result")
        assert mine.run("x").value == "other"
        assert mine.run("x", runtime=target).value == "[x1]"
        nodes = mine.bind("x").run().graph.nodes
        assert [node.params.temperature for node in nodes if isinstance(node, Generate)] == [0.5]
        nodes = mine.with_options(params=rt.Sampling(seed=9)).graph("x").nodes
        assert [node.params.seed for node in nodes if isinstance(node, Generate)] == [None]  # greedy
        nodes = mine.with_options(params=rt.Sampling(seed=9, temperature=1.0)).graph("x").nodes
        assert [node.params.seed for node in nodes if isinstance(node, Generate)] == [mixed_seed(9, "x")]
        assert [each.value for each in mine.run_batch([{"text": "a"}, {"text": "b"}])] == ["other", "other"]
        assert mine.stream("x").result().value == "other"
        assert asyncio.run(mine.arun("x")).value == "other"
    late = plain.with_options(runtime=target, deadline_s=0.0001, on_error="result")
    assert isinstance(late.run("x", deadline_s=30.0).error, type(None))


def test_a_failure_is_a_result_where_the_options_say_so() -> None:
    @rt.program
    def fails(s: rt.State) -> None:
        s += "x" + rt.gen("y")
        raise LookupError("gone")

    with FakeTarget(lambda call: "") as target:
        assert isinstance(fails.with_options(runtime=target, on_error="result").run().error, LookupError)
        with pytest.raises(LookupError):
            fails.with_options(runtime=target, on_error="result").run(on_error="raise")
        with pytest.raises(LookupError):
            fails.with_options(runtime=target, on_error="raise").run_batch([{}])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"params": {"seed": 1}}, "params"),
        ({"deadline_s": "soon"}, "deadline_s"),
        ({"priority": 1.5}, "priority"),
        ({"on_error": "ignore"}, "on_error"),
        ({"runtime": "ws://127.0.0.1"}, "runtime"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plain.with_options(**options)
    assert caught.value.field == field


def test_options_of_a_called_program_are_refused_rather_than_ignored(target: FakeTarget) -> None:
    mine = plain.with_options(params=rt.Sampling(seed=3))

    @rt.program
    def outer(s: rt.State) -> str:
        return mine(s, "x")

    with pytest.raises(TraceError, match=r"call plain without with_options\(params\)"):
        outer.run(runtime=target)
