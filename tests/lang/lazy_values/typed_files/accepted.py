"""A realistic file of a user, which type checkers accept in their strict modes. `assert_type` holds what they infer."""

from __future__ import annotations

import asyncio
import datetime
import enum
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional, assert_type

from pydantic import BaseModel

import rtlang as rt


class Order(BaseModel):
    item: str
    quantity: int


@rt.program
def greet(s: rt.State, name: str, tone: str = "warm") -> str:
    s += rt.system("You are polite.")
    s += rt.user("Greet ", name, " in a ", tone, " tone.")
    s += rt.assistant(rt.gen("greeting", max_tokens=20))
    return s["greeting"]


@rt.program
def extract(s: rt.State, text: str, *, limit: int = 80) -> Order:
    s += rt.user("Extract the order.\n", text)
    with s.assistant():
        s += rt.gen("order", schema=Order, max_tokens=limit)
    return s["order"]


@rt.program
def nothing(s: rt.State) -> None:
    s += "Hello" + rt.gen("x", max_tokens=4)


@rt.program
async def triage(s: rt.State, review: str) -> Literal["refund", "thanks"]:
    s += rt.text("Review: ", review, "\nSentiment: ")
    s += rt.select("label", ["positive", "negative"])
    return "refund" if await s["label"] == "negative" else "thanks"


@rt.program
def both(s: rt.State, names: list[str]) -> list[str]:
    first = greet(s, name=names[0])
    assert_type(first, str)
    others = s.fork(len(names))
    for fork, name in zip(others, names, strict=True):
        fork += rt.user(name, first)
        fork += rt.assistant(rt.gen("reply", 8))
    others.join()
    return [greet(name=names[1], tone="cold"), *s["reply"]]


@rt.program
async def inner(s: rt.State, review: str) -> str:
    label = await triage(s, review=review)
    assert_type(label, Literal["refund", "thanks"])
    return label


@rt.program
def many(s: rt.State, /, *words: str, **options: int) -> int:
    s += rt.text(*words) + rt.gen("n", type=int, max_tokens=options.get("size", 4))
    return s["n"]


@dataclass
class Agent:
    name: str

    @rt.program
    def ask(self, s: rt.State, question: str, limit: int = 10) -> str:
        s += rt.user(self.name, question) + rt.assistant(rt.gen("answer", limit))
        return s["answer"]

    @rt.program
    async def think(self, s: rt.State, question: str) -> int:
        s += rt.user(question) + rt.assistant(rt.gen("n", type=int, max_tokens=4))
        count: int = await s["n"]
        return count + len(await self.later(s, question))

    @rt.program
    async def later(self, s: rt.State, question: str) -> str:
        s += rt.user(question) + rt.assistant(rt.gen("later", 4))
        return s["later"]

    @rt.program
    @classmethod
    def about(cls, s: rt.State, topic: str) -> str:
        s += rt.text(cls.__name__, topic) + rt.gen("about", 4)
        return s["about"]

    @staticmethod
    @rt.program
    def count(s: rt.State, limit: int) -> int:
        s += rt.gen("n", type=int, max_tokens=limit)
        return s["n"]


def search(query: str, limit: int = 3) -> str:
    """Search."""
    return query * limit


@rt.program
def use_tools(s: rt.State, question: str) -> rt.ToolCall:
    s += rt.system("Help.", tools=[search])
    s += rt.user(question) + rt.assistant(rt.gen("call", 60, tools=[search], tool_choice="required"))
    call: rt.ToolCall = s["call"]
    s += rt.tool(str(call.run()), call.args["query"])
    s += rt.assistant(rt.gen("more", 60, type=rt.tools([search], choice=search)))
    reply: rt.ToolReply = s["more"]
    return reply.calls[0] if reply.calls else call


@rt.program
def forms(s: rt.State) -> tuple[int, list[rt.Tag]]:
    s += rt.gen("line", type=rt.sequence("n = ", int, ";")) + rt.gen("tags", type=rt.tagged({"<n>": (int, "</n>")}))
    tags = [each for each in s["tags"] if isinstance(each, rt.Tag)]
    return s["line"][1], tags


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@rt.program
def handles(s: rt.State, count: int, hint: str | None = None) -> Order:
    if hint is not None:
        s += rt.user(hint)
    with s.assistant():
        order = s.gen("order", Order, max_tokens=80, temperature=0.5, stop="\n")
    assert_type(order, Order)
    assert_type(s.gen("a"), str)
    assert_type(s.gen(), str)
    assert_type(s.gen(name="a", max_tokens=3), str)
    assert_type(s.gen("a", regex="[a-z]"), str)
    assert_type(s.gen("a", type=int), int)
    assert_type(s.gen("a", schema=Order), Order)
    assert_type(s.gen("a", list[Order]), list[Order])
    assert_type(s.gen("a", Optional[Order]), Order | None)  # noqa: UP045
    assert_type(s.gen("a", Order | None, max_tokens=5), Order | None)
    assert_type(s.gen("a", Literal["x", "y"]), Literal["x", "y"])
    assert_type(s.gen("a", Color), Color)
    assert_type(s.gen("a", choices=Color), Color)
    assert_type(s.gen("a", choices=[1, 2]), int)
    assert_type(s.gen("a", n=3), list[str])
    assert_type(s.gen("a", Order, n=count), list[Order])
    assert_type(s.gen("a", tools=[search]), rt.ToolCall)
    assert_type(s.gen("a", tools=[search], tool_choice=search), rt.ToolCall)
    assert_type(s.gen("a", tools=[search], tool_choice="auto"), rt.ToolReply)
    assert_type(s.gen("a", tools=[search], parallel=True), list[rt.ToolCall])
    pair: tuple[str, int] = s.gen("a", rt.sequence("n", int))
    plain: dict[str, Any] = s.gen("a", schema={"type": "object"})
    assert_type(s.select("a", Color), Color)
    assert_type(s.select("a", ["x", "y"], method="full_likelihood"), str)
    assert_type(s.select("a", Literal["x", "y"]), Literal["x", "y"])
    forks = s.fork(2)
    assert_type(forks.gen("b", Order), list[Order])
    assert_type(forks.gen("c"), list[str])
    assert_type(forks.select("d", ["x"]), list[str])
    forks += [rt.user(order.item), "two"]
    forks += lambda index: rt.user("Fork ", index)
    s += rt.text(order.quantity + 1, datetime.date(2024, 1, 1), Color.RED, order, pair, plain)
    s += order
    s += greet.bind(name="Ada")
    s += order.item + rt.gen("e") + " and " + s["e"]
    length: int = s.meta("e").usage.completion_tokens
    s.set("length", length + sum(each.usage.prompt_tokens for each in s.meta("c")))
    return order


@rt.program
async def awaited(s: rt.State) -> int:
    order: Order = await rt.value(s.gen("order", Order))
    meta = await s.meta("order")
    return order.quantity + meta.usage.prompt_tokens


def settings(folder: Path) -> rt.Runtime:
    return rt.Runtime(folder, device="cpu", num_threads=2, cache_dir=folder / "cache", speculation="off")


def sampling() -> list[rt.Sampling]:
    return [
        rt.Sampling(stop="\n", stop_token_ids=[1], stop_regex=re.compile("x"), logit_bias={1: 2.0}),
        rt.Sampling(max_tokens=8, stop=["a", "b"], stop_regex=("a", "b"), logit_bias=[(1, 2.0)], seed=3),
    ]


def main(runtime: rt.Runtime) -> None:
    assert_type(use_tools.run("Who?").value.name, str)
    assert_type(forms.run(passes=False).value, tuple[int, list[rt.Tag]])
    assert_type(greet.with_options(passes=("fold", "prune")).run("Ada").value, str)
    result = greet.run(name="Ada")
    assert_type(result, rt.Result[str])
    assert_type(result.value, str)
    assert_type(greet.run("Ada", tone="cold").value.upper(), str)
    assert_type(extract.run("two lamps", limit=40).value, Order)
    assert_type(extract.run("two lamps").value.quantity, int)
    assert_type(nothing.run().value, None)

    # Options of a run
    fast = greet.with_options(runtime=runtime, params=rt.Sampling(temperature=0.5), deadline_s=2.0)
    assert_type(fast.run(name="Ada").value, str)
    assert_type(greet.run(name="Ada", runtime=runtime).value, str)
    assert_type(greet.run("Ada", params=rt.Sampling(seed=1), deadline_s=1.0, on_error="result").value, str)
    assert_type(nothing.run(priority=2).error, BaseException | None)

    # Batches, streams, binds and graphs
    batch = greet.run_batch([{"name": "Ada"}, {"name": "Bob"}], runtime=runtime, progress=True)
    assert_type(batch, list[rt.Result[str]])
    bound = greet.bind(name="Ada")
    assert_type(bound.run().value, str)
    assert_type(greet.bind(tone="cold").run("Ada").value, str)
    with extract.stream("two lamps") as events:
        for event in events:
            match event:
                case rt.TextEvent():
                    print(event.text)
                case rt.EndEvent():
                    assert_type(event.result.value, Order)
                case _:
                    pass
        assert_type(events.result().value, Order)
    assert_type(greet.graph(name=rt.arg("name")), rt.RequestGraph)
    assert_type(rt.explain(greet, name="Ada"), rt.Explanation)
    assert_type(many.run("a", "b", size=3).value, int)
    assert_type(both.run(["Ada", "Bob"]).value, list[str])

    # Methods
    agent = Agent("Eve")
    assert_type(agent.ask.run("Why?").value, str)
    assert_type(agent.ask.run("Why?", runtime=runtime).value, str)
    assert_type(Agent.count.run(limit=4).value, int)
    assert_type(Agent.about.run(topic="x").value, str)
    assert_type(agent.about.run("x").value, str)
    assert_type(agent.think.run("Why?").value, int)


async def amain() -> None:
    assert_type((await greet.arun(name="Ada")).value, str)
    assert_type((await triage.arun("Broke.", deadline_s=1.0)).value, Literal["refund", "thanks"])
    results = await asyncio.gather(greet.arun("Ada"), greet.arun("Bob"))
    assert_type([each.value for each in results], list[str])
    async for event in greet.stream(name="Ada"):
        if isinstance(event, rt.EndEvent):
            print(event.result.value)


async def texts(program: rt.Program[[str], str]) -> AsyncIterator[str]:
    async for text in program.stream("Ada").atext("greeting"):
        yield text


def measured(program: rt.Program[..., Any], judge: Callable[[rt.Result[Any]], float]) -> float:
    return judge(program.run())


def untyped(result: rt.Result) -> str:
    return str(result.value)
