"""One program over many inputs: order, partial failure, threads, full queues."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import RequestGraph
from tests.support.programs.fake_target import Call, FakeRun, FakeTarget, answer, default_script


@rt.program
def straight(s: Any, x: str) -> Any:
    s += x + rt.gen("y")
    return s["y"]


@rt.program
def breaking(s: Any, x: str) -> Any:
    s += x + rt.gen("y")
    s += str(s["y"]) + rt.gen("z")
    return s["z"]


@rt.program
async def awaiting(s: Any, x: str) -> Any:
    s += x + rt.gen("y")
    s += str(await s["y"]) + rt.gen("z")
    return s["z"]


PROGRAMS = [straight, breaking, awaiting]


def inputs(count: int) -> list[dict[str, Any]]:
    return [{"x": f"input {index} "} for index in range(count)]


class Counting(FakeTarget):
    """Tells when so many graphs were submitted."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.reached = count, threading.Event()

    def submit(self, graph: RequestGraph, *args: Any, **kwargs: Any) -> FakeRun:
        run = super().submit(graph, *args, **kwargs)
        if len(self.runs) == self.count:
            self.reached.set()
        return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_come_in_the_order_of_the_inputs(program: rt.Program, target: FakeTarget) -> None:
    results = program.run_batch(inputs(100))
    assert [result["y"] for result in results] == [answer(given["x"], "y") for given in inputs(100)]
    assert [result.value for result in results] == [program.run(**given).value for given in inputs(100)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_empty_batch_is_an_empty_list(program: rt.Program, target: FakeTarget) -> None:
    assert program.run_batch([]) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_failure_leaves_the_others_alone(program: rt.Program, target: FakeTarget) -> None:
    def script(call: Call) -> Any:
        return rt.ConstraintError("bad") if call.prompt.startswith("input 3 ") else default_script(call)

    target.script = script
    results = program.run_batch(inputs(8))
    assert [result.error is None for result in results] == [index != 3 for index in range(8)]
    assert isinstance(results[3].error, rt.ConstraintError)
    with pytest.raises(rt.ConstraintError):
        results[3]["y"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_on_error_raise_raises_the_failure_and_cancels_the_rest(program: rt.Program, target: FakeTarget) -> None:
    def script(call: Call) -> Any:
        return rt.ConstraintError("bad") if call.prompt.startswith("input 1 ") else default_script(call)

    target.script = script
    target.hold("z")
    with pytest.raises(rt.ConstraintError, match="bad"):
        program.run_batch(inputs(4), on_error="raise")
    for run in target.runs:
        assert run.ended.wait(60)


def test_an_exception_of_a_body_is_in_its_result(target: FakeTarget) -> None:
    @rt.program
    def picky(s: Any, x: str) -> None:
        s += x + rt.gen("y")
        if x.startswith("input 2"):
            raise ValueError("not this one")

    results = picky.run_batch(inputs(4))
    assert [type(result.error) for result in results] == [type(None), type(None), ValueError, type(None)]


def test_straight_programs_are_all_submitted_from_one_thread() -> None:
    with Counting(50) as target:
        target.hold("y")
        done: list[Any] = []
        thread = threading.Thread(target=lambda: done.extend(straight.run_batch(inputs(50), runtime=target)))
        thread.start()
        assert target.reached.wait(60)
        workers = [each for each in threading.enumerate() if each.name == "rtlang-batch"]
        assert len(workers) <= 3  # one, and perhaps more where this machine stalls
        target.release("y")
        thread.join(60)
        assert len(done) == 50


def test_breaking_programs_use_a_bounded_number_of_threads() -> None:
    with Counting(3) as target:
        target.hold("y")
        lock, most = threading.Lock(), [0]

        def num_threads() -> int:
            return sum(each.name == "rtlang-batch" for each in threading.enumerate())

        def watched(done: int, total: int) -> None:
            with lock:
                most[0] = max(most[0], num_threads())

        results: list[Any] = []
        thread = threading.Thread(
            target=lambda: results.extend(
                breaking.run_batch(inputs(20), runtime=target, max_threads=3, progress=watched)
            )
        )
        thread.start()
        assert target.reached.wait(60)
        assert len(target.runs) == 3  # the fourth body finds no free thread
        assert 1 <= num_threads() <= 3  # all of them wait
        target.release("y")
        thread.join(60)
        assert len(results) == 20
        assert most[0] <= 3


def test_progress_is_told_after_each_run(target: FakeTarget) -> None:
    for program in PROGRAMS:
        told: list[tuple[int, int]] = []

        def tell(done: int, total: int, told: list[tuple[int, int]] = told) -> None:
            told.append((done, total))

        program.run_batch(inputs(5), progress=tell)
        assert told == [(done, 5) for done in range(6)]


def test_a_progress_bar_can_be_shown(target: FakeTarget, capsys: pytest.CaptureFixture[str]) -> None:
    straight.run_batch(inputs(3), progress=True)
    assert "straight" in capsys.readouterr().err


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_full_queue_is_waited_for(program: rt.Program, target: FakeTarget) -> None:
    target.refuse(*[rt.OverloadError("full", 0.001) for _ in range(3)])
    results = program.run_batch(inputs(6))
    assert [result.error for result in results] == [None] * 6


def test_a_queue_that_stays_full_is_an_error_in_the_end(target: FakeTarget) -> None:
    target.refuse(*[rt.OverloadError("full", 0.001) for _ in range(1000)])
    results = straight.run_batch(inputs(3))
    assert all(isinstance(result.error, rt.OverloadError) for result in results)


@pytest.mark.parametrize("program", PROGRAMS)
def test_deadlines_hold_for_each_run(program: rt.Program, target: FakeTarget) -> None:
    target.hold("y")
    results = program.run_batch(inputs(3), deadline_s=0.02)
    assert all(isinstance(result.error, rt.DeadlineError) for result in results)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_runtime_that_dies_ends_every_run(program: rt.Program, target: FakeTarget) -> None:
    def script(call: Call) -> str:
        if call.prompt.startswith("input 5 "):
            target.die()
        return default_script(call)

    target.script = script
    target.hold("z")
    results = program.run_batch(inputs(10), max_threads=4)
    if program is not straight:  # whose graphs may all have ended in time
        assert isinstance(results[9].error, rt.EngineDeadError)
    assert all(isinstance(result.error, (rt.EngineDeadError, type(None))) for result in results)


def test_inputs_are_mappings_of_the_programs_arguments(target: FakeTarget) -> None:
    with pytest.raises(rt.ParameterError, match=r"inputs\[1\]"):
        straight.run_batch([{"x": "a"}, "b"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="z"):
        straight.run_batch([{"z": "a"}])
    with pytest.raises(TypeError, match="x"):
        straight.run_batch([{}])
    with pytest.raises(rt.ParameterError, match="max_threads"):
        straight.run_batch([], max_threads=0)
    assert target.runs == []


def test_bound_arguments_are_kept(target: FakeTarget) -> None:
    @rt.program
    def two(s: Any, a: str, b: str) -> None:
        s += a + b + rt.gen("y")

    assert two.bind("A").run_batch([{"b": "B"}])[0]["y"] == answer("AB", "y")


def test_a_batch_of_coroutines_runs_inside_an_event_loop_too(target: FakeTarget) -> None:
    async def outer() -> list[rt.Result]:
        return awaiting.run_batch(inputs(3))

    assert [result.error for result in asyncio.run(outer())] == [None] * 3


def test_interrupting_a_batch_cancels_its_graphs() -> None:
    class Interrupt(BaseException): ...

    def interrupts(done: int, total: int) -> None:
        if done == 1:
            raise Interrupt

    with FakeTarget() as target:

        def script(call: Call) -> str:
            return default_script(call)

        target.script = script
        target.hold("z")

        @rt.program
        def mixed(s: Any, x: str) -> None:
            s += rt.gen("y" if x == "input 0 " else "z")

        with pytest.raises(Interrupt):
            mixed.run_batch(inputs(5), runtime=target, progress=interrupts)
        for run in target.runs:
            assert run.ended.wait(60)


def test_bodies_that_are_slow_by_themselves_run_side_by_side(target: FakeTarget) -> None:
    together = threading.Barrier(3)

    @rt.program
    def slow(s: Any, x: str) -> None:
        together.wait(60)  # only three at a time get past
        s += x + rt.gen("y")

    assert [result.error for result in slow.run_batch(inputs(6))] == [None] * 6


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "wrong",
    [
        {"deadline_s": -1},
        {"deadline_s": "soon"},
        {"deadline_s": float("nan")},
        {"priority": "high"},
        {"params": {"n": 2}},
    ],
)
def test_wrong_options_are_refused_before_anything_runs(
    program: rt.Program, wrong: dict[str, Any], target: FakeTarget
) -> None:
    with pytest.raises(rt.ParameterError, match=next(iter(wrong))):
        program.run_batch(inputs(3), **wrong)
    assert not target.runs


@pytest.mark.parametrize(("wrong", "said"), [({}, "missing a required argument: 'x'"), ({"z": "b"}, "'z'")])
def test_wrong_inputs_are_refused_by_their_place(wrong: dict[str, Any], said: str, target: FakeTarget) -> None:
    @rt.program
    def named(s: Any, x: str) -> None:
        s += x + rt.gen("y")

    with pytest.raises(TypeError, match=rf"inputs\[2\]: named\(\): .*{said}"):
        named.run_batch([*inputs(2), wrong])
    assert not target.runs


def test_a_result_that_cannot_be_read_is_nobody_elses(target: FakeTarget) -> None:
    @rt.program
    def circular(s: Any, x: str) -> Any:
        s += x + rt.gen("y")
        found: list[Any] = [s["y"]]
        if x == "bad":
            found.append(found)
        return found

    good, bad, last = circular.run_batch([{"x": "a"}, {"x": "bad"}, {"x": "b"}])
    assert good.value == [answer("a", "y")]
    assert last.value == [answer("b", "y")]
    assert isinstance(bad.error, rt.TraceError)
    assert bad["y"] == answer("bad", "y")
