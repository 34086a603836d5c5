"""The connection to one engine, with engines that do as the test says: starts, ends, calls and silence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, EngineDeadError, ParameterError, RtlangError
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.fleet.engines import engine_link
from rtlang.fleet.engines.engine_end import EngineEnd
from rtlang.fleet.engines.engine_link import HELD_BEATS, MAX_FAILED_STARTS, EngineLink, EngineState, ask_any
from rtlang.fleet.engines.work_record import StallWatch, ThreadClock
from rtlang.fleet.messages.frames import Message
from rtlang.fleet.messages.graph_ids import graph_id_of
from rtlang.protocol.event_codec import error_facts_to_wire
from rtlang.work.fair_executor import FairExecutor
from tests.support.servers.scripted_engines import ScriptedEngine, ScriptedLauncher
from tests.support.waiting import wait_until


class Owner:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.messages: list[Message] = []
        self.ends: list[EngineEnd] = []
        self.blames_graph = False

    def on_ready(self, link: EngineLink) -> None:
        self.heard.append("ready")

    def on_message(self, link: EngineLink, message: Message) -> None:
        self.messages.append(message)
        if message["t"] == "bad":
            raise ValueError("a message that the owner cannot read")

    def on_lost(self, link: EngineLink) -> None:
        assert link.is_ready, "its owner knows before its state says so"

    def on_death(self, link: EngineLink, *, was_ready: bool, end: EngineEnd) -> bool:
        self.heard.append("failed" if not was_ready else "crashed" if end.has_crashed else "died")
        self.ends.append(end)
        return self.blames_graph

    def on_end(self, link: EngineLink) -> None:
        self.heard.append("end")


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> Owner:
    monkeypatch.setattr(engine_link, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.01)
    return Owner()


@pytest.fixture
def links() -> Iterator[list[EngineLink]]:
    links: list[EngineLink] = []
    yield links
    for link in links:
        link.close()
        link.join()


def begun(links: list[EngineLink], launcher: ScriptedLauncher, owner: Owner) -> EngineLink:
    link = EngineLink(launcher, RuntimeConfig(), owner)
    links.append(link)
    link.start()
    return link


def test_an_engine_that_ends_is_followed_by_another_one(links: list[EngineLink], owner: Owner) -> None:
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    assert (link.pid, link.ready["vocab_size"]) == (7, 100)
    launcher.engines[0].send({"t": "bad"})
    launcher.engines[0].send({"t": "good"})
    wait_until(lambda: [message["t"] for message in owner.messages] == ["bad", "good"])
    link.put({"t": "hello"})
    wait_until(lambda: launcher.engines[0].received == [{"t": "hello"}])
    launcher.engines[0].kill()
    wait_until(lambda: owner.heard == ["ready", "died", "ready"])
    launcher.engines[1].crash()
    wait_until(lambda: owner.heard[3:] == ["crashed", "ready"])
    launcher.engines[2].leave()
    wait_until(lambda: owner.heard[5:] == ["died", "ready"])  # with code 0: its connection was cut
    assert link.num_restarts == 3
    link.close()
    link.join()
    assert owner.heard[-1] == "end"
    assert link.state is EngineState.DEAD
    assert link.num_restarts == 3, "it was asked to end"
    link.put({"t": "dropped"})


def test_launches_and_loads_that_fail_are_repeated_until_the_link_gives_up(
    links: list[EngineLink], owner: Owner
) -> None:
    link = begun(links, ScriptedLauncher(num_refused=1, num_failed=MAX_FAILED_STARTS - 2), owner)
    wait_until(lambda: link.is_ready)
    assert owner.heard == ["failed"] * (MAX_FAILED_STARTS - 1) + ["ready"]
    assert (link.num_failed, link.error) == (0, None)
    for launcher, text in ((ScriptedLauncher(num_refused=99), "no place"), (ScriptedLauncher(num_failed=99), "broken")):
        other = Owner()
        link = begun(links, launcher, other)
        wait_until(lambda heard=other.heard: "end" in heard)
        assert other.heard == ["failed"] * MAX_FAILED_STARTS + ["end"]
        assert isinstance(link.error, RtlangError)
        assert text in link.error.message


def test_calls_are_answered_fail_or_end_with_the_engine(links: list[EngineLink], owner: Owner) -> None:
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    engine = launcher.engines[0]
    calls = [link.call("f", [index]) for index in range(3)]
    wait_until(lambda: len(engine.received) == 3)
    assert [(message["m"], message["a"]) for message in engine.received] == [("f", [0]), ("f", [1]), ("f", [2])]
    numbers = [message["q"] for message in engine.received]
    engine.send({"t": "reply", "q": numbers[1], "value": "b"})
    engine.send({"t": "reply", "q": numbers[0]} | error_facts_to_wire(ParameterError("x", 1, "expected 2")))
    engine.send({"t": "reply", "q": 99, "value": "of nobody"})
    assert calls[1].result(60) == "b"
    with pytest.raises(ParameterError, match="expected 2"):
        calls[0].result(60)
    with pytest.raises(EngineDeadError, match="did not answer"):
        link.ask("g", None, timeout_s=0.01)
    engine.kill()
    with pytest.raises(EngineDeadError, match="has ended"):
        calls[2].result(60)
    link.close()
    link.join()
    with pytest.raises(EngineDeadError, match="not running"):
        link.call("f", [])


def test_a_silent_engine_is_killed(links: list[EngineLink], owner: Owner) -> None:
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    first = launcher.engines[0]
    link.beat(60.0)
    first.beats = False
    link.beat(60.0)
    assert not first.was_killed
    wait_until(lambda: (link.beat(0.02), first.was_killed)[1])
    wait_until(lambda: owner.heard == ["ready", "crashed", "ready"])


def stalling(links: list[EngineLink], owner: Owner, stack: str) -> tuple[EngineLink, ScriptedEngine]:
    """An engine whose thread works for the graph of stream 3 of its connection, and writes this stack when it is asked."""
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    engine = launcher.engines[0]
    engine.stack = stack
    engine.work.begin_turn()
    engine.work.begin(graph_id_of(1, 3))
    for _ in range(HELD_BEATS):
        link.beat(60.0)
    assert not engine.was_killed
    return link, engine


def test_an_engine_whose_thread_a_graph_holds_is_killed_for_that_graph(links: list[EngineLink], owner: Owner) -> None:
    stack = f'Thread 0x{threading.get_ident():x} (most recent call first):\n  File "a.py", line 3 in search\n'
    link, engine = stalling(links, owner, stack)
    link.beat(60.0)
    wait_until(lambda: owner.heard == ["ready", "crashed", "ready"])
    assert engine.was_killed
    (end,) = owner.ends
    assert (end.held_by, end.at_work, end.function) == (3, {3}, "search (a.py:3)")


def test_a_graph_that_another_thread_holds_up_is_not_to_blame(
    links: list[EngineLink], owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ThreadClock, "is_idle", lambda clock, process, thread: True)
    monkeypatch.setattr(StallWatch, "is_held_up", property(lambda watch: watch.num_same >= HELD_BEATS))
    stack = f'Thread 0x{threading.get_ident():x} (most recent call first):\n  File "a.py", line 3 in search\n'
    link, engine = stalling(links, owner, stack)
    link.beat(60.0)
    wait_until(lambda: owner.heard == ["ready", "crashed", "ready"])
    assert engine.was_killed
    (end,) = owner.ends
    assert end.held_by is None


def test_an_engine_that_goes_on_or_is_suspended_is_not_killed_for_a_graph(
    links: list[EngineLink], owner: Owner
) -> None:
    link, engine = stalling(links, owner, stack="")  # a suspended process writes none
    link.beat(60.0)
    engine.stack = "late"
    engine.work.begin_turn()
    engine.work.begin(graph_id_of(1, 3))
    for _ in range(HELD_BEATS):
        link.beat(60.0)
    engine.work.rest()
    for _ in range(3 * HELD_BEATS):
        link.beat(60.0)
    engine.work.begin_turn()
    engine.work.begin_step([graph_id_of(1, 3)])
    for _ in range(3 * HELD_BEATS):
        link.beat(60.0)
    assert not engine.was_killed


def test_the_engines_own_monitor_may_give_a_graph_up(links: list[EngineLink], owner: Owner) -> None:
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    stall = {"t": "stalled", "s": 5, "n": 2, "seconds": 8.0, "function": "f (a.py:1)", "is_held": False}
    launcher.engines[0].send(stall)
    wait_until(lambda: len(owner.messages) == 1)
    assert not launcher.engines[0].was_killed
    launcher.engines[0].send(stall | {"seconds": 10.0, "is_held": True})
    wait_until(lambda: owner.heard == ["ready", "crashed", "ready"])
    assert owner.ends[0].held_by == 5


def test_only_ends_that_no_graph_caused_are_followed_by_a_growing_pause(
    links: list[EngineLink], owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    owner.blames_graph = True
    for index in range(6):
        wait_until(lambda: len(launcher.engines) == index + 1 and link.is_ready)  # noqa: B023
        launcher.engines[index].crash()
    wait_until(lambda: len(launcher.engines) == 7 and link.is_ready)
    assert sum(record.message.endswith("; starting another") for record in caplog.records) == 6
    assert link._num_deaths == 0
    owner.blames_graph = False
    launcher.engines[6].crash()
    wait_until(lambda: len(launcher.engines) == 8 and link.is_ready)
    assert link._num_deaths == 1
    assert "ended with code 3; starting another in 0.001 s" in caplog.text


def test_a_process_that_outlives_its_connection_is_killed(
    links: list[EngineLink], owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ScriptedLauncher(ends=False)
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    link.close()
    link.join()
    assert launcher.engines[0].was_killed


def test_a_link_that_is_closed_while_its_engine_loads_ends(links: list[EngineLink], owner: Owner) -> None:
    launcher = ScriptedLauncher(starts=False)
    link = begun(links, launcher, owner)
    wait_until(lambda: len(launcher.engines) == 1)
    assert link.state is EngineState.LOADING
    link.close()
    link.join()
    assert owner.heard == ["failed", "end"]


def test_a_call_that_any_engine_can_answer_goes_to_another_one_if_the_first_is_silent(
    links: list[EngineLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_link, "PATIENCE_S", 0.01)
    launchers = [ScriptedLauncher("silent"), ScriptedLauncher("lively")]
    silent, lively = (begun(links, launcher, Owner()) for launcher in launchers)
    wait_until(lambda: silent.is_ready and lively.is_ready)
    silent.last_beat = lively.last_beat + 1.0  # it was silent only since then
    first, second = (launcher.engines[0] for launcher in launchers)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(ask_any([silent, lively], "f", [1])))
    thread.start()
    wait_until(lambda: len(second.received) == 1)
    second.send({"t": "reply", "q": second.received[0]["q"], "value": "b"})
    thread.join(60)
    assert found == ["b"]
    wait_until(lambda: len(first.received) == 2)
    assert first.received[1] == {"t": "drop", "q": first.received[0]["q"]}, "it need not answer any more"
    silent.last_beat = lively.last_beat - 1.0
    thread = threading.Thread(target=lambda: found.append(ask_any([silent, lively], "f", [2])))
    thread.start()
    wait_until(lambda: len(second.received) == 2)
    second.send({"t": "reply", "q": second.received[1]["q"], "value": "c"})
    thread.join(60)
    assert found == ["b", "c"]
    with pytest.raises(EngineDeadError, match=r"did not answer within 0\.05 s"):
        ask_any([silent, lively], "g", None, 0.05)
    with pytest.raises(EngineDeadError, match="not running"):
        ask_any([], "g", None)


class AnsweringLink:
    """A link that answers with its name."""

    is_ready, last_beat = True, 0.0

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, *_: object, **options: object) -> Future[str]:
        found: Future[str] = Future()
        found.set_result(self.name)
        return found


def test_calls_near_one_thing_go_to_one_engine_as_long_as_it_is_there() -> None:
    names = [f"engine-{number}" for number in range(4)]
    keys = [bytes([number]) for number in range(100)]

    def asked(names: list[str]) -> list[str]:
        links: Any = [AnsweringLink(name) for name in names]
        return [ask_any(links, "chat_prompt", [], near=key) for key in keys]

    found = asked(names)
    assert asked(names[::-1]) == found
    assert all(found.count(name) > 10 for name in names)
    fewer = asked(names[1:])
    assert [old for old, new in zip(found, fewer, strict=True) if old != new] == [names[0]] * found.count(names[0])


def test_a_call_names_its_principal_and_ends_with_the_job_that_waits_for_it(
    links: list[EngineLink], owner: Owner
) -> None:
    launcher = ScriptedLauncher()
    link = begun(links, launcher, owner)
    wait_until(lambda: link.is_ready)
    engine, pool = launcher.engines[0], FairExecutor(1, "test")
    ana = Principal("ana", 2.0, client="http 1", limits=PrincipalLimits(max_places=3))
    asking = pool.submit(lambda: ask_any([link], "encode", ["x"], principal=ana, price=1.5))
    wait_until(lambda: len(engine.received) == 1)
    [message] = engine.received
    assert Principal.from_plain(message["principal"]) == ana.in_engine()
    assert message["price"] == 1.5
    asking.cancel()  # its client has left
    with pytest.raises(AbortedError):
        asking.result(60)
    wait_until(lambda: engine.received[1:] == [{"t": "drop", "q": message["q"]}])
    pool.shutdown()
