"""Graphs on engines that do as the test says: they are placed, open again elsewhere, and one that ends engines fails alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, DeadlineError, EngineDeadError, InternalError
from rtlang.contract.events import GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines import crash_suspects, engine_link, engine_pool, engine_target
from rtlang.fleet.engines.crash_suspects import CRASH, FATAL_STRIKES, KILL
from rtlang.fleet.engines.engine_link import EngineLink, EngineState
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.messages.graph_ids import graph_id_of
from tests.support.programs.graph_ear import Ear
from tests.support.servers.scripted_engines import ScriptedEngine, ScriptedLauncher
from tests.support.waiting import wait_until

GRAPH = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=8))))
USAGE = Usage(1, 0, 2)
Launchers = dict[str, ScriptedLauncher]


@pytest.fixture
def launchers(monkeypatch: pytest.MonkeyPatch) -> Launchers:
    monkeypatch.setattr(engine_link, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.01)
    return {name: ScriptedLauncher(name) for name in ("a", "b")}


@pytest.fixture
def target(launchers: Launchers) -> Iterator[EngineTarget]:
    with EngineTarget(launchers.values(), RuntimeConfig()) as target:
        wait_until(lambda: all(target._pool.is_open(name) for name in launchers))
        yield target


def holder(launchers: Launchers, count: int = 1) -> ScriptedEngine:
    """The running engine where so many graphs were opened."""

    def found() -> list[ScriptedEngine]:
        engines = [launcher.engines[-1] for launcher in launchers.values()]
        return [engine for engine in engines if not engine.was_killed and len(engine.opened()) == count]

    wait_until(lambda: len(found()) == 1)
    return found()[0]


def test_a_graph_goes_on_at_the_other_engine_and_late_events_are_dropped(
    target: EngineTarget, launchers: Launchers
) -> None:
    states: list[EngineState] = []
    target.watch(states.append)
    ear = Ear()
    target.submit(GRAPH, ear, RunOptions(seed=3))
    first = holder(launchers)
    (opened,) = first.opened()
    first.tell(opened["s"], TextDelta(opened["s"], 1, 0, "one", (5, 6)))
    wait_until(lambda: ear.num_tokens == 2)
    first.kill()
    second = next(each.engines[0] for each in launchers.values() if each.engines[0] is not first)
    wait_until(lambda: len(second.opened()) == 1)
    (again,) = second.opened()
    assert (again["seed"], again["continue_from"]) == (3, [{"n": 1, "ids": [[5, 6]]}])
    assert again["s"] != opened["s"]
    second.tell(opened["s"], TextDelta(opened["s"], 1, 0, "late", (9,)))
    second.tell(again["s"], TextDelta(again["s"], 1, 0, " two", (7,)))
    second.tell(again["s"], GraphFinished(again["s"], {"x": "one two"}, USAGE))
    assert ear.values() == {"x": "one two"}
    assert ear.text == {(1, 0): "one two"}
    assert {event.graph_id for event in ear.events} == {ear.events[0].graph_id}
    assert states == [], "one engine was ready all the time"


@pytest.mark.parametrize(
    ("end", "expected"), [(ScriptedEngine.crash, FATAL_STRIKES // CRASH), (ScriptedEngine.kill, FATAL_STRIKES // KILL)]
)
def test_a_graph_whose_engines_end_again_and_again_fails_alone(
    end: Callable[[ScriptedEngine], None], expected: int, target: EngineTarget, launchers: Launchers
) -> None:
    good, bad = Ear(), Ear()
    target.submit(GRAPH, good, RunOptions(seed=1))
    target.submit(GRAPH, bad, RunOptions(seed=2))
    num_deaths = 0
    while not bad.finals and num_deaths < 10:
        for launcher in launchers.values():
            engine = launcher.engines[-1]
            for opened in () if engine.was_killed else engine.opened():
                if opened["seed"] == 1:
                    engine.tell(opened["s"], TextDelta(opened["s"], 1, 0, "", ()))
                else:
                    num_deaths += 1
                    end(engine)
                    break
    final = bad.end()
    assert isinstance(final, GraphFailed)
    assert isinstance(final.error, InternalError)
    assert expected <= num_deaths <= expected + 1  # one more if the other graph was not proven either
    assert not good.finals
    wait_until(
        lambda: any(
            opened["seed"] == 1 and not launcher.engines[-1].was_killed
            for launcher in launchers.values()
            for opened in launcher.engines[-1].opened()
        )
    )


def work_on(engine: ScriptedEngine, *stream_ids: int) -> None:
    """Let the engine's record say that it computes a step with rows of these graphs."""
    engine.work.begin_turn()
    engine.work.begin_step([graph_id_of(1, stream_id) for stream_id in stream_ids])


def test_the_graphs_of_a_step_that_crashed_are_opened_one_after_the_other(
    target: EngineTarget, launchers: Launchers
) -> None:
    ears = [Ear() for _ in range(3)]
    for seed, ear in enumerate(ears):
        target.submit(GRAPH, ear, RunOptions(seed=seed))
    first = holder(launchers, 3)
    work_on(first, *(opened["s"] for opened in first.opened()))
    first.crash()
    last: dict[int, tuple[int, ScriptedEngine]] = {}  # of each graph: its last opening after the crash

    def note_openings() -> int:
        for launcher in launchers.values():
            for engine in launcher.engines:
                for opened in () if engine is first else engine.opened():
                    last[opened["seed"]] = max(
                        last.get(opened["seed"], (0, engine)), (opened["s"], engine), key=first_of
                    )
        return len(last)

    def first_of(pair: tuple[int, ScriptedEngine]) -> int:
        return pair[0]

    for count, seed in enumerate((2, 1, 0), 1):  # the newest first
        wait_until(lambda: note_openings() == count)  # noqa: B023
        stream_id, engine = last[seed]
        engine.tell(stream_id, TextDelta(stream_id, 1, 0, "x", (4,)))
    wait_until(lambda: all(ear.num_tokens == 1 for ear in ears))
    wait_until(lambda: sum(graph.engine is not None for graph in target._pool.graphs.values()) == 3)
    for graph in list(target._pool.graphs.values()):
        assert graph.engine is not None
        engine = launchers[graph.engine.name].engines[-1]
        engine.tell(graph.stream_id, GraphFinished(graph.stream_id, {"x": "x"}, USAGE))
    assert [ear.values() for ear in ears] == [{"x": "x"}] * 3
    assert sum(launcher.engines[0].was_killed for launcher in launchers.values()) == 1


@pytest.mark.parametrize("fault", ["crash", "memory", "stall"])
def test_a_graph_that_its_engines_name_ends_two_of_them_at_most_and_says_what_happened(
    fault: str, target: EngineTarget, launchers: Launchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ears, bad = [Ear() for _ in range(4)], Ear()
    for ear in ears:
        target.submit(GRAPH, ear, RunOptions(seed=1))
    engine = holder(launchers, 4)
    for opened in engine.opened():
        engine.tell(opened["s"], TextDelta(opened["s"], 1, 0, "x", (4,)))
    target.submit(GRAPH, bad, RunOptions(seed=2, principal=Principal("ana")))
    num_deaths = 0

    def fail_engine() -> bool:
        nonlocal num_deaths
        for launcher in launchers.values():
            engine = launcher.engines[-1]
            stream_id = next((opened["s"] for opened in engine.opened() if opened["seed"] == 2), None)
            if stream_id is None or engine.was_killed:
                continue
            engine.work.begin_turn()
            engine.work.begin(graph_id_of(1, stream_id))
            num_deaths += 1
            if fault == "stall":
                engine.send({"t": "stalled", "s": stream_id, "n": 1, "seconds": 10.0, "function": "f", "is_held": True})
                wait_until(lambda: engine.was_killed)  # noqa: B023
            elif fault == "memory":
                kills.append(1)
                engine.kill()
            else:
                engine.crash()
            return True
        return False

    kills: list[int] = []
    monkeypatch.setattr(engine_link, "count_oom_kills", lambda: len(kills))
    while not bad.finals:
        wait_until(lambda: fail_engine() or bool(bad.finals))
    end = bad.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, InternalError)
    expected = {
        "crash": "its engine's process ended with code 3, again while it worked on this graph",
        "memory": "its engine's process ran out of memory, again while it worked on this graph",
        "stall": "the graph held a thread of its engine, and the engine was replaced",
    }
    assert expected[fault] in end.error.message
    assert num_deaths == (1 if fault == "stall" else 2)
    assert not any(ear.finals for ear in ears)
    assert sum(link._num_deaths for link in target._links.values()) == 0, "nobody waits for what one graph did"


def test_graphs_that_wait_for_long_while_their_engines_work_are_not_suspected(
    target: EngineTarget, launchers: Launchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_suspects, "HARMLESS_S", -1.0)  # every engine has given a sign of life that much later
    ear = Ear()
    run = target.submit(GRAPH, ear, RunOptions(credit=0))
    for _ in range(FATAL_STRIKES):
        holder(launchers).crash()
    holder(launchers)
    assert target._pool.strikes(run.graph_id) == 0
    assert not ear.finals


def test_a_suspect_is_harmless_only_if_its_engine_works_after_it_was_opened(
    target: EngineTarget, launchers: Launchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_suspects, "PROBE_S", 0.0)
    monkeypatch.setattr(engine_target, "BEAT_S", 0.001)
    ear = Ear()
    run = target.submit(GRAPH, ear)
    for launcher in launchers.values():
        launcher.beats = launcher.engines[0].beats = False  # as with an engine thread that the graph holds
    for _ in range(FATAL_STRIKES // CRASH):
        engine = holder(launchers)
        time.sleep(0.05)  # several beats
        engine.crash()
    end = ear.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, InternalError)
    assert run.graph_id not in target._pool.graphs


def test_a_listener_that_raises_cancels_its_graph_and_no_other(target: EngineTarget, launchers: Launchers) -> None:
    def raises(event: object) -> None:
        raise ValueError("a listener's fault")

    target.submit(GRAPH, raises)
    engine = holder(launchers)
    (opened,) = engine.opened()
    engine.tell(opened["s"], TextDelta(opened["s"], 1, 0, "x", (4,)))
    wait_until(lambda: [message["t"] for message in engine.received] == ["open", "cancel"])
    engine.tell(opened["s"], GraphFinished(opened["s"], {"x": "x"}, USAGE))
    ear = Ear()
    target.submit(GRAPH, ear)
    (_, second) = holder(launchers, 2).opened()
    engine.tell(second["s"], GraphFinished(second["s"], {"x": "y"}, USAGE))
    assert ear.values() == {"x": "y"}


def test_a_cancelled_graph_is_not_opened_again_when_its_engine_ends(target: EngineTarget, launchers: Launchers) -> None:
    ear, other = Ear(), Ear()
    run = target.submit(GRAPH, ear, RunOptions(credit=0))
    engine = holder(launchers)
    run.cancel()
    engine.kill()
    end = ear.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, AbortedError)
    target.submit(GRAPH, other, RunOptions(seed=9))
    wait_until(lambda: any(each.engines[-1].opened() for each in launchers.values() if each.engines[-1] is not engine))
    engines = [each for launcher in launchers.values() for each in launcher.engines if each is not engine]
    opened = [message for each in engines for message in each.opened()]
    assert [each["seed"] for each in opened] == [9]
    assert len(ear.finals) == 1


def test_silent_engines_keep_no_graph_beyond_its_deadline_or_its_end(
    target: EngineTarget, launchers: Launchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_pool, "GRACE_S", 0.0)
    late, cancelled, other = Ear(), Ear(), Ear()
    target.submit(GRAPH, late, RunOptions(deadline_s=0.001))
    target.submit(GRAPH, cancelled).cancel()
    target.submit(GRAPH, other)
    for ear, kind in ((late, DeadlineError), (cancelled, AbortedError)):
        end = ear.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, kind)
    engine = holder(launchers, 3)
    wait_until(lambda: sum(message["t"] == "cancel" for message in engine.received) >= 2)
    assert not other.finals


def test_a_call_goes_to_another_engine_when_one_ends_meanwhile(target: EngineTarget, launchers: Launchers) -> None:
    first, second = (launcher.engines[0] for launcher in launchers.values())
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(target.text_service.decode([1])))
    thread.start()
    wait_until(lambda: len(first.received) == 1)
    first.kill()
    wait_until(lambda: len(second.received) == 1)
    second.send({"t": "reply", "q": second.received[0]["q"], "value": "a"})
    thread.join(60)
    assert found == ["a"]


def test_all_graphs_end_when_no_engine_can_be_started_any_more(
    monkeypatch: pytest.MonkeyPatch, launchers: Launchers
) -> None:
    launcher = launchers["a"]
    with EngineTarget([launcher], RuntimeConfig()) as target:
        states: list[EngineState] = []
        target.watch(states.append)
        ear = Ear()
        target.submit(GRAPH, ear)
        launcher._num_refused = 99
        launcher.engines[0].kill()
        end = ear.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, EngineDeadError)
        assert "there is no place" in end.error.message
        assert states == [EngineState.RESTARTING, EngineState.DEAD]
        assert not target.is_alive
        with pytest.raises(EngineDeadError, match=r"the engine has stopped: .*there is no place"):
            target.submit(GRAPH, Ear())


def test_engines_that_are_just_being_launched_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As actors of a cluster without nodes, which Ray looks for in minutes: a server must end before its supervisor kills it."""
    monkeypatch.setattr(engine_target, "JOIN_TIMEOUT_S", 0.3)
    may_go_on, waits = threading.Event(), list[float]()

    class LookingLauncher(ScriptedLauncher):
        def launch(self) -> ScriptedEngine:
            if self.name != "a":
                may_go_on.wait(60)
            return super().launch()

    original = EngineLink.join

    def join(link: EngineLink, timeout_s: float) -> None:
        started = time.monotonic()
        original(link, timeout_s)
        waits.append(time.monotonic() - started if link.name != "a" else 0.0)
        if link.name != "a":
            assert timeout_s <= 0.3 - sum(waits[:-1]) + 0.01

    monkeypatch.setattr(EngineLink, "join", join)
    target = EngineTarget([LookingLauncher(name) for name in ("a", "b", "c", "d")]).start()
    target.close()
    may_go_on.set()
    assert len(waits) == 4
