"""Running one program: errors have one owner, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import signal
import threading
import traceback
from typing import Any

import pytest

import rtlang as rt
from rtlang.lang.execution.run import default_runtime
from tests.support.programs.fake_target import Call, FakeTarget, answer, by_name, default_script


@rt.program
def chain(s: Any) -> Any:
    s += "a" + rt.gen("first")
    s += "b" + rt.gen("second")
    return s["second"]


@rt.program
def breaking(s: Any) -> Any:
    s += "a" + rt.gen("first")
    seen = str(s["first"])
    s += "b" + rt.gen("second")
    return seen


@rt.program
async def awaiting(s: Any) -> Any:
    s += "a" + rt.gen("first")
    seen = await s["first"]
    s += "b" + rt.gen("second")
    return seen


def failing(name: str, error: rt.RtlangError) -> Any:
    return by_name({name: error})


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_an_error_of_a_node_is_raised_with_its_class_and_facts(program: rt.Program, target: FakeTarget) -> None:
    target.script = failing("first", rt.ConstraintError("no such schema", "/a"))
    with pytest.raises(rt.ConstraintError, match="no such schema") as caught:
        program.run()
    assert caught.value.location == "/a"
    result = program.run(on_error="result")
    assert isinstance(result.error, rt.ConstraintError)
    for name in result.names:
        with pytest.raises(rt.ConstraintError, match="no such schema"):
            result[name]


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_what_was_generated_before_an_error_is_kept(program: rt.Program, target: FakeTarget) -> None:
    target.script = failing("second", rt.BudgetError(3, 7))
    result = program.run(on_error="result")
    assert result["first"] == answer("a", "first")
    assert isinstance(result.error, rt.BudgetError)
    assert (result.error.max_tokens, result.error.needed) == (3, 7)


def test_a_dependant_in_text_fails_with_the_error_at_the_root(target: FakeTarget) -> None:
    @rt.program
    def quotes(s: Any) -> None:
        left, right = s.fork(2)
        left += rt.gen("left")
        right += rt.gen("right")
        s += rt.text(left["left"]) + rt.gen("middle")
        s += rt.gen("end")

    target.script = failing("left", rt.NumericsError("not finite"))
    result = quotes.run(on_error="result")
    assert result["right"] == answer("", "right")
    for name in ("left", "middle", "end"):
        with pytest.raises(rt.NumericsError, match="not finite"):
            result[name]


def test_an_error_that_the_body_handles_is_no_error_of_the_run(target: FakeTarget) -> None:
    @rt.program
    def careful(s: Any) -> str:
        attempt = s.fork(1)[0]
        attempt += rt.gen("x")
        try:
            return str(attempt["x"])
        except rt.ConstraintError:
            s += rt.gen("instead")
            return "recovered"

    target.script = failing("x", rt.ConstraintError("bad"))
    result = careful.run()
    assert (result.value, result.error) == ("recovered", None)
    assert result["instead"] == answer("", "instead")


def test_the_body_goes_on_from_before_a_failed_node_that_it_has_seen(target: FakeTarget) -> None:
    @rt.program
    def stubborn(s: Any) -> str:
        s += "a"
        s += "b" + rt.gen("x")
        try:
            str(s["x"])
        except rt.ConstraintError:
            s += "c" + rt.gen("y")
        return str(s["y"])

    target.script = failing("x", rt.ConstraintError("bad"))
    result = stubborn.run(runtime=target)
    assert result.value == result["y"]
    assert result.text() == f"ac{result.value}"


@pytest.mark.parametrize("program", ["plain", "async"])
def test_an_exception_of_the_body_keeps_its_traceback_and_cancels_the_graph(program: str, target: FakeTarget) -> None:
    target.hold("slow")

    def wrong() -> None:
        raise ZeroDivisionError("in the body")

    @rt.program
    def plain(s: Any) -> None:
        s += rt.gen("quick")
        str(s["quick"])
        s.fork(1)[0].__iadd__(rt.gen("slow"))
        s += rt.gen("other")
        str(s["other"])
        wrong()

    @rt.program
    async def coroutine(s: Any) -> None:
        s += rt.gen("quick")
        await s["quick"]
        s.fork(1)[0].__iadd__(rt.gen("slow"))
        s += rt.gen("other")
        await s["other"]
        wrong()

    chosen = plain if program == "plain" else coroutine
    with pytest.raises(ZeroDivisionError) as caught:
        chosen.run()
    assert "wrong" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert target.runs[0].was_cancelled
    result = chosen.run(on_error="result")
    assert isinstance(result.error, ZeroDivisionError)
    assert result["quick"] == answer("", "quick")
    with pytest.raises(rt.AbortedError):
        result["slow"]


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_a_runtime_that_dies_while_a_program_waits_ends_it(program: rt.Program, target: FakeTarget) -> None:
    def dies(call: Call) -> str:
        if call.name == "first":
            target.die("out of memory")
        return default_script(call)

    target.hold("second")
    target.script = dies
    with pytest.raises(rt.EngineDeadError, match="out of memory"):
        program.run()
    with pytest.raises(rt.EngineDeadError, match="out of memory"):
        program.run()  # now it refuses the submission


def test_a_runtime_that_dies_between_two_breaks_ends_the_second(target: FakeTarget) -> None:
    @rt.program
    def unlucky(s: Any) -> None:
        s += rt.gen("a")
        str(s["a"])
        target.die()
        s += rt.gen("b")
        str(s["b"])

    with pytest.raises(rt.EngineDeadError):
        unlucky.run()


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_the_runtimes_deadline_ends_a_program(program: rt.Program, target: FakeTarget) -> None:
    def expires(call: Call) -> str:
        target.expire()
        return default_script(call)

    target.script = expires
    target.hold("second")
    with pytest.raises(rt.DeadlineError):
        program.run(deadline_s=3600)
    given = target.runs[0].deadline_s
    assert given is not None
    assert 0 < given <= 3600


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_a_runtime_that_never_answers_is_left_at_the_deadline(program: rt.Program, target: FakeTarget) -> None:
    target.hold("first")
    result = program.run(deadline_s=0.02, on_error="result")
    assert isinstance(result.error, rt.DeadlineError)
    assert target.runs[0].was_cancelled


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), True])
def test_a_deadline_is_a_positive_number(wrong: float, target: FakeTarget) -> None:
    with pytest.raises(rt.ParameterError, match="deadline_s"):
        chain.run(deadline_s=wrong)


def test_ctrl_c_while_waiting_cancels_the_graph(target: FakeTarget) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupts(call: Call) -> str:
        if call.name == "first":
            signal.pthread_kill(main, signal.SIGINT)
        return default_script(call)

    target.script = interrupts
    target.hold("second")
    for program in (chain, breaking):
        with pytest.raises(KeyboardInterrupt):
            program.run()
        assert target.runs[-1].was_cancelled


def test_a_full_queue_is_raised(target: FakeTarget) -> None:
    target.refuse(rt.OverloadError("the queue is full", 0.5))
    with pytest.raises(rt.OverloadError) as caught:
        chain.run()
    assert caught.value.retry_after_s == 0.5


def test_a_malformed_graph_is_raised(target: FakeTarget) -> None:
    @rt.program
    def surrogate(s: Any) -> None:
        s += "\ud800" + rt.gen("x")

    with pytest.raises(rt.GraphError, match="surrogate"):
        surrogate.run()


def test_a_program_without_generations_needs_no_submission(target: FakeTarget) -> None:
    @rt.program
    def silent(s: Any) -> int:
        s += "text"
        return 3

    assert silent.run().value == 3
    assert target.runs == []


def test_without_a_runtime_there_is_a_message() -> None:
    assert default_runtime() is None
    with pytest.raises(rt.TraceError, match="no runtime"):
        chain.run()


def test_the_given_runtime_comes_before_the_default_one(target: FakeTarget) -> None:
    with FakeTarget() as other:
        chain.run(runtime=other)
        assert (len(other.runs), len(target.runs)) == (1, 0)


def test_on_error_is_checked(target: FakeTarget) -> None:
    with pytest.raises(rt.ParameterError, match="on_error"):
        chain.run(on_error="ignore")  # type: ignore[arg-type]


def test_priority_reaches_the_runtime(target: FakeTarget) -> None:
    chain.run(priority=-3)
    assert target.runs[0].priority == -3


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_arun_gives_what_run_gives(program: rt.Program, target: FakeTarget) -> None:
    async def both() -> list[rt.Result]:
        return list(await asyncio.gather(program.arun(), program.arun()))

    for result in asyncio.run(both()):
        assert result["second"] == program.run()["second"]


def test_async_programs_hold_no_thread_while_they_wait(target: FakeTarget) -> None:
    target.hold("first")

    async def many() -> tuple[int, list[rt.Result]]:
        tasks = [asyncio.create_task(awaiting.arun()) for _ in range(200)]
        while len(target.runs) < 200:
            await asyncio.sleep(0)
        num_threads = threading.active_count()
        target.release("first")
        return num_threads, list(await asyncio.gather(*tasks))

    before = threading.active_count()
    num_threads, results = asyncio.run(many())
    assert num_threads <= before + 1  # the fake runtime's own
    assert {result.value for result in results} == {answer("a", "first")}


@pytest.mark.parametrize("program", [chain, breaking, awaiting])
def test_cancelling_arun_cancels_the_graph(program: rt.Program, target: FakeTarget) -> None:
    target.hold("first")

    async def cancelled() -> None:
        task = asyncio.create_task(program.arun())
        while not target.runs:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert target.runs[0].ended.wait(60)
    assert target.runs[0].was_cancelled


def test_an_async_body_that_blocks_instead_of_awaiting_is_told(target: FakeTarget) -> None:
    @rt.program
    async def forgets(s: Any) -> None:
        s += rt.gen("x")
        if s["x"] == "y":
            s += "z"

    with pytest.raises(rt.TraceError, match="await") as caught:
        forgets.run()
    assert caught.value.location is not None
    assert caught.value.location.startswith(__file__)


def test_a_plain_program_cannot_await(target: FakeTarget) -> None:
    @rt.program
    def wrong(s: Any) -> None:
        s += rt.gen("x")
        s["x"].__await__().send(None)

    with pytest.raises(rt.TraceError, match="async def"):
        wrong.run()


def test_an_awaited_value_may_be_used_freely_afterwards(target: FakeTarget) -> None:
    @rt.program
    async def reads(s: Any) -> Any:
        s += rt.gen("x")
        await s["x"]
        return s["x"] == str(s["x"]), f"{s['x']}"

    assert reads.run().value == (True, answer("", "x"))


def test_run_works_inside_a_running_event_loop(target: FakeTarget) -> None:
    async def outer() -> Any:
        return awaiting.run().value, breaking.run().value

    assert asyncio.run(outer()) == (answer("a", "first"), answer("a", "first"))


def test_nothing_can_be_recorded_after_the_end(target: FakeTarget) -> None:
    kept: list[Any] = []

    @rt.program
    def leaks(s: Any) -> None:
        s += rt.gen("x")
        kept.append(s)

    leaks.run()
    assert str(kept[0]["x"]) == answer("", "x")
    with pytest.raises(rt.TraceError, match="has ended"):
        kept[0].__iadd__("more")


def test_a_value_of_another_run_is_refused(target: FakeTarget) -> None:
    kept: list[Any] = []

    @rt.program
    def first(s: Any) -> None:
        s += rt.gen("x")
        kept.append(s["x"])

    @rt.program
    def second(s: Any) -> None:
        s += rt.text(kept[0]) + rt.gen("y")

    first.run()
    with pytest.raises(rt.TraceError, match="another run"):
        second.run()


def test_bodies_may_record_from_several_threads(target: FakeTarget) -> None:
    @rt.program
    def threaded(s: Any) -> Any:
        forks = s.fork(8)

        def work(index: int) -> None:
            forks[index] += rt.text("branch ", index) + rt.gen("a")
            forks[index] += str(forks[index]["a"]) + rt.gen("b")

        threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        forks.join()
        return s["b"]

    result = threaded.run()
    firsts = [answer(f"branch {index}", "a") for index in range(8)]
    assert result["a"] == firsts
    assert result.value == [answer(f"branch {i}{first}{first}", "b") for i, first in enumerate(firsts)]
