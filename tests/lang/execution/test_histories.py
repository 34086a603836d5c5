"""Going on from a result: the new run has the tokens of the earlier one, which the cache holds."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(page_size=1) as found:
        yield found


Body = Callable[[Any], Any]


def chat(s: Any) -> None:
    s += rt.system("You work in a shop. The lamp is 40 dollars.")
    s += rt.user("How much is the lamp?")
    s += rt.assistant(rt.gen("answer", max_tokens=8, temperature=1.0, seed=3))
    s += rt.user("And two?")
    s += rt.assistant("Well, ", rt.gen("two", max_tokens=8, stop="o"), ".")


def plain_text(s: Any) -> None:
    s += "One, two, " + rt.gen("a", max_tokens=5, temperature=1.0, seed=1)
    s += rt.text(" and so on. ", s["a"], " ") + rt.select("b", ["yes", "no way"])
    s += " The en"


def divided_text(s: Any) -> None:
    s += "A beginn"
    (side,) = s.fork(1)
    side += "ing" + rt.gen("side", max_tokens=3)
    s += "ing of a sen"
    s.copy().__iadd__("se" + rt.gen("other", max_tokens=3))
    s += "tence that ends"


def read_between(s: Any) -> None:
    s += "A number: " + rt.gen("n", type=int, max_tokens=3)
    s += rt.text(" twice is ", int(s["n"]) * 2, ", and plus one ", s["n"] + 1, ", say")
    s += rt.gen("say", max_tokens=4)


def loops(s: Any) -> None:
    s += rt.user("Count.")

    def step(b: Any) -> Any:
        b += rt.assistant(rt.gen("step", max_tokens=3, temperature=1.0), " so")
        b += rt.user("Go on with ", b["step"], ".")
        return b["step"]

    last = rt.repeat(step, until=lambda b: b["step"] == "never", at_most=3)
    s += rt.assistant(rt.gen("yes", choices=["yes", "no"], max_tokens=3))
    rt.switch(s["yes"], {"yes": "It is y", "no": "It is n"})
    s += rt.text("ot so, ", last)


def reasoned(s: Any) -> None:
    s += rt.user("How much is 17 + 25?")
    s += rt.assistant(rt.gen("sum", 6, type=int, reasoning=10))
    s += rt.user("Sure?")


def several(s: Any) -> None:
    s += rt.user("Say something.")
    s += rt.assistant(rt.gen("many", max_tokens=4, n=3, temperature=1.0))
    s += rt.assistant(rt.text("Or ", s["many"][1], order="free"), rt.gen("one", max_tokens=4))


def called(s: Any) -> None:
    @rt.program
    def inner(t: Any) -> Any:
        t += rt.user("In here?")
        t += rt.assistant(rt.gen("x", max_tokens=4))
        return t["x"]

    s += rt.system("Be brief.")
    inner(s)
    s += rt.user("And ", inner(), "?")


BODIES: list[Body] = [chat, plain_text, divided_text, read_between, loops, reasoned, several, called]


SEEDED = rt.Sampling(seed=5)


def run(body: Body, runtime: Any) -> rt.Result[Any]:
    return rt.program(body).run(runtime=runtime, params=SEEDED)


def prompt_ids(body: Body, runtime: Any) -> list[int]:
    """The tokens of what the body appends, from the second one on."""

    def probed(s: Any) -> None:
        body(s)
        s += rt.gen("probe", 1, prompt_logprobs=0)

    return [each.token_id for each in run(probed, runtime).meta("probe").prompt_logprobs]


def continued(source: Any) -> Body:
    def body(s: Any) -> None:
        s += rt.messages(source)

    return body


@pytest.mark.parametrize("body", BODIES, ids=lambda each: each.__name__)
def test_a_continued_sequence_has_the_tokens_of_the_run(body: Body, runtime: rt.Runtime) -> None:
    result = run(body, runtime)
    expected = prompt_ids(body, runtime)
    assert prompt_ids(continued(result), runtime) == expected
    again = run(continued(result), runtime)
    assert prompt_ids(continued(again), runtime) == expected
    assert again.messages == result.messages
    assert again.text() == result.text()


def test_a_pickled_result_has_them_too(runtime: rt.Runtime) -> None:
    result = run(chat, runtime)
    saved = pickle.loads(pickle.dumps(result))
    assert prompt_ids(continued(saved), runtime) == prompt_ids(continued(result), runtime)


def test_the_cache_holds_the_whole_earlier_run(runtime: rt.Runtime) -> None:
    result = run(chat, runtime)
    meta = result.meta("two")
    num_known = meta.usage.prompt_tokens + len(meta.token_ids)

    def turn(s: Any) -> None:
        s += rt.messages(result)
        s += rt.user("Thanks.")
        s += rt.assistant(rt.gen("next", max_tokens=2))

    usage = run(turn, runtime).meta("next").usage
    assert usage.prompt_tokens > num_known
    assert usage.cached_tokens >= num_known - 1  # the last token was sampled, but not computed


def test_a_fork_is_continued_by_its_own_sequence(runtime: rt.Runtime) -> None:
    def body(s: Any) -> None:
        s += rt.user("Tell me about the lam")
        forks = s.fork(2)
        for number, fork in enumerate(forks):
            fork += rt.assistant(rt.gen("x", max_tokens=4, temperature=1.0, seed=number))
        forks.join()

    result = run(body, runtime)
    expected = [
        {"role": "user", "content": "Tell me about the lam"},
        {"role": "assistant", "content": result.forks[0][1]["x"]},
    ]
    again = run(continued(result.forks[0][1]), runtime)
    assert again.messages == expected
    found = run(continued(pickle.loads(pickle.dumps(result)).forks[0][1]), runtime)
    assert found.messages == expected


def test_a_message_whose_generation_failed_is_left_out() -> None:
    with ScriptedRuntime({"good": "fine", "bad": ValueError("no")}) as scripted:

        @rt.program
        def body(s: Any) -> None:
            s += rt.user("First?")
            s += rt.assistant(rt.gen("good"))
            s += rt.user("Second?")
            s += rt.assistant("So ", rt.gen("bad"))
            s += rt.user("Third?")

        result = body.run(runtime=scripted, on_error="result")
        assert result.error is not None
        again = run(continued(result), scripted)
        assert again.messages == [
            {"role": "user", "content": "First?"},
            {"role": "assistant", "content": "fine"},
            {"role": "user", "content": "Second?"},
        ]


def test_on_another_model_the_texts_go_on(runtime: rt.Runtime) -> None:
    with ScriptedRuntime({"a": "blue"}) as scripted:

        @rt.program
        def body(s: Any) -> None:
            s += rt.user("Color?")
            s += rt.assistant(rt.gen("a"))

        result = body.run(runtime=scripted)

        @rt.program
        def turn(s: Any) -> None:
            s += rt.messages(result)
            s += rt.user("Sure?")
            s += rt.assistant(rt.gen("b", max_tokens=2))

        found = turn.run(runtime=runtime)
        assert [node for node in found.graph.nodes if "TokenIds" in repr(node)] == []
        assert found.messages[:2] == result.messages
        same = turn.run(runtime=scripted)
        assert [node for node in same.graph.nodes if "TokenIds" in repr(node)] != []
        assert scripted.prompts("b") == ["User: Color?\nAssistant: blue\nUser: Sure?\nAssistant: "]
        assert ">blue<" in same.to_html()
        assert "tokens]" not in same.to_html()


def test_a_run_goes_on_at_a_server_of_the_same_model(runtime: rt.Runtime) -> None:
    result = run(chat, runtime)
    expected = prompt_ids(continued(result), runtime)
    with running_server(runtime) as url, rt.connect(url) as remote:
        assert prompt_ids(continued(result), remote) == expected
        there = run(chat, remote)
        assert prompt_ids(continued(there), remote) == expected
        assert rt.explain(rt.program(continued(there)), runtime=remote).error is None


def conversation(s: Any) -> None:
    s += rt.system("You work in a shop. The lamp is 40 dollars.")
    s += rt.user("How much is the lamp?")
    s += rt.assistant("Well: ", rt.gen("first", max_tokens=8, temperature=1.0, seed=3))
    for index, fork in enumerate(s.fork(2)):
        fork += rt.user("And ", index + 2, "?")
        fork += rt.assistant(rt.gen("answer", max_tokens=8))
        fork += rt.user("Thanks.")
        fork += rt.assistant(rt.gen("end", max_tokens=8))
    s += rt.user("Bye.")
    s += rt.assistant(rt.gen("bye", max_tokens=4, n=2, temperature=1.0))

    def turn(state: Any) -> None:
        state += rt.user("Next?")
        state += rt.assistant(rt.gen("turn", max_tokens=4))

    rt.repeat(turn, at_most=3, state=s)


@pytest.mark.parametrize(
    ("path", "question", "next_path"),
    [
        ("first", "And 3?", "fork[1]/answer"),
        ("fork[1]/answer", "Thanks.", "fork[1]/end"),
        ("first", "Bye.", "bye"),
        ("repeat[0]/turn", "Next?", "repeat[1]/turn"),
        ("repeat[1]/turn", "Next?", "repeat[2]/turn"),
    ],
)
def test_a_run_forks_from_any_node_with_its_tokens(
    runtime: rt.Runtime, path: str, question: str, next_path: str
) -> None:
    """The oracle is what the run itself generated after the node."""
    result = rt.program(conversation).run(runtime=runtime, seed=1)

    def forked(s: Any) -> None:
        s += rt.messages(result.at(path))
        s += rt.user(question)
        s += rt.assistant(rt.gen("next", max_tokens=4))

    found = rt.program(forked).run(runtime=runtime)
    after = result.at(next_path if next_path != "bye" else "bye[0]")
    assert found.meta("next").usage.prompt_tokens * (2 if next_path == "bye" else 1) == after.meta.usage.prompt_tokens
    assert found.meta("next").usage.cached_tokens >= found.meta("next").usage.prompt_tokens - 1
    if next_path != "bye":
        assert after.meta.token_ids[:4] == found.meta("next").token_ids


def test_a_sequence_ends_with_one_of_several_completions(runtime: rt.Runtime) -> None:
    result = rt.program(conversation).run(runtime=runtime, seed=1)

    def forked(s: Any) -> None:
        s += rt.messages(result.at("bye[1]"))
        s += rt.user("Really?")
        s += rt.assistant(rt.gen("next", max_tokens=4))

    found = rt.program(forked).run(runtime=runtime)
    assert found.messages[:-2] == [
        *result.at("bye").messages[:-1],
        {"role": "assistant", "content": result.text("bye")[1]},
    ]
    with pytest.raises(rt.TraceError, match=r"bye has 2 completions: continue from one such as bye\[0\]"):
        rt.program(lambda s: s.__iadd__(rt.messages(result.at("bye")))).run(runtime=runtime)
    read = pickle.loads(pickle.dumps(result))
    with pytest.raises(rt.TraceError, match="a result that was pickled keeps whole sequences only"):
        rt.program(lambda s: s.__iadd__(rt.messages(read.at("first")))).run(runtime=runtime)
