"""Wrong uses of typed programs: type checkers refuse every line that ends with `# refused`, and no other."""

from __future__ import annotations

import rtlang as rt


@rt.program
def greet(s: rt.State, name: str, tone: str = "warm") -> str:
    s += rt.user("Greet ", name, tone) + rt.assistant(rt.gen("greeting", max_tokens=20))
    return s["greeting"]


@rt.program
async def triage(s: rt.State, review: str) -> int:
    s += rt.text(review) + rt.gen("n", type=int)
    return int(await s["n"])


class Agent:
    @rt.program
    def ask(self, s: rt.State, question: str) -> str:
        s += rt.user(question) + rt.assistant(rt.gen("answer"))
        return s["answer"]

    @staticmethod
    @rt.program
    def count(s: rt.State, limit: int) -> int:
        s += rt.gen("n", type=int, max_tokens=limit)
        return s["n"]


@rt.program
def calls(s: rt.State) -> int:
    text = greet(s, nam="Ada")  # refused
    number: int = greet(s, name="Ada")  # refused
    greet(name=3)  # refused
    return len(text) + number


@rt.program
async def acalls(s: rt.State) -> str:
    waiting: int = triage(s, review="x")  # refused
    found: str = await triage(s, review="x")  # refused
    return found + str(waiting)


async def main(runtime: rt.Runtime, agent: Agent) -> None:
    greet.run()  # refused
    greet.run(nam="Ada")  # refused
    greet.run(name=3)  # refused
    greet.run("Ada", "warm", "extra")  # refused
    greet.run(name="Ada", colour="red")  # refused
    greet.run("Ada", runtime="ws://127.0.0.1:8420")  # refused
    greet.run("Ada", deadline_s="soon")  # refused
    greet.run("Ada", on_error="ignore")  # refused
    number: int = greet.run("Ada").value  # refused
    with_runtime: int = greet.run("Ada", runtime=runtime).value  # refused
    greet.with_options(runtime=runtime).run(nam="Ada")  # refused
    greet.with_options(runtime=runtime, params={"seed": 1}).run("Ada")  # refused
    greet.with_options(runtime=runtime).run(name="Ada").value.nothing()  # refused
    await greet.arun(nam="Ada")  # refused
    length: str = (await triage.arun("x")).value  # refused
    greet.stream(nam="Ada")  # refused
    event_value: int = greet.stream(name="Ada").result().value  # refused
    greet.graph(nam=rt.arg("name"))  # refused
    greet.bind(name="Ada").run("Bob", "warm", 3)  # refused
    greet.run_batch("Ada")  # refused
    agent.ask.run()  # refused
    agent.ask.run(question=3)  # refused
    answer: int = agent.ask.run("Why?").value  # refused
    Agent.count.run(limit="4")  # refused
    print(number, with_runtime, length, event_value, answer)


@rt.program  # refused
def without_state() -> str:
    return ""


typed: rt.Program[[int], str] = greet  # refused
