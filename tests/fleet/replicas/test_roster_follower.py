"""A fleet follows its roster: it adds what is new, drains what is to go, and tries again what gave up."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from rtlang.contract.errors import EngineDeadError, ParameterError
from rtlang.contract.service.fleet_report import FleetReport, ReplicaReport
from rtlang.fleet.engines.launcher import Launcher, ProcessLauncher
from rtlang.fleet.replicas.fleet_plan import FleetPlan, Roster
from rtlang.fleet.replicas.roster_follower import LocalRoster, RosterFollower
from rtlang.fleet.replicas.scaling import Scaling
from tests.support.waiting import wait_until

NEW = ReplicaReport("", "loading", "any", 0, 0, 0, 0, 0, 0, 0, 0, 0)


class ScriptedFleet:
    """A fleet whose replicas are as the test says."""

    def __init__(self) -> None:
        self.by_name: dict[str, ReplicaReport] = {}
        self.stopped: list[str] = []
        self.is_asked, self.may_leave, self.is_left = threading.Event(), threading.Event(), threading.Event()

    def add(self, launcher: Launcher) -> str:
        assert launcher.name not in self.by_name
        self.by_name[launcher.name] = replace(NEW, name=launcher.name)
        return launcher.name

    def remove(self, name: str, *, drain: bool = True) -> None:
        assert drain
        if len(self.by_name) == 1:
            raise ParameterError("name", name, "expected a replica that is not the only one")
        self.set(name, state="draining")
        self.is_asked.set()
        assert self.may_leave.wait(20)
        del self.by_name[name]
        self.is_left.set()

    def set(self, name: str, **changes: object) -> None:
        self.by_name[name] = replace(self.by_name[name], **changes)  # type: ignore[arg-type]

    def stop(self, reason: str) -> None:
        self.stopped.append(reason)

    def states(self) -> dict[str, str]:
        return {name: each.state for name, each in self.by_name.items()}

    def fleet_report(self) -> FleetReport:
        return FleetReport("m", 0, 0, tuple(self.by_name.values()))


class ScriptedSource:
    """Says what the test says, and notes what it hears."""

    def __init__(self) -> None:
        self.roster: Roster | None = Roster((), ())
        self.num_left = 0
        self.heard: list[tuple[tuple[str, ...], tuple[str, ...], dict[str, float]]] = []

    def hear(self, held: tuple[str, ...], ready: tuple[str, ...], waiting: dict[str, float]) -> Roster:
        self.heard.append((held, ready, waiting))
        if self.roster is None:
            raise EngineDeadError("away")
        return self.roster

    def leave(self) -> None:
        assert self.roster is not None
        assert self.roster.is_over
        self.num_left += 1


def test_replicas_are_added_drained_and_reported() -> None:
    fleet, source = ScriptedFleet(), ScriptedSource()
    follower = RosterFollower(fleet, source, ProcessLauncher)
    source.roster = Roster(("r1", "r2"), ())
    follower.follow_once()
    assert fleet.states() == {"r1": "loading", "r2": "loading"}
    fleet.set("r1", state="ready", num_waiting_tokens=7)
    source.roster = Roster(("r2",), ("r1",))
    follower.follow_once()
    assert source.heard[-1] == (("r1", "r2"), ("r1",), {"r1": 7.0, "r2": 0.0})
    assert fleet.is_asked.wait(20)
    assert fleet.states() == {"r1": "draining", "r2": "loading"}
    follower.follow_once()
    assert source.heard[-1][0] == ("r1", "r2")  # it has not been left yet
    fleet.may_leave.set()
    assert fleet.is_left.wait(20)
    follower.follow_once()
    assert source.heard[-1][0] == ("r2",)
    assert fleet.states() == {"r2": "loading"}


def test_a_replica_that_gave_up_is_tried_again() -> None:
    fleet, source = ScriptedFleet(), ScriptedSource()
    fleet.may_leave.set()
    follower = RosterFollower(fleet, source, ProcessLauncher)
    source.roster = Roster(("r1", "r2"), ())
    follower.follow_once()
    fleet.set("r1", state="dead")
    follower.follow_once()
    assert fleet.is_left.wait(20)
    follower.follow_once()
    assert fleet.states() == {"r2": "loading", "r1": "loading"}


def test_replicas_stay_while_nobody_knows_the_roster(caplog: pytest.LogCaptureFixture) -> None:
    fleet, source = ScriptedFleet(), ScriptedSource()
    follower = RosterFollower(fleet, source, ProcessLauncher)
    source.roster = Roster(("r1",), ())
    follower.follow_once()
    source.roster = None
    follower.follow_once()
    follower.follow_once()
    assert fleet.states() == {"r1": "loading"}
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "the roster of the fleet cannot be read"
    ]


def test_a_fleet_of_one_process_grows_and_shrinks_with_its_queue() -> None:
    now = [0.0]
    scaling = Scaling(1, 3, queue_tokens=100.0, up_after_s=2.0, down_after_s=5.0)
    fleet, source = ScriptedFleet(), LocalRoster(FleetPlan(scaling, 0.0), lambda: now[0])
    fleet.may_leave.set()
    follower = RosterFollower(fleet, source, ProcessLauncher)
    sizes = []
    for step in range(40):
        now[0] = float(step)
        follower.follow_once()
        for name in list(follower._leaving):
            wait_until(lambda name=name: name not in fleet.by_name)  # type: ignore[misc]
        for name, state in fleet.states().items():
            if state != "draining":
                fleet.set(name, state="ready", num_waiting_tokens=500 // len(fleet.by_name) if step < 15 else 0)
        sizes.append(len(fleet.by_name))
    assert sizes[:2] == [1, 1]
    assert max(sizes) == 3
    assert sizes[-1] == 1


def test_a_paused_follower_takes_no_steps_and_can_be_closed() -> None:
    fleet, source = ScriptedFleet(), ScriptedSource()
    follower = RosterFollower(fleet, source, ProcessLauncher, interval_s=0.001)
    with follower.paused():
        follower.start()
        follower.close()
        assert not follower._thread.is_alive(), "a server that is stopped in a rolling update does not wait for it"
        follower.follow_once()
        assert not source.heard
    follower.follow_once()
    assert len(source.heard) == 1


def test_a_follower_that_is_started_twice_follows_once_until_it_is_closed() -> None:
    fleet, source = ScriptedFleet(), ScriptedSource()
    source.roster = Roster(("r1",), ())
    follower = RosterFollower(fleet, source, ProcessLauncher, interval_s=0.001)
    follower.start()
    follower.start()
    wait_until(lambda: len(source.heard) > 2)
    follower.close()
    num_heard = len(source.heard)
    follower.start()
    assert fleet.states() == {"r1": "loading"}
    assert len(source.heard) == num_heard


def test_a_fleet_that_was_stopped_ends_and_is_left() -> None:
    fleet, source = ScriptedFleet(), ScriptedSource()
    follower = RosterFollower(fleet, source, ProcessLauncher, interval_s=0.001)
    source.roster = Roster(("r1",), (), is_over=True)
    follower.start()
    wait_until(lambda: not follower._thread.is_alive())
    assert fleet.stopped == ["the fleet was stopped"]
    assert source.num_left == 1
    assert not fleet.by_name, "no replica is used any more"
    follower.close()
