"""The pool of engines against a plain model: every graph is open on one engine or waits, under random operations."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable

import pytest

from rtlang.fleet.engines.crash_suspects import CRASH, FATAL_STRIKES, MAX_PIECES, PROBE_WAIT_S, Death
from rtlang.fleet.engines.engine_pool import (
    GRACE_S,
    SILENT_S,
    CancelGraph,
    EndReason,
    EnginePool,
    FailGraph,
    GraphMoved,
    OpenGraph,
    Order,
)
from tests.support.long_tests import sized


class RandomPlacement:
    """Chooses any engine, and keeps where the graphs are."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.opened: dict[int, str] = {}

    def choose(self, graph_id: int, engines: Collection[str]) -> str:
        return self._rng.choice(sorted(engines))

    def note_opened(self, graph_id: int, engine: str) -> None:
        assert graph_id not in self.opened
        self.opened[graph_id] = engine

    def note_left(self, graph_id: int, engine: str) -> None:
        assert self.opened.pop(graph_id) == engine


class World:
    """Engines that carry out the orders of a pool, and the graphs as a client knows them."""

    def __init__(self, seed: int, num_spares: int = 0) -> None:
        self.placement = RandomPlacement(seed)
        self.pool = EnginePool(self.placement, num_spares)
        self.num_spares = num_spares
        self.engines: dict[str, dict[int, int]] = {}  # of those that are ready: graph ids by stream id
        self.streams: set[int] = set()  # that were ever used
        self.alive: set[int] = set()  # graphs
        self.cancelled: dict[int, float] = {}
        self.failed: dict[int, EndReason] = {}
        self.now = 0.0

    def begin_with(self, graph_ids: Iterable[int]) -> None:
        """Start two engines, and add graphs."""
        for name in ("a", "b"):
            self.carry_out(self.pool.add_engine(name, self.now))
            self.start(name)
        for graph_id in graph_ids:
            self.alive.add(graph_id)
            self.carry_out(self.pool.add(graph_id, self.now))

    def carry_out(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case OpenGraph(graph_id, engine, stream_id):
                    assert graph_id in self.alive
                    assert graph_id not in self.cancelled, "a cancelled graph is not opened again"
                    assert stream_id not in self.streams
                    assert all(graph_id not in graphs.values() for graphs in self.engines.values()), "open once"
                    self.streams.add(stream_id)
                    self.engines[engine][stream_id] = graph_id
                case CancelGraph(graph_id, engine, stream_id):
                    if graph_id not in self.cancelled or not self.is_on(engine, graph_id):
                        self.engines.get(engine, {}).pop(stream_id, None)
                case GraphMoved(graph_id):
                    assert graph_id in self.alive
                case FailGraph(graph_id, reason):
                    self.alive.remove(graph_id)
                    self.failed[graph_id] = reason
                    for graphs in self.engines.values():
                        for stream_id in [each for each, found in graphs.items() if found == graph_id]:
                            del graphs[stream_id]
        self.pool.check()
        opened = {graph_id: name for name, graphs in self.engines.items() for graph_id in graphs.values()}
        assert opened == self.placement.opened
        assert set(self.pool.graphs) == self.alive
        num_open = sum(self.pool.is_open(name) for name in self.engines)
        waiting = self.alive - set(opened)
        if num_open:
            assert all(self.pool._suspects.is_suspect(graph_id) for graph_id in waiting), "others need not wait"
            empty = [name for name in self.engines if self.pool.is_open(name) and not self.pool.engines[name].graphs]
            assert not waiting or self.pool._suspects.probed or not empty, "suspects wait for an engine of their own"

    def is_on(self, engine: str, graph_id: int) -> bool:
        return graph_id in self.engines.get(engine, {}).values()

    def start(self, name: str) -> None:
        self.engines[name] = {}
        self.carry_out(self.pool.note_ready(name, self.now))

    def kill(
        self, name: str, *, has_crashed: bool, at_work: Collection[int] | None = None, held_by: int | None = None
    ) -> None:
        del self.engines[name]
        self.pool.note_lost(name)
        death = Death(has_crashed, None if at_work is None else frozenset(at_work), held_by)
        self.carry_out(self.pool.note_death(name, self.now, self.now, death))


@pytest.mark.parametrize("seed", range(sized(1000, usual=60)))
def test_every_graph_is_open_on_one_engine_or_waits_under_random_operations(seed: int) -> None:
    rng, world = random.Random(seed), World(seed, num_spares=seed % 3)
    pool = world.pool
    down: set[str] = set()
    for index in range(3):
        world.carry_out(pool.add_engine(f"e{index}", world.now))
        down.add(f"e{index}")
    num_engines, next_id = 3, 1
    for _ in range(300):
        world.now += rng.random()
        running = sorted(world.engines)
        held = sorted(world.placement.opened)
        action = rng.choice(
            ["add", "add", "add", "start", "start", "kill", "output", "output", "end", "cancel", "move", "tick", "swap"]
        )
        if action == "add":
            world.alive.add(next_id)
            deadline = world.now + 20.0 if rng.random() < 0.3 else None
            world.carry_out(pool.add(next_id, world.now, deadline, is_suspect=rng.random() < 0.1))
            next_id += 1
        elif action == "start" and down:
            name = rng.choice(sorted(down))
            down.remove(name)
            world.start(name)
        elif action == "kill" and running:
            name = rng.choice(running)
            down.add(name)
            on_it = sorted(world.engines[name].values())
            at_work = None if rng.random() < 0.5 else rng.sample(on_it, rng.randrange(len(on_it) + 1))
            held_by = at_work[0] if at_work and len(at_work) == 1 and rng.random() < 0.3 else None
            has_crashed = held_by is not None or rng.random() < 0.7
            world.kill(name, has_crashed=has_crashed, at_work=at_work, held_by=held_by)
            assert held_by is None or held_by not in world.alive, "a graph that held an engine is not tried again"
        elif action == "output" and held:
            world.carry_out(pool.note_output(rng.choice(held), world.now))
        elif action == "end" and held:
            graph_id = rng.choice(held)
            world.alive.remove(graph_id)
            world.engines[world.placement.opened[graph_id]].pop(pool.graphs[graph_id].stream_id)
            world.carry_out(pool.end(graph_id, world.now))
        elif action == "cancel" and world.alive:
            graph_id = rng.choice(sorted(world.alive))
            world.cancelled.setdefault(graph_id, world.now)
            world.carry_out(pool.cancel(graph_id, world.now))
        elif action == "move" and held:
            targets = [name for name in running if pool.is_open(name)]
            world.carry_out(pool.move(rng.choice(held), rng.choice([None, *targets]), world.now))
        elif action == "tick":
            overdue = {id_ for id_, at in world.cancelled.items() if id_ in world.alive and at + GRACE_S < world.now}
            beats = {name: world.now - rng.choice((0.0, 0.0, 2 * SILENT_S)) for name in pool.engines}
            world.carry_out(pool.tick(beats, world.now))
            assert not overdue & world.alive
            if any(pool.is_open(name) for name in pool.engines):
                waiting = world.alive - set(world.placement.opened)
                assert all(pool._suspects.is_suspect(graph_id) for graph_id in waiting), "none waits for nothing"
        elif action == "swap" and len(running) > 1:
            name = rng.choice(running)
            world.carry_out(pool.leave(name, world.now))
            world.carry_out(pool.evacuate(name, world.now))
            world.kill(name, has_crashed=False)
            world.carry_out(pool.remove_engine(name, world.now))
            world.carry_out(pool.add_engine(f"e{num_engines}", world.now))
            down.add(f"e{num_engines}")
            num_engines += 1
    assert all(
        world.failed[graph_id] not in (EndReason.CRASHES, EndReason.STALLS)
        for graph_id in world.cancelled
        if graph_id in world.failed
    )


@pytest.mark.parametrize("has_record", [True, False], ids=["record", "no record"])
@pytest.mark.parametrize("num_graphs", [1, 2, 7])
def test_only_the_graph_that_crashes_engines_fails(num_graphs: int, has_record: bool) -> None:
    world = World(num_graphs)
    pool, culprit = world.pool, num_graphs
    world.begin_with(range(1, num_graphs + 1))
    num_crashes = 0
    while culprit in world.alive:
        world.now += 1.0
        name = world.placement.opened.get(culprit)
        if name is None:  # other suspects come first
            probed = next(graph_id for graph_id in world.placement.opened if pool.strikes(graph_id))
            world.carry_out(pool.note_output(probed, world.now))
            continue
        num_crashes += 1
        on_it = world.engines[name].values()
        world.kill(name, has_crashed=True, at_work=tuple(on_it) if has_record else None)
        assert pool.blames_graph is has_record
        world.start(name)
    assert world.failed == {culprit: EndReason.CRASHES}
    if has_record:
        assert num_crashes == 2
    else:  # as long as graphs beside it are not told apart from it, each half of them
        assert FATAL_STRIKES // CRASH <= num_crashes <= FATAL_STRIKES // CRASH + (num_graphs - 1).bit_length()


@pytest.mark.parametrize("num_spares", [0, 1])
@pytest.mark.parametrize("num_engines", [1, 2, 3])
@pytest.mark.parametrize(("num_pieces", "most_crashes"), [(0, 2), (1, 2), (20, 2), (100, 3), (400, 4)])
def test_a_graph_that_crashes_steps_after_some_output_is_told_apart_from_its_neighbours(
    num_pieces: int, most_crashes: int, num_engines: int, num_spares: int
) -> None:
    world = World(num_pieces, num_spares)
    pool, culprit, given, down = world.pool, 5, Counter[int](), dict[str, float]()
    for index in range(num_engines):
        world.carry_out(pool.add_engine(f"e{index}", world.now))
    for name in list(pool.engines):
        world.start(name)
    for graph_id in range(1, 10):
        world.alive.add(graph_id)
        world.carry_out(pool.add(graph_id, world.now))
    num_crashes = 0
    for _ in range(30_000):
        if culprit not in world.alive:
            break
        world.now += 0.02
        for name in [name for name, at in down.items() if at < world.now]:
            del down[name]
            world.start(name)
        stream_id = pool.graphs[culprit].stream_id
        name = world.placement.opened.get(culprit, "")
        if name and given[stream_id] >= num_pieces:
            num_crashes += 1
            down[name] = world.now + 3.0
            world.kill(name, has_crashed=True, at_work=tuple(world.engines[name].values()))
            continue
        for graph_id in sorted(world.placement.opened):  # a step of each engine
            if graph_id in world.placement.opened:  # else a suspect that was cleared has displaced it
                given[pool.graphs[graph_id].stream_id] += 1
                world.carry_out(pool.note_output(graph_id, world.now))
    assert world.failed == {culprit: EndReason.CRASHES}
    assert num_crashes <= most_crashes


@pytest.mark.parametrize("seed", range(sized(400, usual=40)))
def test_several_graphs_that_crash_engines_fail_and_no_other(seed: int) -> None:
    """Each crashes the steps that it shares, or work for it alone, after some pieces; engines take a while to come back."""
    rng = random.Random(seed)
    world = World(seed, num_spares=seed % 2)
    pool, given, down = world.pool, Counter[int](), dict[str, float]()
    for index in range(rng.randrange(1, 5)):
        world.carry_out(pool.add_engine(f"e{index}", world.now))
        down[f"e{index}"] = rng.random()
    num_left = {graph_id: rng.randrange(20, 400) for graph_id in range(1, rng.randrange(4, 20))}
    bad = {each: rng.choice([0, 0, 1, 5, 30]) for each in rng.sample(sorted(num_left), rng.randrange(1, 4))}
    is_named_alone = {each: rng.random() < 0.5 for each in bad}
    for graph_id in num_left:
        world.alive.add(graph_id)
        world.carry_out(pool.add(graph_id, world.now))
    num_crashes = Counter[int]()
    for _ in range(60_000):
        if not world.alive:
            break
        world.now += 0.05
        for name in [name for name, at in down.items() if at < world.now]:
            del down[name]
            world.start(name)
        for name in sorted(world.engines):
            streams = world.engines[name]
            guilty = [each for each, id_ in streams.items() if id_ in bad and given[each] >= bad[id_]]
            if guilty:
                culprit = streams[guilty[0]]
                num_crashes[culprit] += 1
                at_work = (culprit,) if is_named_alone[culprit] else tuple(streams.values())
                down[name] = world.now + rng.choice((0.5, 3.0, 20.0))
                world.kill(name, has_crashed=True, at_work=at_work)
                continue
            for stream_id, graph_id in sorted(streams.items()):
                if world.engines.get(name, {}).get(stream_id) != graph_id:
                    continue  # it was moved
                given[stream_id] += 1
                num_left[graph_id] -= graph_id not in bad
                if num_left[graph_id]:
                    world.carry_out(pool.note_output(graph_id, world.now))
                else:
                    world.alive.remove(graph_id)
                    del streams[stream_id]
                    world.carry_out(pool.end(graph_id, world.now))
        if rng.random() < 0.05:
            world.carry_out(pool.tick(dict.fromkeys(pool.engines, world.now), world.now))
    assert not world.alive, "it comes to no end"
    assert world.failed == dict.fromkeys(bad, EndReason.CRASHES)
    assert all(count <= 3 + len(bad) - 1 for count in num_crashes.values()), num_crashes
    assert all(num_crashes[each] <= 2 for each in bad if is_named_alone[each] or len(bad) == 1), num_crashes


@pytest.mark.parametrize("has_record", [True, False], ids=["record", "no record"])
def test_a_graph_that_was_a_culprit_before_has_an_engine_of_its_own_and_one_crash(has_record: bool) -> None:
    world = World(0)
    pool = world.pool
    world.carry_out(pool.add_engine("a", world.now))
    world.start("a")
    for graph_id in (1, 2):
        world.alive.add(graph_id)
        world.carry_out(pool.add(graph_id, world.now, is_suspect=graph_id == 2))
    assert not world.is_on("a", 2), "it does not share the engine of another graph"
    world.alive.remove(1)
    world.engines["a"].clear()
    world.carry_out(pool.end(1, world.now))
    assert world.is_on("a", 2)
    for _ in range(MAX_PIECES):
        world.carry_out(pool.note_output(2, world.now))
    assert not pool.is_open("a"), "it gave as much before"
    world.kill("a", has_crashed=True, at_work=(2,) if has_record else None)
    assert world.failed == {2: EndReason.CRASHES}


def test_a_suspect_is_alone_on_its_engine_and_the_engine_is_open_again_when_it_gives_something() -> None:
    world = World(0)
    pool = world.pool
    world.carry_out(pool.add_engine("a", world.now))
    world.start("a")
    world.alive.add(1)
    world.carry_out(pool.add(1, world.now))
    for _ in range(2):
        world.kill("a", has_crashed=True)
        world.start("a")
    assert world.is_on("a", 1)
    assert not pool.is_open("a")
    world.alive.add(2)
    world.carry_out(pool.add(2, world.now))
    assert not world.is_on("a", 2)
    world.carry_out(pool.note_output(1, world.now))
    assert world.is_on("a", 2)
    assert pool.is_open("a")


def test_a_graph_fails_after_the_time_that_its_engine_has_to_end_it() -> None:
    world = World(0)
    pool = world.pool
    world.carry_out(pool.add_engine("a", world.now))
    world.start("a")
    for graph_id, deadline in ((1, 5.0), (2, None), (3, None)):
        world.alive.add(graph_id)
        world.carry_out(pool.add(graph_id, world.now, deadline))
    world.cancelled[2] = 0.0
    world.carry_out(pool.cancel(2, 0.0))
    world.carry_out(pool.tick({"a": 0.0}, GRACE_S))
    assert world.failed == {}
    world.carry_out(pool.tick({"a": 0.0}, GRACE_S + 0.1))
    assert world.failed == {2: EndReason.CANCELLED}
    world.carry_out(pool.tick({"a": 0.0}, 5.0 + GRACE_S))
    assert len(world.failed) == 1
    world.carry_out(pool.tick({"a": 0.0}, 5.1 + GRACE_S))
    assert world.failed == {2: EndReason.CANCELLED, 1: EndReason.DEADLINE}
    assert world.alive == {3}


def spares(pool: EnginePool) -> set[str]:
    return {name for name, engine in pool.engines.items() if engine.is_spare}


def test_a_spare_takes_the_graphs_of_an_engine_that_ends_and_the_next_engine_is_the_spare() -> None:
    world = World(0, num_spares=1)
    pool = world.pool
    for name in ("a", "b", "c"):
        world.carry_out(pool.add_engine(name, world.now))
    world.start("c")
    assert spares(pool) == {"b"}, "the first engines that are ready work"
    world.start("a")
    world.start("b")
    assert (spares(pool), pool.is_open("b")) == ({"b"}, False)
    for graph_id in range(8):
        world.alive.add(graph_id)
        world.carry_out(pool.add(graph_id, world.now))
    assert not world.engines["b"]
    world.kill("a", has_crashed=True)
    assert (spares(pool), pool.is_open("b")) == ({"a"}, True)
    assert len(world.engines["b"]) + len(world.engines["c"]) == 8
    world.start("a")
    assert (spares(pool), pool.is_open("a")) == ({"a"}, False), "another death is as short"
    world.carry_out(pool.add_engine("d", world.now))
    assert spares(pool) == {"d"}, "what is added takes time to load, and the spare has"
    assert pool.is_open("a")


def test_a_suspect_is_tried_on_the_spare_while_others_go_on() -> None:
    world = World(0, num_spares=1)
    pool = world.pool
    world.begin_with(range(1, 10))
    assert len(world.engines["a"]) == 9
    world.kill("a", has_crashed=True, at_work=(5,))
    assert set(world.engines["b"].values()) == world.alive - {5}, "the spare has the others at once"
    world.start("a")
    assert (spares(pool), world.is_on("a", 5)) == ({"a"}, True), (
        "the one that is back is the spare, and has the suspect"
    )
    opened = dict(world.engines["b"])
    world.kill("a", has_crashed=True, at_work=(5,))
    assert world.failed == {5: EndReason.CRASHES}
    world.start("a")
    assert world.engines == {"a": {}, "b": opened}, "the others did not notice the second crash"


def test_a_suspect_that_has_the_spare_does_not_keep_others_waiting() -> None:
    world = World(0, num_spares=1)
    pool = world.pool
    world.begin_with((1, 2))
    world.kill("a", has_crashed=True, at_work=(1, 2))
    assert world.is_on("b", 2), "no other engine is there"
    world.alive.add(3)
    world.carry_out(pool.add(3, world.now))
    assert 3 not in world.placement.opened
    world.start("a")
    assert (spares(pool), world.is_on("a", 3)) == ({"b"}, True)
    world.carry_out(pool.note_output(2, world.now))
    assert world.is_on("b", 1), "suspects come one after the other"


def test_the_wait_of_a_suspect_that_was_cancelled_is_not_that_of_the_next_one() -> None:
    world = World(0)
    pool = world.pool
    world.begin_with(range(1, 20))
    for at in (1.0, 1.0 + 2 * PROBE_WAIT_S):
        world.now = at
        name = min(world.engines, key=lambda each: len(world.engines[each]))
        suspect = min(world.engines[name].values())
        world.kill(name, has_crashed=True, at_work=(suspect,))
        assert suspect not in world.placement.opened, "it waits for an engine of its own"
        world.cancelled[suspect] = at
        world.carry_out(pool.cancel(suspect, at))
        world.start(name)
        world.carry_out(pool.tick(dict.fromkeys(pool.engines, at), at))
        for graph_id in range(100 * int(at), 100 * int(at) + 20):
            world.alive.add(graph_id)
            world.carry_out(pool.add(graph_id, at))


def test_an_engine_that_is_alone_is_no_spare() -> None:
    world = World(0, num_spares=2)
    world.carry_out(world.pool.add_engine("a", world.now))
    world.start("a")
    assert world.pool.is_open("a")
    world.carry_out(world.pool.add_engine("b", world.now))
    world.start("b")
    assert spares(world.pool) == {"b"}
    world.carry_out(world.pool.leave("a", world.now))
    assert spares(world.pool) == set()


def test_an_engine_that_is_silent_takes_no_new_graphs_while_others_answer() -> None:
    world = World(0)
    pool = world.pool
    world.begin_with(range(4))
    held = dict(world.engines["a"])
    world.now = SILENT_S + 1.0
    world.carry_out(pool.tick({"a": 0.5, "b": world.now}, world.now))
    assert (pool.is_open("a"), pool.is_open("b")) == (False, True)
    for graph_id in range(4, 8):
        world.alive.add(graph_id)
        world.carry_out(pool.add(graph_id, world.now))
    assert world.engines["a"] == held, "its graphs stay until it answers or is replaced"
    world.carry_out(pool.tick({"a": 0.5, "b": 0.5}, world.now))
    assert (pool.is_open("a"), pool.is_open("b")) == (True, True), "none is better than the other"
    world.carry_out(pool.tick({"a": world.now, "b": 0.5}, world.now))
    assert (pool.is_open("a"), pool.is_open("b")) == (True, False)


def test_a_spare_takes_graphs_while_another_engine_is_silent() -> None:
    world = World(0, num_spares=1)
    pool = world.pool
    for name in ("a", "b"):
        world.carry_out(pool.add_engine(name, world.now))
        world.start(name)
    assert spares(pool) == {"b"}
    world.now = SILENT_S + 1.0
    world.carry_out(pool.tick({"a": 0.5, "b": world.now}, world.now))
    assert (spares(pool), pool.is_open("b")) == ({"a"}, True)
