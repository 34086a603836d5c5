"""The monitor of the engine thread, with readings that the test decides; no test depends on how long anything takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rtlang.contract.errors import InternalError
from rtlang.contract.events import GraphFailed
from rtlang.contract.graph import pure_functions
from rtlang.contract.params import SamplingParams
from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.process.stoppable_work import WorkStopped
from rtlang.contract.request_graph import Apply, Const, Generate, Ref, RequestGraph, Text
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.process import work_monitor
from rtlang.runtime.process.work_monitor import (
    ASK_S,
    BESIDE_HELD_S,
    BESIDE_LIMIT_S,
    HELD_S,
    INTERVAL_S,
    SOFT_LIMIT_S,
    STEP_LIMIT_S,
    Stall,
    WorkMonitor,
)
from rtlang.runtime.runtime import Runtime
from tests.support.programs.graph_ear import Ear

STACK = ["upper (text.py:3)", "apply (values.py:9)"]


class World:
    def __init__(self) -> None:
        self.work = CurrentWork()
        self.stalls: list[Stall] = []
        self.monitor = WorkMonitor(self.work, self.stalls.append, lambda thread: STACK)
        self.monitor.tick()

    def pass_s(self, seconds: float) -> None:
        for _ in range(int(seconds / INTERVAL_S)):
            self.monitor.tick()


@pytest.fixture
def world() -> World:
    return World()


def test_work_that_stalls_is_named_with_its_graph_node_function_and_time(world: World) -> None:
    world.work.begin_turn()
    world.work.begin(7)
    world.work.begin_node(3)
    world.monitor.tick()
    world.pass_s(SOFT_LIMIT_S - INTERVAL_S)
    assert world.stalls == []
    world.monitor.tick()
    (stall,) = world.stalls
    assert (stall.graph_id, stall.node_id, stall.seconds, stall.function) == (7, 3, SOFT_LIMIT_S, STACK[0])
    assert not stall.is_held
    world.pass_s(100.0)
    assert [each.seconds for each in world.stalls] == [2.0, 4.0, 8.0, HELD_S, 20.0, 40.0, 80.0]
    assert [each.seconds for each in world.stalls if each.is_held] == [HELD_S]


def test_work_beside_the_thread_is_named_later_and_given_up_if_it_does_not_stop(world: World) -> None:
    world.work.begin_turn()
    world.work.rest()
    world.work.run_beside(7, 3, lambda: world.pass_s(BESIDE_LIMIT_S))
    assert world.stalls == []
    world.work.run_beside(7, 3, lambda: world.pass_s(2 * BESIDE_HELD_S))
    assert [(each.graph_id, each.node_id, each.seconds) for each in world.stalls] == [
        (7, 3, BESIDE_LIMIT_S),
        (7, 3, BESIDE_HELD_S),
    ]
    assert all(each.is_beside and each.stack == tuple(STACK) for each in world.stalls)
    assert [each.is_held for each in world.stalls] == [False, True]
    assert "a thread beside the engine's is held for 60 s by graph 7 of principal ana, node 3" in world.stalls[
        1
    ].described("ana")


def test_many_short_pieces_of_a_graph_in_one_turn_are_one_stall(world: World) -> None:
    world.work.begin_turn()
    world.work.begin(7)
    for node_id in range(1 + int(SOFT_LIMIT_S / INTERVAL_S)):
        world.work.begin_node(node_id)
        world.monitor.tick()
    assert len(world.stalls) == 1


@pytest.mark.parametrize(
    "goes_on",
    [
        lambda work: (work.begin_turn(), work.begin(7)),
        lambda work: (work.begin(8), work.begin(9)),
        lambda work: work.rest(),
    ],
    ids=["another turn", "another graph", "no work"],
)
def test_a_thread_that_goes_on_has_not_stalled(world: World, goes_on: Callable[[CurrentWork], object]) -> None:
    world.work.begin_turn()
    world.work.begin(7)
    world.pass_s(SOFT_LIMIT_S)
    goes_on(world.work)
    world.pass_s(SOFT_LIMIT_S)
    assert world.stalls == []


def test_a_step_has_more_time_and_blames_nobody(world: World) -> None:
    world.work.begin_turn()
    world.work.begin_step([1, 2])
    world.monitor.tick()
    world.pass_s(STEP_LIMIT_S)
    (stall,) = world.stalls
    assert (stall.graph_id, stall.row_graph_ids, stall.is_held) == (None, {1, 2}, False)
    world.pass_s(1000.0)
    assert not any(each.is_held for each in world.stalls)


def test_sliced_work_is_asked_to_stop(world: World) -> None:
    world.work.begin_turn()
    world.work.begin(7)
    world.monitor.tick()
    world.pass_s(ASK_S - INTERVAL_S)
    world.work.poll(7)
    world.monitor.tick()
    with pytest.raises(WorkStopped):
        world.work.poll(7)


TEXT = SamplingParams(max_tokens=24, temperature=1.0, ignore_eos=True)


def story(index: int) -> RequestGraph:
    return RequestGraph((Text(0, None, (f"Story {index}:",)), Generate(1, 0, "x", TEXT)))


def test_a_pure_function_that_hangs_ends_its_graph_alone_in_this_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def upper(text: str) -> str:
        while text == "hang":
            pass
        return text.upper()

    functions = pure_functions.FUNCTIONS
    monkeypatch.setitem(functions, "upper", replace(functions["upper"], compute=upper))
    monkeypatch.setattr(work_monitor, "INTERVAL_S", 0.05)
    monkeypatch.setattr(work_monitor, "SOFT_LIMIT_S", 0.1)
    hangs = RequestGraph(
        (Apply(3, "upper", (Const("hang"),)), Text(4, None, (Ref(3),)), Generate(5, 4, "y", TEXT)), outputs=(5,)
    )
    with Runtime(dtype="float32", num_pages=200) as runtime:
        undisturbed = [Ear() for _ in range(3)]
        for index, ear in enumerate(undisturbed):
            runtime.submit(story(index), ear, RunOptions(seed=index))
        expected = [ear.values() for ear in undisturbed]
        ears, culprit = [Ear() for _ in range(3)], Ear()
        runtime.submit(story(0), ears[0], RunOptions(seed=0))
        runtime.submit(hangs, culprit, RunOptions(principal=Principal("ana")))
        for index in (1, 2):
            runtime.submit(story(index), ears[index], RunOptions(seed=index))
        end = culprit.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, InternalError)
        assert "node 3 held the engine thread for 0.1 s and was stopped" in end.error.message
        assert end.error.id in caplog.text
        assert "of principal ana, node 3, in upper" in caplog.text
        assert [ear.values() for ear in ears] == expected
        runtime._running_loop().run(lambda: runtime._running_loop().engine.scheduler.check())
        assert runtime.stats()["num_requests_running"] == 0
