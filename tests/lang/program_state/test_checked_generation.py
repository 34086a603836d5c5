"""Generations with checks: repair turns, judges, and every way of running and reading them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from pydantic import BaseModel, ValidationError, field_validator

import rtlang as rt
from rtlang.contract.errors import CheckError, ParameterError, RequestError, TraceError
from rtlang.lang.execution.stream import AttemptEvent, ErrorEvent, TextEvent, ValueEvent
from rtlang.testing import ScriptedRuntime
from tests.support.servers.serving import serving


class Invoice(BaseModel):
    total: int

    @field_validator("total")
    @classmethod
    def _positive(cls, total: int) -> int:
        if total <= 0:
            raise ValueError("must be above 0")
        return total


def even(invoice: Invoice) -> str | None:
    return f"{invoice.total} is odd" if invoice.total % 2 else None


class Local:
    """Makes runtimes that answer from a script, in this process or behind a socket."""

    def __init__(self, kind: str) -> None:
        self.kind, self.closers = kind, list[Any]()

    def __call__(self, answers: Any) -> tuple[Any, ScriptedRuntime]:
        script = ScriptedRuntime(answers)
        self.closers.append(script.close)
        if self.kind == "local":
            return script, script
        server = serving(cast(Any, script))
        remote = rt.connect(server.__enter__().url)
        self.closers += [lambda: server.__exit__(None, None, None), remote.close]
        return remote, script


@pytest.fixture(params=["local", "remote"])
def serve(request: pytest.FixtureRequest) -> Iterator[Local]:
    found = Local(request.param)
    yield found
    for close in reversed(found.closers):
        close()


def asked(**options: Any) -> Any:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        s += rt.assistant("> ", rt.gen("inv", type=Invoice, **options))
        s += rt.user("so")
        s += rt.assistant(rt.gen("y", 9))
        return s["inv"]

    return ask


BAD, ODD, GOOD = '{"total":-1}', '{"total":3}', '{"total":4}'


def test_an_accepted_value_takes_the_place_of_the_refused_ones(serve: Local) -> None:
    runtime, script = serve({"inv": [BAD, ODD, GOOD], "y": "end"})
    result = asked(check=even, repair=2).run(runtime=runtime)
    assert (result.value, result["inv"], result["y"]) == (Invoice(total=4), Invoice(total=4), "end")
    assert (result.text("inv"), result[0], result[1]) == (GOOD, Invoice(total=4), "end")
    assert result.names == ("inv", "y")
    assert result.breaks == ()
    assert [each["content"] for each in result.messages] == ["hi", f"> {GOOD}", "so", "end"]
    assert script.prompts("inv")[2].endswith(
        f"Assistant: > {BAD}\nUser: The value is not valid: total: must be above 0\n"
        f"Write it again, corrected, in the same form.\nAssistant: {ODD}\nUser: The value is not valid: 3 is odd\n"
        "Write it again, corrected, in the same form.\nAssistant: "
    )
    assert script.prompts("y") == [f"User: hi\nAssistant: > {GOOD}\nUser: so\nAssistant: "]
    meta = result.meta("inv")
    assert [(each.path, each.text, each.value, each.message) for each in meta.attempts] == [
        ("inv", BAD, None, "total: must be above 0"),
        ("inv:repair[1]", ODD, Invoice(total=3), "3 is odd"),
        ("inv:repair[2]", GOOD, Invoice(total=4), None),
    ]
    assert meta.token_ids == tuple(map(ord, GOOD))
    assert meta.usage.completion_tokens == len(BAD + ODD + GOOD)
    assert result.usage.completion_tokens == len(BAD + ODD + GOOD) + 3


def test_an_accepted_first_attempt_costs_nothing_more(serve: Local) -> None:
    runtime, script = serve({"inv": GOOD, "y": "end"})
    result = asked(check=even, repair=2).run(runtime=runtime)
    assert (script.count("inv"), result.value.total) == (1, 4)
    assert [each.message for each in result.meta("inv").attempts] == [None]


def test_all_attempts_and_turns_stay_if_they_are_kept(serve: Local) -> None:
    runtime, script = serve({"inv": [ODD, GOOD], "y": "end"})
    result = asked(check=even, repair=1, keep="all", on_repair="No: {message}. {message}!").run(runtime=runtime)
    contents = [each["content"] for each in result.messages]
    assert contents == ["hi", f"> {ODD}", "No: 3 is odd. 3 is odd!", GOOD, "so", "end"]
    assert script.prompts("y")[0].startswith(f"User: hi\nAssistant: > {ODD}\nUser: No: 3 is odd")


def test_a_value_that_is_refused_in_all_attempts_is_a_typed_error(serve: Local) -> None:
    runtime, _ = serve({"inv": [BAD, ODD], "y": "end"})
    result = asked(check=even, repair=1).run(runtime=runtime, on_error="result")
    error = result.error
    assert isinstance(error, CheckError)
    assert error.generation == "inv"
    assert "test_checked_generation.py:" in str(error)
    assert (error.name, error.value, error.reason, error.num_attempts) == ("inv", {"total": 3}, "3 is odd", 2)
    for name in ("inv", "y"):
        with pytest.raises(CheckError, match="'inv' was refused in 2 attempts"):
            _ = result[name]
    assert [each.message for each in result.meta("inv").attempts] == ["total: must be above 0", "3 is odd"]
    assert [each["content"] for each in result.messages] == ["hi", "> "]


@pytest.mark.parametrize("options", [{"check": even}, {"repair": 2}])
def test_checks_without_repair_and_repair_without_checks(serve: Local, options: dict[str, Any]) -> None:
    runtime, _ = serve({"inv": [ODD, GOOD], "y": "end"})
    result = asked(**options).run(runtime=runtime, on_error="result")
    if "check" in options:
        assert isinstance(result.error, CheckError)
        assert result.error.num_attempts == 1
    else:
        assert result.value == Invoice(total=3)


def test_an_error_of_the_engine_is_not_repaired(serve: Local) -> None:
    runtime, script = serve({"inv": [BAD, RequestError("no memory")], "y": "end"})
    result = asked(check=even, repair=5).run(runtime=runtime, on_error="result")
    assert "no memory" in str(result.error)
    assert result.error.generation == "inv"
    assert script.count("inv") == 2
    with pytest.raises(RequestError, match="no memory"):
        result.meta("inv")


def test_keywords_that_masks_do_not_enforce_are_repaired(serve: Local) -> None:
    @rt.program
    def write(s: rt.State) -> Any:
        s += rt.gen("x", schema={"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, repair=1)
        return s["x"]

    runtime, script = serve({"x": ["[1,1]", "[1,2]"]})
    result = write.run(runtime=runtime)
    assert result.value == [1, 2]
    assert "two elements are equal" in script.prompts("x")[1]


def test_a_check_that_fails_to_decide_ends_the_generation(serve: Local) -> None:
    runtime, _ = serve({"inv": GOOD, "y": "end"})
    result = asked(check=lambda value: 3, repair=1).run(runtime=runtime, on_error="result")
    assert "returned 3: expected None or True" in str(result.error)


@rt.program
def judged(s: rt.State, invoice: Any) -> Any:
    s += rt.user("Is it right?")
    s += rt.assistant(rt.gen("verdict", choices=["yes", "no"]))
    return rt.switch(s["verdict"], {"yes": lambda s: None, "no": lambda s: "a judge says no"})


def test_a_program_judges_on_a_state_that_continues_the_attempt(serve: Local) -> None:
    runtime, script = serve({"inv": [BAD, ODD, GOOD], "verdict": ["no", "yes"], "y": "end"})
    result = asked(check=judged, repair=3).run(runtime=runtime)
    assert result.value == Invoice(total=4)
    assert result.breaks == ()
    verdicts = script.prompts("verdict")
    assert len(verdicts) == 2
    assert verdicts[0].endswith(f"Assistant: {ODD}\nUser: Is it right?\nAssistant: ")
    assert [each.message for each in result.meta("inv").attempts] == ["total: must be above 0", "a judge says no", None]
    assert [each["content"] for each in result.messages] == ["hi", f"> {GOOD}", "so", "end"]


@pytest.mark.parametrize(
    ("verdict", "message"), [(lambda s: s["v"] == "yes", "the check ask refused the value"), (lambda s: False, None)]
)
def test_a_lazy_verdict_is_judged_in_the_graph(serve: Local, verdict: Any, message: str | None) -> None:
    @rt.program
    def ask(s: rt.State, text: Any) -> Any:
        s += rt.gen("v", choices=["yes", "no"])
        return verdict(s)

    @rt.program
    def write(s: rt.State) -> Any:
        s += "a: " + rt.gen("x", 5, check=[ask, lambda text: "never" if message is None else None], repair=1)
        s += "."
        return s.text()

    runtime, script = serve({"x": ["one", "two"], "v": ["no", "yes"]})
    result = write.run(runtime=runtime, on_error="result")
    if message is None:
        assert isinstance(result.error, CheckError)
        assert script.count("x") == 2
        return
    assert (result.value, result.breaks) == ("a: two.", ())
    assert result.meta("x").attempts[0].message == message
    assert script.prompts("x")[1] == f"a: one\nThe value above is not valid: {message}\nCorrected value:\n"


def test_the_turn_can_be_written_by_a_function(serve: Local) -> None:
    def turn(message: Any) -> Any:
        return rt.system("Be careful.") + rt.user("Wrong, because ", message)

    runtime, script = serve({"inv": [ODD, GOOD], "y": "end"})
    result = asked(check=even, repair=1, on_repair=turn, keep="all").run(runtime=runtime)
    roles = [each["role"] for each in result.messages]
    assert roles == ["user", "assistant", "system", "user", "assistant", "user", "assistant"]
    assert "Wrong, because 3 is odd\n" in script.prompts("inv")[1]


def test_each_completion_is_repaired_on_its_own(serve: Local) -> None:
    @rt.program
    def write(s: rt.State) -> Any:
        s += "a"
        s += rt.gen("x", 5, n=2, check=lambda text: text != "bad", repair=1)
        s += "b" + rt.gen("y", 5)
        return s["x"]

    runtime, script = serve({"x": lambda prompt: "good" if "not valid" in prompt else "bad", "y": "end"})
    result = write.run(runtime=runtime)
    assert result.value == result["x"] == ["good", "good"] == [result[0], result[1]]
    assert [len(each.attempts) for each in result.meta("x")] == [2, 2]
    assert script.prompts("y") == ["ab"]


def test_reasoning_is_part_of_each_attempt(serve: Local) -> None:
    @rt.program
    def write(s: rt.State) -> Any:
        s += rt.assistant(rt.gen("x", type=int, reasoning=20, check=lambda number: number > 3, repair=1))
        return s["x"]

    runtime, _ = serve({None: ["<think>a</think>", "<think>b</think>"], "x": ["3", "5"]})
    result = write.run(runtime=runtime, on_error="result")
    assert result.value == 5, result.error
    assert result.meta("x").reasoning == "b"


@pytest.mark.parametrize("keep", ["last", "all"])
def test_checks_work_in_loops_and_branches_of_the_graph(serve: Local, keep: Any) -> None:
    @rt.program
    def write(s: rt.State) -> Any:
        def body(s: rt.State) -> Any:
            s += "#" + rt.gen("x", 5, check=lambda text: text[0] != "b", repair=2, keep=keep, on_repair="!{message}")
            return s["x"]

        last = rt.repeat(body, until=lambda s: s["x"] == "end", at_most=5)
        s += rt.gen("y", 5)
        return last

    runtime, script = serve({"x": ["b1", "b2", "c", "d", "b3", "end"], "y": "z"})
    result = write.run(runtime=runtime)
    assert result.value == "end"
    assert result["x"] == ["c", "d", "end"]
    assert result.breaks == ()
    assert [[each.message is None for each in meta.attempts] for meta in result.meta("x")] == [
        [False, False, True],
        [True],
        [False, True],
    ]
    paths = [[each.path for each in meta.attempts] for meta in result.meta("x")]
    assert paths[2] == ["repeat[2]/x", "repeat[2]/x:repair[1]"]
    assert (script.prompts("y") == ["#c#d#end"]) == (keep == "last")
    assert result.text() == script.prompts("y")[0] + "z"


def test_checks_work_in_forks_and_called_programs(serve: Local) -> None:
    @rt.program
    def write(s: rt.State) -> Any:
        s += rt.gen("x", 5, check=lambda text: text != "bad", repair=1)
        return s["x"]

    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a"
        forks = s.fork(2)
        for fork in forks:
            fork += write.bind()
        return [rt.value(fork["write.x"]) for fork in forks]

    runtime, _ = serve({"write.x": lambda prompt: "good" if "not valid" in prompt else "bad"})
    result = ask.run(runtime=runtime)
    assert result.value == ["good", "good"] == result["write.x"]
    assert [each["write.x"] for each in result.forks[0]] == ["good", "good"]


def test_a_stream_has_one_value_and_all_attempts(serve: Local) -> None:
    runtime, _ = serve({"inv": [ODD, GOOD], "y": "end"})
    events = list(asked(check=even, repair=1).stream(runtime=runtime))
    named = [each for each in events if getattr(each, "name", None) == "inv"]
    texts = [each.text for each in named if isinstance(each, TextEvent)]
    assert "".join(texts) == GOOD
    (value,) = [each for each in named if isinstance(each, ValueEvent)]
    assert (value.value, len(value.meta.attempts)) == (Invoice(total=4), 2)
    written: dict[str, str] = {}
    ends = []
    for each in named:
        if isinstance(each, AttemptEvent):
            written[each.path] = written.get(each.path, "") + each.text
            if each.is_accepted is not None:
                ends.append((each.path, each.is_accepted, each.message))
    assert written == {"inv": ODD, "inv:repair[1]": GOOD}
    assert ends == [("inv", False, "3 is odd"), ("inv:repair[1]", True, None)]
    runtime, _ = serve({"inv": [ODD, ODD], "y": "end"})
    events = list(asked(check=even, repair=1).stream(runtime=runtime, on_error="result"))
    errors = {each.name: each.error for each in events if isinstance(each, ErrorEvent)}
    assert set(errors) == {"inv", "y"}
    assert all(isinstance(each, CheckError) for each in errors.values())


def test_outputs_batches_and_async_programs(serve: Local) -> None:
    @rt.program
    async def later(s: rt.State, number: int) -> Any:
        s += f"{number}: " + rt.gen("x", 5, check=lambda text: text != "bad", repair=1)
        s += rt.gen("y", 5)
        return await s["x"]

    runtime, script = serve({"x": lambda prompt: "good" if "not valid" in prompt else "bad", "y": "end"})
    results = later.run_batch([{"number": number} for number in range(5)], runtime=runtime, outputs=["x"])
    assert [each.value for each in results] == ["good"] * 5 == [each["x"] for each in results]
    assert script.count("x") == 10
    assert script.count("y") == 0


def test_a_graph_recorded_ahead_of_time_has_the_checks_as_calls(serve: Local) -> None:
    @rt.program
    def write(s: rt.State) -> None:
        s += "a" + rt.gen("x", 5, check=lambda text: text != "bad", repair=1) + "b"

    graph = rt.RequestGraph.from_msgpack(write.graph().to_msgpack())
    runtime, _ = serve({"x": ["bad", "good"]})
    values = graph.run(runtime, functions={"check x": lambda text: "no" if text == "bad" else None})
    assert values == {"x": "good"}
    assert "check x" in graph.to_mermaid()


def test_a_page_of_the_run_and_pickles_read_one_value(serve: Local) -> None:
    import pickle

    runtime, _ = serve({"inv": [ODD, GOOD], "y": "end"})
    result = asked(check=even, repair=1).run(runtime=runtime)
    assert GOOD.replace('"', "&quot;") in result.to_html() or GOOD in result.to_html()
    assert "inv:repair[1]" in result.to_html()
    copy = pickle.loads(pickle.dumps(result))
    assert (copy["inv"], copy.text("inv"), copy[0]) == (Invoice(total=4), GOOD, Invoice(total=4))
    assert [each.message for each in copy.meta("inv").attempts] == ["3 is odd", None]


def test_a_display_names_attempts_by_their_paths(capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedRuntime({"inv": [ODD, GOOD], "y": "end"}) as runtime:
        asked(check=even, repair=1).stream(runtime=runtime).display()
    shown = capsys.readouterr().out
    assert f"inv:repair[1]: {GOOD}" in shown
    assert "(unnamed)" not in shown


def test_a_budget_counts_the_tokens_of_all_attempts(serve: Local) -> None:
    runtime, _ = serve({"inv": [ODD, GOOD], "y": "end"})
    result = asked(check=even, repair=1).run(runtime=runtime, budget=rt.Budget(tokens=len(ODD)), on_error="result")
    assert isinstance(result.error, rt.SpentError)
    assert result.cut == ("inv",)


def test_best_of_refuses_checks_and_a_judge_cannot_wait() -> None:
    with pytest.raises(ParameterError, match=r"without reasoning=, check= and repair="):
        rt.best_of(2, rt.gen("x", check=len, temperature=1.0), by=len)

    @rt.program
    def waits(s: rt.State, value: Any) -> bool:
        s += rt.gen("v", 3)
        return str(s["v"]) == "yes"

    @rt.program
    def write(s: rt.State) -> None:
        s += rt.gen("x", 5, check=waits)

    with pytest.raises(TraceError, match="cannot wait for a value"):
        write.run(runtime=ScriptedRuntime({"x": "a"}))


def test_values_of_checked_generations_stay_lazy_in_text_and_calls(serve: Local) -> None:
    class Thing(BaseModel):
        name: str

    @rt.program
    def write(s: rt.State) -> Any:
        s += rt.gen("thing", type=Thing, check=lambda thing: thing.name != "x", repair=1)
        other = rt.call(lambda thing: thing.name.upper(), s["thing"])
        s += ["", 0] and rt.text(" ", s["thing"].name, " ", other)
        s += rt.gen("y", 5)
        return s.text()

    runtime, script = serve({"thing": ['{"name":"x"}', '{"name":"ab"}'], "y": "end"})
    result = write.run(runtime=runtime)
    assert result.breaks == ()
    assert result.value.endswith(" ab ABend")
    assert script.prompts("y") == ['{"name":"ab"} ab AB']


def test_async_streams_read_one_value(serve: Local) -> None:
    async def work() -> list[Any]:
        runtime, _ = serve({"inv": [ODD, GOOD], "y": "end"})
        stream = asked(check=even, repair=1).stream(runtime=runtime)
        return [event async for event in stream if isinstance(event, ValueEvent)]

    assert [each.name for each in asyncio.run(work())] == ["inv", "y"]


def model(prompt: str) -> str:
    """Writes invoices, of which about a fifth are valid; after each message, about half."""
    noise = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    is_valid = noise % 100 < (22 if "not valid" not in prompt else 50)
    total = 2 * (noise % 50) + 2
    return json.dumps({"total": total if is_valid else (-total if noise % 3 else total + 1)})


def retried(document: str) -> tuple[Invoice | None, int]:
    """The oracle: a loop that knows only the model and pydantic. The value, and the characters of all prompts and answers."""
    prompt, size = f"User: {document}\nAssistant: ", 0
    for _ in range(3):
        answer = model(prompt)
        size += len(prompt) + len(answer)
        try:
            invoice = Invoice.model_validate_json(answer)
            if invoice.total % 2 == 0:
                return invoice, size
            message = f"{invoice.total} is odd"
        except ValidationError as error:
            message = "total: " + error.errors()[0]["msg"].removeprefix("Value error, ")
        prompt += f"{answer}\nUser: The value is not valid: {message}\nWrite it again, corrected, in the same form.\nAssistant: "
    return None, size


def test_every_row_that_a_retry_loop_repairs_is_repaired_for_its_tokens() -> None:
    @rt.program
    def extract(s: rt.State, document: str) -> Any:
        s += rt.user(document)
        s += rt.assistant(rt.gen("invoice", type=Invoice, check=even, repair=2))
        return s["invoice"]

    documents = [f"invoice {number}" for number in range(200)]
    expected = [retried(document) for document in documents]
    with ScriptedRuntime({"invoice": model}) as runtime:
        results = extract.run_batch([{"document": document} for document in documents], runtime=runtime)
    assert [None if result.error else result.value for result in results] == [invoice for invoice, _ in expected]
    sizes = [result.usage.prompt_tokens + result.usage.completion_tokens for result in results]
    assert sum(sizes) <= 1.3 * sum(size for _, size in expected)
    assert sum(len(result.meta("invoice").attempts) == 1 for result in results) < 60
    assert 120 < sum(result.error is None for result in results) < 200
