"""Results as they come: order, laziness, back-pressure, ends of every kind."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

import rtlang as rt
from rtlang.lang.rows.completed_rows import CompletedRows
from rtlang.testing import ScriptedRuntime
from tests.lang.rows.test_batch import PROGRAMS, Counting, awaiting, breaking, inputs, straight
from tests.support.programs.fake_target import Call, FakeTarget, answer, default_script
from tests.support.waiting import wait_until


async def _collected(results: CompletedRows[Any]) -> list[Any]:
    return [result async for result in results]


def by_for(results: CompletedRows[Any]) -> list[Any]:
    return list(results)


def by_async_for(results: CompletedRows[Any]) -> list[Any]:
    return asyncio.run(_collected(results))


READERS = [by_for, by_async_for]
Reader = Callable[[CompletedRows[Any]], list[Any]]


def generated(count: int) -> Iterator[dict[str, Any]]:
    yield from inputs(count)


async def generated_async(count: int) -> AsyncIterator[dict[str, Any]]:
    for each in inputs(count):
        await asyncio.sleep(0)
        yield each


SOURCES = [inputs, generated, generated_async]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_row_has_one_result_that_knows_it(
    program: rt.Program, reader: Reader, source: Callable[[int], Any], target: FakeTarget
) -> None:
    results = reader(program.as_completed(source(50)))
    assert sorted(result.index for result in results) == list(range(50))
    for result in results:
        assert result.row == inputs(50)[result.index]
        assert (result.error, result["y"]) == (None, answer(result.row["x"], "y"))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("window", [1, 3, 16])
def test_results_can_come_in_the_order_of_the_rows(
    window: int, program: rt.Program, reader: Reader, source: Callable[[int], Any], target: FakeTarget
) -> None:
    results = reader(program.as_completed(source(20), in_order=True, max_in_flight=window))
    assert [result.index for result in results] == list(range(20))
    assert [result.value for result in results] == [result.value for result in program.run_batch(inputs(20))]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_no_rows_give_no_results(program: rt.Program, reader: Reader, target: FakeTarget) -> None:
    assert reader(program.as_completed([])) == []


def test_a_result_comes_before_rows_that_have_not_ended(target: FakeTarget) -> None:
    @rt.program
    def mixed(s: Any, x: str) -> None:
        s += rt.gen("slow" if x.startswith("input 0 ") else "y")

    target.hold("slow")
    with mixed.as_completed(inputs(3)) as results:
        assert {next(results).index, next(results).index} == {1, 2}
        target.release("slow")
        assert next(results).index == 0
        assert next(results, None) is None
        assert next(results, None) is None  # the end stays the end


class Endless:
    """Rows without an end; counts those that were read."""

    def __init__(self) -> None:
        self.num_read, self.is_closed = 0, threading.Event()

    def rows(self) -> Iterator[dict[str, Any]]:
        try:
            while True:
                self.num_read += 1
                yield {"x": f"row {self.num_read}"}
        finally:
            self.is_closed.set()

    async def rows_async(self) -> AsyncIterator[dict[str, Any]]:
        for row in self.rows():
            await asyncio.sleep(0)
            yield row


@pytest.mark.parametrize("program", PROGRAMS)
def test_endless_rows_are_read_as_far_as_there_is_room_and_closed_at_the_end(
    program: rt.Program, target: FakeTarget
) -> None:
    source = Endless()
    results = program.as_completed(source.rows(), max_in_flight=8)
    assert source.num_read == 0  # nothing is read before the iteration
    for taken, result in enumerate(results, 1):
        assert result.error is None
        assert source.num_read <= taken + 8
        if taken == 40:
            break
    wait_until(lambda: source.num_read >= 40 + 8 - 1)  # it goes on, as the variable holds it
    results.close()
    assert source.is_closed.wait(60)
    assert list(results) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_break_cancels_the_rows_that_run(program: rt.Program, target: FakeTarget) -> None:
    source = Endless()
    for result in program.as_completed(source.rows(), max_in_flight=8):
        assert result.error is None
        break
    assert source.is_closed.wait(60)
    for run in target.runs:
        assert run.ended.wait(60)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("is_async_source", [False, True])
def test_leaving_an_asynchronous_iteration_cancels_the_rows_that_run(
    is_async_source: bool, program: rt.Program, target: FakeTarget
) -> None:
    source = Endless()

    async def read() -> None:
        rows = source.rows_async() if is_async_source else source.rows()
        async with program.as_completed(rows, max_in_flight=8) as results:
            async for result in results:
                assert result.error is None
                break

    asyncio.run(read())
    assert source.is_closed.wait(60)
    for run in target.runs:
        assert run.ended.wait(60)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_error_of_the_reader_cancels_the_rows_that_run(
    is_async: bool, program: rt.Program, target: FakeTarget
) -> None:
    target.hold("z")

    @rt.program
    def mixed(s: Any, x: str) -> None:
        s += rt.gen("y" if x.startswith("input 0 ") else "z")

    async def read_async() -> None:
        async for _ in mixed.as_completed(inputs(10)):
            raise ZeroDivisionError

    def read() -> None:
        for _ in mixed.as_completed(inputs(10)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(read_async()) if is_async else read()
    for run in target.runs:
        assert run.ended.wait(60)


@pytest.mark.parametrize("source", ["rows", "rows_async"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_error_of_the_rows_comes_after_the_results_that_are_there(
    program: rt.Program, reader: Reader, source: str, target: FakeTarget
) -> None:
    goes_on = threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        yield from inputs(3)
        assert goes_on.wait(60)
        yield {"x": "held"}
        raise LookupError("row 4 is missing")

    async def rows_async() -> AsyncIterator[dict[str, Any]]:
        for row in inputs(3):
            yield row
        await asyncio.to_thread(goes_on.wait, 60)
        yield {"x": "held"}
        raise LookupError("row 4 is missing")

    def script(call: Call) -> Any:
        return default_script(call)

    target.script = script
    results = program.as_completed(rows() if source == "rows" else rows_async())
    seen: list[int] = []

    def read() -> None:
        for result in results:
            seen.append(result.index)
            if len(seen) == 3:
                target.hold("y", "z")
                goes_on.set()

    async def read_async() -> None:
        async for result in results:
            seen.append(result.index)
            if len(seen) == 3:
                target.hold("y", "z")
                goes_on.set()

    with pytest.raises(LookupError, match="row 4"):
        read() if reader is by_for else asyncio.run(read_async())
    assert sorted(seen) == [0, 1, 2]
    for run in target.runs:
        assert run.ended.wait(60)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_a_row_that_does_not_fit_fails_alone(program: rt.Program, reader: Reader, target: FakeTarget) -> None:
    results = reader(program.as_completed([{"x": "a"}, {"z": "b"}, {}, {"x": "c"}], in_order=True))
    assert [type(result.error) for result in results] == [type(None), TypeError, TypeError, type(None)]
    assert program.name in str(results[1].error)
    assert results[1].row == {"z": "b"}
    with pytest.raises(TypeError):
        _ = results[2].value


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("wrong", ["text", 3, ["x"], {7: "a"}])
def test_a_row_that_is_no_mapping_ends_the_iteration(wrong: Any, reader: Reader, target: FakeTarget) -> None:
    with pytest.raises(rt.ParameterError, match=r"rows\[1\]"):
        reader(straight.as_completed([{"x": "a"}, wrong]))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rows": {"x": "a"}}, "rows"),
        ({"rows": "abc"}, "rows"),
        ({"rows": 5}, "rows"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"max_in_flight": True}, "max_in_flight"),
        ({"max_threads": 0}, "max_threads"),
        ({"deadline_s": -1}, "deadline_s"),
    ],
)
def test_wrong_arguments_are_refused_by_the_call(given: dict[str, Any], named: str, target: FakeTarget) -> None:
    rows = given.pop("rows", [])
    with pytest.raises(rt.ParameterError, match=named):
        straight.as_completed(rows, **given)
    with pytest.raises(TypeError, match="colour"):
        straight.as_completed([], colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_failures_are_in_their_results(program: rt.Program, reader: Reader, target: FakeTarget) -> None:
    def script(call: Call) -> Any:
        return rt.ConstraintError("bad") if call.prompt.startswith("input 3 ") else default_script(call)

    target.script = script
    results = reader(program.as_completed(inputs(8), in_order=True))
    assert [result.error is None for result in results] == [index != 3 for index in range(8)]
    with pytest.raises(rt.ConstraintError):
        reader(program.as_completed(inputs(8), on_error="raise"))
    for run in target.runs:
        assert run.ended.wait(60)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_deadlines_count_for_each_row(program: rt.Program, reader: Reader, target: FakeTarget) -> None:
    target.hold("y")
    results = reader(program.as_completed(inputs(3), deadline_s=0.02))
    assert all(isinstance(result.error, rt.DeadlineError) for result in results)
    assert len(results) == 3


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_a_runtime_that_dies_ends_every_row(program: rt.Program, reader: Reader, target: FakeTarget) -> None:
    def script(call: Call) -> str:
        if call.prompt.startswith("input 5 "):
            target.die()
        return default_script(call)

    target.script = script
    results = reader(program.as_completed(inputs(30), max_in_flight=4))
    assert len(results) == 30
    assert isinstance(results[-1].error, rt.EngineDeadError)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_options_that_the_target_lacks_are_an_error(program: rt.Program, reader: Reader) -> None:
    class Plain(FakeTarget):
        abilities = frozenset()

    with Plain() as target, pytest.raises(rt.GraphError, match="budget"):
        reader(program.as_completed(inputs(3), runtime=target, budget=rt.Budget(tokens=5)))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_progress_is_told_with_the_total_once_it_is_known(
    program: rt.Program, reader: Reader, target: FakeTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[int, int | None]] = []
    reader(program.as_completed(inputs(4), progress=lambda done, total: told.append((done, total))))
    assert told == [(done, 4) for done in range(5)]
    told.clear()
    reader(program.as_completed(generated(4), progress=lambda done, total: told.append((done, total)), max_in_flight=1))
    assert told[:4] == [(done, None) for done in range(4)]
    assert told[4][0] == 4
    reader(program.as_completed(generated(4), progress=True))
    assert program.name in capsys.readouterr().err


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", READERS)
def test_a_full_queue_lets_rows_wait(program: rt.Program, reader: Reader, target: FakeTarget) -> None:
    target.refuse(*[rt.OverloadError("full", 0.001) for _ in range(3)])
    assert [result.error for result in reader(program.as_completed(inputs(6)))] == [None] * 6


@pytest.mark.parametrize("program", [straight, awaiting])
def test_as_many_rows_run_as_the_queue_takes(program: rt.Program) -> None:
    with rt.Runtime("rtlang:tiny", max_waiting=5, num_pages=64, num_threads=1) as runtime:
        most = 0
        results = program.as_completed(
            inputs(40), runtime=runtime, params=rt.Sampling(max_tokens=4, ignore_eos=True), max_in_flight=20
        )
        for result in results:
            assert result.error is None
            most = max(most, len(results._runs._runs))
        assert 1 <= most <= 20
        assert results.num_completed == 40


def test_rows_may_depend_on_results(target: FakeTarget) -> None:
    """An iterator that waits for results does not keep them from coming."""
    todo: queue.Queue[dict[str, Any] | None] = queue.Queue()
    todo.put({"x": "first"})
    seen = []
    for result in straight.as_completed(iter(todo.get, None)):
        seen.append(result.row["x"])
        todo.put({"x": "next"} if len(seen) < 5 else None)
    assert seen == ["first", *["next"] * 4]


def test_an_iterator_that_blocks_forever_holds_nobody_up(target: FakeTarget) -> None:
    goes_on = threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        yield {"x": "a"}
        goes_on.wait(600)

    for result in straight.as_completed(rows()):
        assert result.index == 0
        break
    goes_on.set()


def test_an_asynchronous_iterator_that_waits_forever_is_cancelled(target: FakeTarget) -> None:
    ended = threading.Event()

    async def rows() -> AsyncIterator[dict[str, Any]]:
        try:
            yield {"x": "a"}
            await asyncio.sleep(3600)
        finally:
            ended.set()

    for result in straight.as_completed(rows()):
        assert result.index == 0
        break
    assert ended.wait(60)


def test_a_cancelled_reader_cancels_the_rows(target: FakeTarget) -> None:
    target.hold("y")

    async def read() -> None:
        reading = asyncio.ensure_future(_collected(awaiting.as_completed(inputs(3))))
        while len(target.runs) < 3:
            await asyncio.sleep(0.001)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(read())
    for run in target.runs:
        assert run.ended.wait(60)


def test_an_interrupt_while_waiting_cancels_the_rows(target: FakeTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    target.hold("y")
    results = straight.as_completed(inputs(3))

    def interrupted(*args: Any) -> bool:
        wait_until(lambda: len(target.runs) == 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(results._runs._ends, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(results)
    for run in target.runs:
        assert run.ended.wait(60)


def test_rows_are_read_and_closed_on_one_thread(target: FakeTarget) -> None:
    threads = set()

    def rows() -> Iterator[dict[str, Any]]:
        try:
            for each in inputs(30):
                threads.add(threading.get_ident())
                yield each
        finally:
            threads.add(threading.get_ident())

    assert len(list(breaking.as_completed(rows(), max_in_flight=2))) == 30
    assert len(threads) == 1


def test_a_row_that_comes_while_all_bodies_wait_starts_at_once(target: FakeTarget) -> None:
    todo: queue.Queue[dict[str, Any] | None] = queue.Queue()
    target.hold("y")
    seen: list[int] = []
    reading = threading.Thread(
        target=lambda: seen.extend(result.index for result in breaking.as_completed(iter(todo.get, None)))
    )
    reading.start()
    for count in range(1, 6):
        todo.put({"x": f"row {count} "})
        wait_until(lambda count=count: len(target.runs) == count)
    todo.put(None)
    target.release("y")
    reading.join(60)
    assert sorted(seen) == list(range(5))


def test_straight_rows_are_recorded_by_few_threads() -> None:
    with Counting(200) as target:
        target.hold("y")
        done: list[Any] = []
        thread = threading.Thread(target=lambda: done.extend(straight.as_completed(inputs(200), runtime=target)))
        thread.start()
        assert target.reached.wait(60)
        assert (
            sum(each.name == "rtlang-batch" for each in threading.enumerate()) <= 20
        )  # a few; more only where the machine is slow
        target.release("y")
        thread.join(60)
        assert len(done) == 200


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_thread_is_left(program: rt.Program, target: FakeTarget) -> None:
    program.run(x="a")  # the target has its thread then
    before = set(threading.enumerate())
    list(program.as_completed(generated(50), max_in_flight=8))
    wait_until(lambda: not set(threading.enumerate()) - before)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_result_keeps_nothing_of_its_run_alive_but_what_it_shows(program: rt.Program) -> None:
    """Without a collection of reference cycles: those of thousands of rows would wait for it."""
    with ScriptedRuntime({"y": "yes", "z": "no"}) as runtime:
        results = list(program.as_completed(inputs(3), runtime=runtime, in_order=True))
        sessions = [weakref.ref(each._source._recording) for each in results]  # type: ignore[attr-defined]
        assert [each["y"] for each in results] == ["yes"] * 3
        gc.disable()
        try:
            while results:
                results.pop()
            wait_until(lambda: all(each() is None for each in sessions))
        finally:
            gc.enable()


def test_shared_text_of_rows_in_flight_comes_first(target: FakeTarget) -> None:
    @rt.program
    def ask(s: Any, document: str, question: str) -> None:
        s += rt.user(question, document, order="free") + rt.assistant(rt.gen("y"))

    rows = [{"document": f"document {index // 40}", "question": f"question {index}"} for index in range(200)]
    for result in ask.as_completed(iter(rows)):
        content = result.messages[0]["content"]
        assert content == result.row["document"] + result.row["question"]


def test_a_slow_reader_stops_the_reading_of_rows(target: FakeTarget) -> None:
    source = Endless()
    with straight.as_completed(source.rows(), max_in_flight=5) as results:
        next(results)
        wait_until(lambda: source.num_read == 6)
        wait_until(lambda: sum(run.ended.is_set() for run in target.runs) == 6)
        time.sleep(0)
        assert source.num_read == 6


def test_closing_twice_and_before_the_start(target: FakeTarget) -> None:
    results = straight.as_completed(inputs(3))
    results.close()
    results.close()
    assert list(results) == []
    assert not target.runs

    async def close() -> list[Any]:
        async with aclosing(awaiting.as_completed(inputs(3))) as rows:
            await rows.aclose()
            return [each async for each in rows]

    assert asyncio.run(close()) == []
