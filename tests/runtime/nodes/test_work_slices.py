"""Nodes and actions are spread over turns, in their order; nothing is lost and nothing runs twice."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.request_graph import Apply, Const, Node, Text
from rtlang.runtime.nodes.node_table import Waits
from rtlang.runtime.nodes.work_slices import ACTION_US, PART_US, SMALL_WORK_US, STEP_US, WorkSlices
from rtlang.runtime.process.turn_work import MOST_TURN_US, TURN_WORK_US, TurnWork

TURN_WORK = int(TURN_WORK_US / ACTION_US)
NODES_A_TURN = int(TURN_WORK_US / (STEP_US + PART_US)) + 1
STEPS_A_TURN = int(TURN_WORK_US / STEP_US)


class World:
    """The turns of one graph; `later` holds what was put off."""

    def __init__(self, *, is_sliced: bool = True, later: deque[Callable[[], None]] | None = None) -> None:
        self.later: deque[Callable[[], None]] = deque() if later is None else later
        self.work = TurnWork()
        self.added: list[int] = []
        self.done: list[int] = []
        self.num_idle = 0
        self.is_ended = False
        self.actions = Waits()
        put_off = self.later.append if is_sliced else None
        self.slices = WorkSlices(self.actions, self.idle, lambda: self.is_ended, put_off, turn=self.work)

    def add_nodes(self, nodes: list[Node]) -> None:
        self.slices.add_later(iter(nodes), len(nodes), self.add, lambda: None)

    def add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.added.append(node.node_id)
            self.actions.add((), lambda number=node.node_id: self.done.append(number))  # type: ignore[misc]

    def idle(self) -> None:
        self.num_idle += 1

    def turn(self) -> None:
        self.work.begin()
        for _ in range(len(self.later)):
            self.later.popleft()()


def texts(count: int, first: int = 0) -> list[Node]:
    return [Text(first + index, None, ("a",)) for index in range(count)]


@pytest.mark.parametrize("is_sliced", [False, True])
def test_everything_runs_once_and_in_order(is_sliced: bool) -> None:
    world = World(is_sliced=is_sliced)
    world.add_nodes(texts(1000))
    num_turns = 0
    while world.later:
        before = len(world.added), len(world.done)
        world.turn()
        num_turns += 1
        assert len(world.added) - before[0] <= NODES_A_TURN
        assert len(world.done) - before[1] <= TURN_WORK
    assert world.added == world.done == list(range(1000))
    assert world.num_idle == 1
    assert num_turns == 0 if not is_sliced else num_turns <= 1000 // NODES_A_TURN + 1000 // TURN_WORK + 1


def test_nothing_starts_before_all_nodes_of_a_submission_are_there() -> None:
    world = World()
    world.add_nodes(texts(NODES_A_TURN + 1))
    assert not world.done
    world.add_nodes(texts(3, first=10_000))
    world.turn()
    assert world.added[-1] == 10_002
    assert world.done[0] == 0


def test_a_drain_from_elsewhere_waits_for_the_turn_that_goes_on() -> None:
    world = World()
    world.add_nodes(texts(120))
    num_done = len(world.done)
    assert 0 < num_done < 120
    for _ in range(10):
        world.slices.drain()
    assert len(world.done) == num_done
    world.turn()
    assert len(world.done) == 120


def test_heavy_actions_end_a_turn_early() -> None:
    world = World()
    for number in range(10):
        world.actions.add((), lambda number=number: (world.slices.spend(TURN_WORK_US), world.done.append(number)))  # type: ignore[misc]
    world.slices.drain()
    for number in range(1, 10):
        assert world.done == list(range(number))
        world.turn()
    assert len(world.done) == 10


def test_work_goes_to_another_thread_by_its_price() -> None:
    asked: list[tuple[int, Callable[[], Any], Callable[[Any], None], WorkKind]] = []
    slices = WorkSlices(Waits(), lambda: None, lambda: False, None, lambda *job: asked.append(job))
    results: list[object] = []

    def fail() -> int:
        raise KeyError("x")

    slices.do(SMALL_WORK_US, lambda: 1, results.append)
    slices.do(SMALL_WORK_US + 1, lambda: 2, results.append, WorkKind.TOKENIZE)
    slices.do(1.0, fail, results.append)
    assert [type(each) for each in results] == [int, KeyError]
    ((price, work, then, kind),) = asked
    then(work())
    assert (price, results[-1], kind) == (501, 2, WorkKind.TOKENIZE)


def test_an_ended_graph_does_nothing_more() -> None:
    world = World()
    world.add_nodes(texts(1000))
    world.is_ended = True
    while world.later:
        world.turn()
    assert not world.done
    assert world.num_idle == 0


def test_nodes_that_are_work_to_make_arrive_in_slices() -> None:
    world = World()
    made: list[int] = []
    then: list[int] = []

    def make() -> Iterator[Node | None]:
        for node in texts(50):
            for _ in range(29):  # of a nested block
                made.append(node.node_id)
                yield None
            made.append(node.node_id)
            yield node

    world.slices.add_later(make(), 50, world.add, lambda: then.append(len(world.added)))
    assert len(made) <= STEPS_A_TURN
    while world.later and not then:
        before = len(made)
        world.turn()
        assert 0 < len(made) - before <= STEPS_A_TURN
    while world.later:
        world.turn()
    assert then == [50]
    assert world.done == list(range(50))


def test_a_block_that_starts_in_an_action_counts_as_its_work() -> None:
    world = World()
    started: list[int] = []

    def start(number: int) -> None:
        started.append(number)
        nodes = texts(NODES_A_TURN, NODES_A_TURN * number)
        world.slices.add_later(iter(nodes), len(nodes), world.add, lambda: None)

    for number in range(4):
        world.actions.add((), lambda number=number: start(number))  # type: ignore[misc]
    world.slices.drain()
    num_turns = 0
    while world.later:
        before = len(world.added)
        world.turn()
        num_turns += 1
        assert len(world.added) - before <= NODES_A_TURN
    assert started == list(range(4))
    assert num_turns >= 3
    assert sorted(world.done) == list(range(4 * NODES_A_TURN))


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_the_time_of_turns_is_told_once_and_without_the_time_between_them() -> None:
    told: list[float] = []
    actions, later = Waits(), deque[Callable[[], None]]()
    slices = WorkSlices(actions, lambda: None, lambda: False, later.append, worked=told.append)

    def add(nodes: Sequence[Node]) -> None:
        for _ in nodes:
            actions.add((), partial(busy, 0.002))
        slices.drain()  # within the turn of the arrival

    started = time.thread_time()
    slices.add_later(iter(texts(10)), 10, add, lambda: None)
    while later:
        later.popleft()()
    whole = time.thread_time() - started
    assert 0.02 <= sum(told) <= whole


def test_the_time_of_a_turn_is_told_before_the_graph_ends_within_it() -> None:
    told: list[float] = []
    actions = Waits()
    slices = WorkSlices(actions, lambda: None, lambda: False, None, worked=told.append)
    actions.add((), partial(busy, 0.003))
    actions.add((), slices.settle)
    slices.drain()
    assert told[0] >= 0.003
    assert sum(told[1:]) < 0.003
    slices.settle()
    assert len(told) == 2, "no turn runs"


def test_many_graphs_share_the_work_of_a_turn() -> None:
    work, later = TurnWork(), deque[Callable[[], None]]()
    worlds = [World(later=later) for _ in range(50)]
    for world in worlds:
        world.slices = WorkSlices(world.actions, world.idle, lambda: False, later.append, turn=work)
        world.add_nodes(texts(300))
    num_turns = 0
    while later:
        work.begin()
        for _ in range(len(later)):
            if not work.has_room():
                break
            later.popleft()()
        assert 0 < work.spent_us <= MOST_TURN_US
        num_turns += 1
    assert all(world.done == list(range(300)) for world in worlds)
    assert num_turns > 50 * 300 * ACTION_US / TURN_WORK_US


def test_a_node_of_many_operands_has_a_turn_almost_for_itself() -> None:
    world = World()
    nodes: list[Node] = [Apply(number, "list", (Const(1),) * 4_096) for number in range(20)]
    world.add_nodes(nodes)
    while world.later:
        world.turn()
        assert world.work.spent_us <= MOST_TURN_US
    assert world.done == list(range(20))
