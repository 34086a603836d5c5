"""The engine thread: order of commands, timers, orderly ends. No test depends on how long anything takes."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.process.current_work import CurrentWork
from rtlang.runtime.process.loop import EngineLoop
from rtlang.runtime.process.turn_work import MOST_TURN_US, TURN_WORK_US

LIMIT_S = 30.0


class FakeEngine:
    """Has `num_steps` steps of work; each brings one output. Raises at step `broken_at`."""

    def __init__(self, num_steps: int = 0, broken_at: int | None = None) -> None:
        self.num_steps, self.broken_at = num_steps, broken_at
        self.heard: list[int] = []
        self.work = CurrentWork()
        self.retry_at: float | None = None
        self.retried: list[float] = []

    def retry(self, now: float) -> None:
        if self.retry_at is not None and now >= self.retry_at:
            self.retried.append(now)
            self.retry_at = None

    @property
    def has_work(self) -> bool:
        return self.num_steps > 0

    def step(self, now: float) -> list[Any]:
        if self.num_steps == self.broken_at:
            raise RuntimeError("broken")
        self.num_steps -= 1
        spec = SimpleNamespace(listener=lambda output, n=self.num_steps: self.heard.append(n))
        return [SimpleNamespace(request=SimpleNamespace(spec=spec))]

    def note_time(self, seconds: float) -> None:
        assert seconds >= 0


class Loop:
    def __init__(self, engine: FakeEngine, idle_actions: Any = ()) -> None:
        self.engine = engine
        self.ends: list[BaseException | None] = []
        self.broken = threading.Event()
        self.ended = threading.Event()
        self.loop = EngineLoop(lambda wake: engine, self.broken.set, self.end, idle_actions=idle_actions)  # type: ignore[arg-type, return-value]
        self.loop.start()

    def end(self, cause: BaseException | None) -> None:
        self.ends.append(cause)
        self.ended.set()


def test_commands_run_in_order_on_one_thread() -> None:
    world = Loop(FakeEngine())
    seen: list[tuple[int, str]] = []
    for i in range(100):
        world.loop.post(lambda i=i: seen.append((i, threading.current_thread().name)))  # type: ignore[misc]
    world.loop.stop()
    assert seen == [(i, "rtlang-engine") for i in range(100)]
    assert world.ends == [None]
    assert not world.broken.is_set()


def test_a_client_waits_for_one_command_of_each_other_client() -> None:
    world = Loop(FakeEngine())
    seen: list[tuple[str, int]] = []
    is_posted = threading.Event()
    world.loop.post(lambda: seen.clear() if is_posted.wait(LIMIT_S) else None)
    for i in range(1000):
        world.loop.post(lambda i=i: seen.append(("many", i)), "many")  # type: ignore[misc]
    for i in range(3):
        world.loop.post(lambda i=i: seen.append(("few", i)), "few")  # type: ignore[misc]
    is_posted.set()
    world.loop.stop()
    assert [entry for entry in seen[:6] if entry[0] == "few"] == [("few", i) for i in range(3)]
    assert [i for name, i in seen if name == "many"] == list(range(1000))


def test_a_command_may_give_its_result_or_raise_to_the_caller() -> None:
    world = Loop(FakeEngine())
    assert world.loop.run(lambda: threading.current_thread().name) == "rtlang-engine"
    assert world.loop.run(lambda: world.loop.run(lambda: 7)) == 7
    with pytest.raises(ZeroDivisionError):
        world.loop.run(lambda: 1 // 0)
    assert world.loop.run(lambda: 8) == 8, "an error of a command does not stop the engine"
    world.loop.stop()
    with pytest.raises(EngineDeadError):
        world.loop.run(lambda: 9)


def test_an_engine_that_waits_for_a_time_is_asked_again_then() -> None:
    engine = FakeEngine()
    world = Loop(engine)
    done = threading.Event()
    begun = world.loop.run(world.loop.clock)
    world.loop.post(lambda: setattr(engine, "retry_at", begun + 0.02))

    def look() -> None:
        done.set() if engine.retried else world.loop.call_at(world.loop.clock() + 0.01, look)

    world.loop.post(look)
    assert done.wait(LIMIT_S)
    world.loop.stop()
    assert engine.retried[0] >= begun + 0.02


def test_work_is_done_until_there_is_none() -> None:
    engine = FakeEngine()
    world = Loop(engine)
    done = threading.Event()
    world.loop.post(lambda: setattr(engine, "num_steps", 5))

    def look() -> None:
        done.set() if engine.num_steps == 0 else world.loop.post(look)

    world.loop.post(look)
    assert done.wait(LIMIT_S)
    world.loop.stop()
    assert engine.heard == [4, 3, 2, 1, 0]


def test_idle_actions_run_once_in_order_after_each_time_of_work() -> None:
    engine, done, is_over = FakeEngine(), [], threading.Event()

    def act(name: str) -> None:
        assert not engine.has_work
        done.append(name)
        if name == "later":
            is_over.set()

    world = Loop(engine, ((0.0, lambda _: act("soon")), (0.001, lambda _: act("later"))))
    for number in (1, 2):
        is_over.clear()
        world.loop.post(lambda: setattr(engine, "num_steps", 3))
        assert is_over.wait(LIMIT_S)
        world.loop.run(lambda: None)
        assert done == ["soon", "later"] * number
    world.loop.stop()


def test_stop_is_idempotent_and_later_commands_are_refused() -> None:
    world = Loop(FakeEngine())
    world.loop.stop()
    world.loop.stop()
    assert world.ends == [None]
    with pytest.raises(EngineDeadError):
        world.loop.post(lambda: None)


def test_a_broken_engine_ends_once_with_its_cause_and_runs_what_was_accepted() -> None:
    engine = FakeEngine()
    world = Loop(engine)
    ran = []
    block = threading.Event()
    world.loop.post(lambda: (block.wait(LIMIT_S), setattr(engine, "broken_at", 3), setattr(engine, "num_steps", 3)))  # type: ignore[arg-type, return-value]

    def last_of_this_round() -> None:
        world.loop.post(lambda: ran.append("queued behind the failing step"))

    world.loop.post(last_of_this_round)
    block.set()
    assert world.ended.wait(LIMIT_S)
    world.loop.stop()
    assert world.broken.is_set()
    assert [str(cause) for cause in world.ends] == ["broken"]
    assert ran == ["queued behind the failing step"]
    with pytest.raises(EngineDeadError, match="broken"):
        world.loop.post(lambda: None)


def test_what_building_the_engine_raises_reaches_the_caller() -> None:
    def build(wake: Any) -> Any:
        raise OSError("no such model")

    with pytest.raises(OSError, match="no such model"):
        EngineLoop(build, lambda: None, lambda cause: None).start()


def test_timers_run_in_time_order() -> None:
    now = [0.0]
    ran: list[str] = []
    done = threading.Event()
    loop = EngineLoop(lambda wake: FakeEngine(), lambda: None, lambda cause: None, clock=lambda: now[0])  # type: ignore[arg-type, return-value]
    loop.start()

    def plan() -> None:
        loop.call_at(2.0, lambda: (ran.append("late"), done.set()))  # type: ignore[arg-type, return-value]
        loop.call_at(1.0, lambda: ran.append("early"))
        now[0] = 5.0

    loop.post(plan)
    assert done.wait(LIMIT_S)
    loop.stop()
    assert ran == ["early", "late"]


def test_a_cancelled_timer_does_not_run_and_is_let_go() -> None:
    world = Loop(FakeEngine())
    ran: list[str] = []
    done = threading.Event()

    def plan() -> None:
        timers = [world.loop.call_at(float("inf"), lambda: ran.append("never")) for _ in range(100)]
        for timer in timers[1:]:
            timer.cancel()
            timer.cancel()
        ran.append(f"{len(world.loop._timers) < 5}")
        timers[0].cancel()
        ran.append(f"{len(world.loop._timers)} left")
        done.set()

    world.loop.post(plan)
    assert done.wait(LIMIT_S)
    world.loop.stop()
    assert ran == ["True", "0 left"]


@pytest.mark.parametrize("far", [1e18, 1e300, float("inf")])
def test_a_timer_in_the_far_future_is_waited_for_in_parts(far: float) -> None:
    world = Loop(FakeEngine())
    world.loop.post(lambda: world.loop.call_at(far, lambda: None))  # type: ignore[arg-type]
    heard = threading.Event()
    world.loop.wake()  # the thread has gone to wait at least once when it takes the next command
    world.loop.post(heard.set)
    assert heard.wait(LIMIT_S)
    world.loop.stop()
    assert world.ends == [None]


def test_what_is_put_off_takes_turns_between_clients_and_fills_each_turn_only() -> None:
    world = Loop(FakeEngine(num_steps=10**6))
    seen: list[str] = []
    turns: list[float] = []
    loop, begin = world.loop, world.loop.turn.begin
    has_ended = threading.Event()

    def note_turn() -> None:
        turns.append(loop.turn.spent_us)
        begin()

    def work(client: str, number: int) -> None:
        loop.turn.spend(TURN_WORK_US / 3)
        seen.append(client)
        if number:
            loop.call_later_turn(lambda: work(client, number - 1), client)
        elif client == "few":
            has_ended.set()

    def start() -> None:
        loop.turn.begin = note_turn  # type: ignore[method-assign]
        for _ in range(50):
            loop.call_later_turn(lambda: work("many", 1_000), "many")
        loop.call_later_turn(lambda: work("few", 20), "few")

    loop.post(start)
    assert has_ended.wait(LIMIT_S)
    loop.stop()
    first = seen[: len(seen) - seen[::-1].index("few")]
    assert first.count("few") == 21
    assert first.count("many") <= 3 * 22, "each turn has room for three"
    assert max(turns) <= MOST_TURN_US


def test_a_full_turn_runs_one_command_and_no_more() -> None:
    engine = FakeEngine(num_steps=10**6)
    world = Loop(engine)
    steps: list[int] = []
    has_ended, may_begin = threading.Event(), threading.Event()

    def work() -> None:
        world.loop.turn.spend(MOST_TURN_US)
        steps.append(engine.num_steps)

    def wait() -> None:
        assert may_begin.wait(LIMIT_S)

    world.loop.post(wait)
    for _ in range(10):
        world.loop.post(work)
    world.loop.post(has_ended.set)
    may_begin.set()
    assert has_ended.wait(LIMIT_S)
    world.loop.stop()
    assert len(set(steps)) == 10, "a step follows each of them"
