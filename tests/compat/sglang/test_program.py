"""Runs: when they return, what they wait for, batches, streams and errors. Texts are scripted."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang import execution
from rtlang.testing import ScriptedRuntime


@sgl.function
def qa(s: sgl.ProgramState, question: str, hint: str = "") -> str:
    s += "Q: " + question + hint + "\n"
    s += "A:" + sgl.gen("answer", stop="\n")
    return question


def scripted(**options: Any) -> ScriptedRuntime:
    return ScriptedRuntime({"answer": lambda prompt: prompt.split("\n")[-2][3:].upper()}, checks=False, **options)


# -- single runs


def test_a_run_returns_when_the_body_has_ended_and_reading_waits() -> None:
    gate = threading.Event()

    def answer(prompt: str) -> str:
        gate.wait(30)
        return "late"

    runtime = ScriptedRuntime({"answer": answer}, checks=False)
    state = qa.run("Who?", backend=runtime)
    assert state.ret_value == "Who?"
    gate.set()
    assert state["answer"] == "late"


@pytest.mark.parametrize("how", ["run", "stream", "batch"])
def test_generations_run_while_the_body_does_something_else(how: str) -> None:
    has_run = threading.Event()

    def answer(prompt: str) -> str:
        has_run.set()
        return "there"

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x") + "b"
        assert has_run.wait(30)  # a slow tool, say; nothing is read
        s += "c"

    runtime = ScriptedRuntime({"x": answer}, checks=False)
    if how == "batch":
        state = body.run_batch([{}], backend=runtime)[0]
    else:
        state = body.run(backend=runtime, stream=how == "stream")
    assert state.text() == "atherebc"


def test_statements_are_submitted_together_until_a_value_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "EARLY_S", 30.0)
    monkeypatch.setattr(execution, "_early", execution.EarlySubmission())

    class Counting(ScriptedRuntime):
        count_submits = 0

        def submit(self, graph: Any, listener: Any, **options: Any) -> Any:
            self.count_submits += 1
            return super().submit(graph, listener, **options)

    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x")
        s += "b" + sgl.gen("y")
        assert runtime.count_submits == 0
        assert s["x"] == "1"
        assert runtime.count_submits == 1

    runtime = Counting({"x": "1", "y": "2"}, checks=False)
    assert sgl.function(body).run(backend=runtime)["y"] == "2"


def test_arguments_are_given_by_position_or_name_and_options_of_a_run_are_told_apart() -> None:
    runtime = scripted()
    state = qa("Who?", hint=" really", backend=runtime, temperature=0.25, max_new_tokens=7, stop=["x"], top_k=3)
    assert state["answer"] == "WHO? REALLY"
    params = runtime.requests[0].node.params
    assert (params.temperature, params.max_tokens, params.top_k) == (0.25, 7, 3)
    assert params.stop == ("\n",)  # an option of the generation replaces that of the run


def test_a_parameter_of_the_function_goes_before_an_option_of_that_name() -> None:
    @sgl.function
    def body(s: sgl.ProgramState, n: int, temperature: float) -> None:
        s += f"{n} at {temperature}:" + sgl.gen("x")

    runtime = ScriptedRuntime({"x": "y"}, checks=False)
    assert body.run(n=3, temperature=20.5, backend=runtime).text() == "3 at 20.5:y"
    assert runtime.requests[0].node.params.temperature == 1.0


@pytest.mark.parametrize("call", [lambda: qa.run(), lambda: qa.run("a", wrong=1), lambda: qa.run("a", "b", "c")])
def test_wrong_arguments_are_refused(call: Any) -> None:
    with pytest.raises(TypeError, match=r"qa\(\): "):
        call()


def test_bound_arguments_hold_for_all_runs() -> None:
    bound = qa.bind(hint="!")
    assert bound.bind(question="Where").run(backend=scripted())["answer"] == "WHERE!"
    assert [s["answer"] for s in bound.run_batch([("a",), ("b",)], backend=scripted())] == ["A!", "B!"]
    with pytest.raises(TypeError, match=r"qa\(\) has no parameter 'tone'; its parameters: question, hint"):
        qa.bind(tone="x")


def test_a_program_needs_a_state_and_a_plain_function() -> None:
    with pytest.raises(rt.TraceError, match="has no parameter; the first one is the state s"):

        @sgl.function
        def none() -> None: ...

    with pytest.raises(rt.TraceError, match="is an async function"):

        @sgl.function
        async def later(s: Any) -> None: ...


def test_speculation_for_remote_apis_has_no_effect_and_says_so() -> None:
    with pytest.warns(UserWarning, match="num_api_spec_tokens has no effect"):

        @sgl.function(num_api_spec_tokens=64)
        def body(s: sgl.ProgramState) -> None:
            s += "a" + sgl.gen("x", stop="\n")

    assert body.run(backend=ScriptedRuntime({"x": "y"}, checks=False)).text() == "ay"


def test_an_exception_of_the_body_is_raised_and_ends_the_run() -> None:
    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x")
        raise ZeroDivisionError("boom")

    with pytest.raises(ZeroDivisionError, match="boom"):
        body.run(backend=scripted())


# -- batches


def test_a_batch_takes_dicts_tuples_and_lists() -> None:
    for items in ([{"question": "a"}, {"question": "b"}], [("a",), ("b",)], [["a"], ["b"]], (("a", ""), ("b", ""))):
        states = qa.run_batch(items, backend=scripted())
        assert [state["answer"] for state in states] == ["A", "B"]
    assert qa.run_batch([], backend=scripted()) == []


@pytest.mark.parametrize("num_threads", ["auto", 1, 3])
def test_a_batch_keeps_the_order_and_has_ended(num_threads: Any) -> None:
    @sgl.function
    def twice(s: sgl.ProgramState, question: str) -> None:
        s += "Q: " + question + "\n" + sgl.gen("answer")
        s += "\nQ: " + s["answer"] + "\n" + sgl.gen("answer")

    runtime = scripted(delay_s=0.001)
    states = twice.run_batch([(f"q{n}",) for n in range(30)], backend=runtime, num_threads=num_threads, temperature=0)
    assert [state["answer"] for state in states] == [f"Q{n}" for n in range(30)]
    assert len(runtime.requests) == 60


def test_a_batch_of_the_generator_style_gives_each_state_when_it_has_ended() -> None:
    runtime = scripted()
    states = qa.run_batch([(f"q{n}",) for n in range(450)], backend=runtime, generator_style=True, num_threads=4)
    assert runtime.requests == []
    first = next(iter(states))
    assert first["answer"] == "Q0"
    assert len(runtime.requests) <= 200
    assert [state["answer"] for state in states] == [f"Q{n}" for n in range(1, 450)]


def test_the_generator_style_does_not_wait_for_later_runs() -> None:
    released = threading.Event()

    @sgl.function
    def held(s: sgl.ProgramState, number: int) -> None:
        s += f"q{number}: " + sgl.gen("answer")
        if number:
            assert released.wait(20)

    states = held.run_batch([(n,) for n in range(5)], backend=ScriptedRuntime({}), generator_style=True, num_threads=8)
    first = next(iter(states))
    assert first.text().startswith("q0: ")
    released.set()
    assert len(list(states)) == 4


def test_an_error_of_the_generator_style_comes_in_its_place() -> None:
    @sgl.function
    def failing(s: sgl.ProgramState, number: int) -> None:
        s += "a" + sgl.gen("answer")
        if number == 1:
            raise ZeroDivisionError

    states = iter(failing.run_batch([(n,) for n in range(3)], backend=ScriptedRuntime({}), generator_style=True))
    assert next(states).text()
    with pytest.raises(ZeroDivisionError):
        next(states)


def test_a_progress_bar_may_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(qa.run_batch([("a",), ("b",)], backend=scripted(), progress_bar=True)) == 2
    assert "qa" in capsys.readouterr().err


def test_the_first_exception_of_a_batch_is_raised_once_all_have_ended() -> None:
    done = []

    @sgl.function
    def body(s: sgl.ProgramState, number: int) -> None:
        s += f"{number}" + sgl.gen("x")
        if number % 2:
            raise ValueError(f"number {number}")
        done.append(s["x"])

    with pytest.raises(ValueError, match="number 1"):
        body.run_batch([(n,) for n in range(6)], backend=ScriptedRuntime({"x": "y"}, checks=False))
    assert len(done) == 3


def test_a_failed_generation_of_a_batch_stays_with_its_state() -> None:
    def answer(prompt: str) -> str:
        if "b" in prompt:
            raise rt.RequestError("refused")
        return "fine"

    states = qa.run_batch([("a",), ("b",)], backend=ScriptedRuntime({"answer": answer}, checks=False))
    assert states[0]["answer"] == "fine"
    assert isinstance(states[1].error(), rt.RequestError)


@pytest.mark.parametrize(
    ("items", "options", "kind", "message"),
    [
        ([("a", "b", "c")], {}, TypeError, r"batch_kwargs\[0\]"),
        ([("a",), ()], {}, TypeError, r"batch_kwargs\[1\]: qa\(\): missing a required argument: 'question'"),
        ([{"who": 1}], {}, TypeError, r"batch_kwargs\[0\]"),
        (["ab"], {}, TypeError, r"batch_kwargs\[0\] = 'ab'"),
        ("ab", {}, rt.ParameterError, "batch_kwargs"),
        ([("a",)], {"num_threads": 0}, rt.ParameterError, "num_threads = 0"),
        ([("a",)], {"temprature": 0}, TypeError, "temprature"),
    ],
)
def test_a_wrong_batch_is_refused(items: Any, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        qa.run_batch(items, backend=scripted(), **options)


# -- streams


@sgl.function
def chat(s: sgl.ProgramState, fails: bool = False) -> str:
    s += "Hello. "
    s += sgl.gen("first") + " and "
    s["seen"] = s["first"]
    if fails:
        raise ZeroDivisionError("boom")
    s += sgl.gen("second") + "."
    return "done"


CHAT = {"first": "one", "second": "two"}


def test_a_stream_returns_at_once_and_its_reads_wait() -> None:
    gate = threading.Event()

    def first(prompt: str) -> str:
        gate.wait(30)
        return "one"

    state = chat.run(backend=ScriptedRuntime({"first": first, "second": "two"}, checks=False), stream=True)
    assert "seen" not in state
    gate.set()
    assert (state["second"], state["seen"], state.ret_value) == ("two", "one", "done")
    assert state.text() == "Hello. one and two."
    assert state.error() is None


def test_text_appears_while_the_body_goes_on() -> None:
    seen = threading.Event()

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x")
        assert seen.wait(30)  # the reader has seen the value, which nothing here has asked for
        s += "b"

    state = body.run(backend=ScriptedRuntime({"x": "1"}, checks=False), stream=True)
    text = ""
    for chunk in state.text_iter():
        text += chunk
        if text == "a1":
            seen.set()
    assert text == "a1b"


def test_text_iter_gives_the_whole_text_or_that_of_a_variable() -> None:
    state = chat.run(backend=ScriptedRuntime(CHAT, checks=False), stream=True)
    assert "".join(state.text_iter()) == "Hello. one and two."
    assert "".join(state.text_iter("second")) == "two"
    assert "".join(state.text_iter("seen")) == "one"


def test_text_iter_without_a_stream_is_one_piece() -> None:
    state = chat.run(backend=ScriptedRuntime(CHAT, checks=False))
    assert list(state.text_iter()) == ["Hello. one and two."]
    assert list(state.text_iter("first")) == ["one"]


def test_text_async_iter_gives_the_meta_information_too() -> None:
    async def read(stream: bool) -> list[Any]:
        state = chat.run(backend=ScriptedRuntime(CHAT, checks=False), stream=stream)
        return [item async for item in state.text_async_iter("second", return_meta_data=True)]

    for stream in (False, True):
        found = asyncio.run(read(stream))
        assert "".join(text for text, _ in found) == "two"
        assert found[-1][1]["finish_reason"]["type"] == "stop"

    async def plain() -> str:
        state = chat.run(backend=ScriptedRuntime(CHAT, checks=False), stream=True)
        return "".join([chunk async for chunk in state.text_async_iter()])

    assert asyncio.run(plain()) == "Hello. one and two."


def test_the_meta_information_of_a_stream_needs_a_variable() -> None:
    async def read() -> None:
        state = chat.run(backend=ScriptedRuntime(CHAT, checks=False), stream=True)
        async for _ in state.text_async_iter(return_meta_data=True):
            pass

    with pytest.raises(rt.ParameterError, match="return_meta_data"):
        asyncio.run(read())


def test_an_exception_of_a_streamed_body_is_raised_by_its_readers() -> None:
    def state() -> sgl.ProgramState:
        return chat.run(True, backend=ScriptedRuntime(CHAT, checks=False), stream=True)

    chunks: list[str] = []
    with pytest.raises(ZeroDivisionError, match="boom"):
        chunks.extend(state().text_iter())
    assert "".join(chunks) == "Hello. one and "
    with pytest.raises(ZeroDivisionError):
        list(state().text_iter("second"))
    with pytest.raises(ZeroDivisionError):
        state()["second"]
    for read in (lambda s: s.text(), lambda s: s.messages(), lambda s: s.ret_value):
        with pytest.raises(ZeroDivisionError):
            read(state())
    failed = state()
    assert isinstance(failed.error(), ZeroDivisionError)
    assert failed["first"] == "one"  # what was there before it stays


def test_a_variable_that_never_comes_is_an_error_and_no_endless_wait() -> None:
    state = chat.run(backend=ScriptedRuntime(CHAT, checks=False), stream=True)
    with pytest.raises(sgl.MissingVariableError, match="'third' does not exist"):
        list(state.text_iter("third"))
    with pytest.raises(KeyError):
        state["third"]


def test_a_streamed_body_may_read_its_own_state() -> None:
    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x")
        s["whole"] = s.text()
        s.sync()
        s["chunks"] = list(s.text_iter())
        with pytest.raises(KeyError):
            s["missing"]
        s += "b"

    state = body.run(backend=ScriptedRuntime({"x": "1"}, checks=False), stream=True)
    assert "".join(state.text_iter()) == "a1b"
    assert (state["whole"], "".join(state["chunks"])) == ("a1", "a1")


def test_a_stream_goes_on_behind_a_message_that_was_given_up() -> None:
    seen = threading.Event()

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "a"
        try:
            with s.user():
                s += "lost" + sgl.gen("x") + "more"
                assert seen.wait(30)
                raise LookupError
        except LookupError:
            s += "b" + sgl.gen("y") + "c"

    state = body.run(backend=ScriptedRuntime({"x": "1", "y": "2"}, checks=False), stream=True)
    text = ""
    for chunk in state.text_iter():
        text += chunk
        if "more" in text:
            seen.set()
    assert text == "alost1moreb2c"  # what was shown cannot be taken back
    assert state.text() == "ab2c"


def test_an_error_of_a_generation_ends_its_stream() -> None:
    state = chat.run(backend=ScriptedRuntime({"first": rt.RequestError("no")}, checks=False), stream=True)
    with pytest.raises(rt.RequestError, match="generation 'first'"):
        list(state.text_iter("first"))
