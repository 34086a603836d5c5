"""Replicas come and go by plan: none ends while a frontend uses it, and a fleet that nobody uses ends."""

from __future__ import annotations

import math
from random import Random

import pytest

from rtlang.fleet.replicas.fleet_plan import LEAVE_TIMEOUT_S, Changes, FleetPlan, Roster
from rtlang.fleet.replicas.scaling import Scaling
from tests.support.long_tests import sized

TWO = Scaling(2, 2)


class Frontend:
    """Follows the roster as a fleet would: replicas are ready and left as the test says."""

    def __init__(self, plan: FleetPlan, name: str) -> None:
        self.plan, self.name = plan, name
        self.held: set[str] = set()
        self.ready: set[str] = set()
        self.waiting: dict[str, float] = {}

    def hear(self, now: float, *, leaves: bool = True, gets_ready: bool = True) -> Roster:
        roster = self.plan.hear(self.name, now, held=self.held, ready=self.ready, waiting=self.waiting)
        self.held |= set(roster.used)
        if leaves:
            self.held -= set(roster.draining)
        if gets_ready:
            self.ready = set(self.held)
        self.ready &= self.held
        return roster


def plan_of_two() -> tuple[FleetPlan, Frontend]:
    plan = FleetPlan(TWO, 0.0)
    assert plan.advance(0.0) == Changes(("r1", "r2"))
    frontend = Frontend(plan, "a")
    assert frontend.hear(0.0) == Roster(("r1", "r2"), ())
    frontend.hear(0.5)
    return plan, frontend


def test_the_first_replicas_exist_before_any_frontend() -> None:
    plan = FleetPlan(Scaling(1, 4), 0.0, num_replicas=3)
    assert plan.advance(0.0).created == ("r1", "r2", "r3")
    assert plan.advance(1.0) == Changes()


def test_a_plan_that_begins_again_keeps_the_replicas() -> None:
    plan = FleetPlan(Scaling(1, 3), 0.0, num_replicas=3, names=["r4", "r7"])
    assert plan.advance(0.0).created == ("r8",)
    assert plan.roster == Roster(("r4", "r7", "r8"), ())


def test_a_rolling_update_starts_a_new_replica_before_it_gives_up_an_old_one() -> None:
    plan, frontend = plan_of_two()
    plan.replace_all()
    assert plan.advance(1.0) == Changes(("r3",))
    assert plan.advance(2.0) == Changes()  # it loads its model
    frontend.hear(2.0)
    frontend.hear(2.5)
    assert plan.advance(3.0) == Changes()
    assert plan.roster == Roster(("r2", "r3"), ("r1",))
    assert plan.advance(3.5) == Changes()  # the frontend does not know yet
    frontend.hear(4.0, leaves=False)
    assert plan.advance(4.5) == Changes()  # it still uses it
    frontend.hear(5.0)
    frontend.hear(5.5)
    assert plan.advance(6.0).ended == ("r1",)
    now = 7.0
    ended: list[str] = []
    while plan.is_replacing or plan.roster.draining:
        ended += plan.advance(now).ended
        frontend.hear(now)
        assert len(plan.roster.used) >= 2
        now += 1.0
    assert (plan.roster.used, ended) == (("r3", "r4"), ["r2"])


def test_a_rolling_update_without_room_gives_up_an_old_replica_first() -> None:
    plan, frontend = plan_of_two()
    plan.replace_all()
    created: list[str] = []
    most = 0
    for now in range(1, 30):
        created += plan.advance(float(now), has_room=False).created
        frontend.hear(now + 0.5)
        most = max(most, len(plan.roster.used) + len(plan.roster.draining))
    assert (created, most, plan.is_replacing) == (["r3", "r4"], 2, False)


def test_a_single_replica_is_replaced_without_a_gap_even_where_there_is_no_room() -> None:
    plan = FleetPlan(Scaling(1, 1), 0.0)
    plan.advance(0.0)
    plan.replace_all()
    frontend = Frontend(plan, "a")
    frontend.hear(0.5)
    frontend.hear(0.6)
    assert plan.advance(1.0, has_room=False).created == ("r2",)


def test_the_replica_with_the_least_work_is_given_up() -> None:
    plan = FleetPlan(Scaling(1, 3, queue_tokens=1000.0), 0.0, num_replicas=3)
    plan.advance(0.0)
    frontend = Frontend(plan, "a")
    frontend.waiting = {"r1": 300.0, "r2": 100.0, "r3": 200.0}
    for now in range(1, 70):
        frontend.hear(float(now))
        plan.advance(float(now))
    assert "r2" not in plan.roster.used
    assert len(plan.roster.used) == 2


def test_work_that_several_frontends_report_counts_once() -> None:
    plan = FleetPlan(Scaling(2, 8, queue_tokens=1000.0), 0.0)
    plan.advance(0.0)
    for name in "abc":
        frontend = Frontend(plan, name)
        frontend.waiting = {"r1": 900.0, "r2": 1000.0}
        for now in range(1, 9):
            frontend.hear(float(now))
    assert plan.waiting == {"r1": 900.0, "r2": 1000.0}
    assert plan.advance(20.0) == Changes()


def test_a_dead_frontend_holds_no_replica() -> None:
    plan, frontend = plan_of_two()
    dead = Frontend(plan, "dead")
    dead.hear(0.0)
    plan.replace_all()
    for now in range(1, 29):
        plan.advance(float(now))
        frontend.hear(now + 0.5)
    assert plan.roster.draining == ("r1",)
    ended: list[str] = []
    for now in range(31, 60):
        ended += plan.advance(float(now)).ended
        frontend.hear(now + 0.5)
    assert ended == ["r1", "r2"]


def test_new_bounds_change_the_size_at_once() -> None:
    plan, frontend = plan_of_two()
    plan.scale(Scaling(3, 4))
    assert plan.advance(1.0).created == ("r3",)
    frontend.hear(1.5)
    frontend.hear(1.6)
    plan.scale(Scaling(1, 1))
    assert plan.advance(2.0) == Changes()
    assert len(plan.roster.draining) == 2
    frontend.hear(2.5)
    frontend.hear(2.6)
    assert len(plan.advance(3.0).ended) == 2


def test_new_bounds_change_the_size_at_once_in_a_rolling_update_too() -> None:
    plan = FleetPlan(Scaling(5, 5), 0.0)
    plan.advance(0.0)
    frontend = Frontend(plan, "a")
    for now in (0.0, 0.5):
        frontend.hear(now)
    plan.replace_all()
    assert plan.advance(1.0).created == ("r6",)
    frontend.hear(1.5, gets_ready=False)  # it never gets ready
    plan.scale(Scaling(1, 2))
    plan.advance(2.0)
    assert len(plan.roster.used) <= 3  # one more than the bounds while a replica is replaced
    assert "r6" not in plan.roster.used
    plan.scale(Scaling(7, 8))
    plan.advance(3.0)
    assert len(plan.roster.used) >= 6


@pytest.mark.parametrize("absurd", [math.nan, math.inf, -math.inf])
def test_a_report_that_is_no_number_changes_nothing(absurd: float) -> None:
    plan = FleetPlan(Scaling(1, 8, queue_tokens=10.0, up_after_s=1.0), 0.0, num_replicas=2)
    plan.advance(0.0)
    frontend = Frontend(plan, "a")
    for step in range(5):
        frontend.waiting = {"r1": absurd, "r2": 15.0}
        frontend.hear(step)
        assert plan.advance(step) == Changes()
    assert plan.waiting == {"r2": 15.0}


def test_a_fleet_without_frontends_ends_after_its_time() -> None:
    plan, frontend = plan_of_two()
    plan.leave(frontend.name)
    assert plan.advance(600.4) == Changes()
    assert plan.advance(600.6) == Changes(ended=("r1", "r2"), is_over=True)


def test_a_fleet_that_is_to_stay_stays() -> None:
    plan = FleetPlan(TWO, 0.0, orphan_timeout_s=None)
    plan.advance(0.0)
    assert plan.advance(1e9) == Changes()


@pytest.mark.parametrize("seed", range(sized(20)))
def test_no_replica_ends_while_a_living_frontend_uses_it(seed: int) -> None:
    random = Random(seed)
    plan = FleetPlan(Scaling(1, 5, queue_tokens=100.0, up_after_s=1.0, down_after_s=3.0), 0.0)
    frontends = [Frontend(plan, name) for name in "ab"]
    exists: set[str] = set()
    for step in range(400):
        now = step * 0.5
        changes = plan.advance(now, has_room=random.random() < 0.7)
        exists |= set(changes.created)
        assert set(changes.ended) <= exists
        for frontend in frontends:
            assert not frontend.held & set(changes.ended)
        exists -= set(changes.ended)
        for frontend in frontends:
            frontend.waiting = {name: random.choice([0.0, 0.0, 500.0]) for name in frontend.ready}
            frontend.hear(now, leaves=random.random() < 0.5, gets_ready=random.random() < 0.5)
            assert frontend.held <= exists
        if random.random() < 0.02:
            plan.replace_all()
        assert set(plan.roster.used) | set(plan.roster.draining) == exists
        assert 1 <= len(plan.roster.used) <= 6


def test_a_fleet_that_is_stopped_ends_when_its_frontends_have_left() -> None:
    plan, frontend = plan_of_two()
    other = Frontend(plan, "b")
    other.hear(1.0)
    plan.stop(1.0)
    assert frontend.hear(1.5) == Roster(("r1", "r2"), (), is_over=True)
    plan.leave("a")
    assert plan.advance(2.0) == Changes(), "the other frontend does not know it yet"
    assert other.hear(2.0).is_over
    plan.leave("b")
    assert plan.advance(2.5) == Changes(ended=("r1", "r2"), is_over=True)


def test_a_frontend_that_does_not_answer_delays_the_end_by_a_bound() -> None:
    plan, frontend = plan_of_two()
    frontend.hear(1.0)
    plan.stop(1.0)
    plan.stop(5.0)
    assert plan.advance(1.0 + LEAVE_TIMEOUT_S) == Changes()
    assert plan.advance(1.1 + LEAVE_TIMEOUT_S).is_over


def test_a_fleet_without_frontends_ends_at_once_when_it_is_stopped() -> None:
    plan = FleetPlan(TWO, 0.0)
    plan.advance(0.0)
    plan.stop(1.0)
    assert plan.advance(1.0) == Changes(ended=("r1", "r2"), is_over=True)


def test_spares_come_on_top_of_what_the_queue_needs() -> None:
    plan = FleetPlan(Scaling(1, 2, queue_tokens=100.0, up_after_s=1.0, num_spares=1), 0.0)
    frontend = Frontend(plan, "a")
    assert plan.advance(0.0).created == ("r1", "r2")
    for now in (0.1, 0.2, 0.3):
        frontend.hear(now)
        assert plan.advance(now) == Changes()
    frontend.waiting = {"r1": 150.0}  # less than two replicas' worth
    created = []
    for step in range(20):
        frontend.hear(1.0 + step / 4)
        created += plan.advance(1.0 + step / 4).created
    assert created == ["r3"], "two that work, and a spare"
    plan.scale(Scaling(1, 1, num_spares=1))
    frontend.hear(9.0)
    plan.advance(9.0)
    assert len(plan.roster.used) == 2


def test_a_rolling_update_replaces_spares_as_well() -> None:
    plan = FleetPlan(Scaling(1, 1, num_spares=1), 0.0)
    frontend = Frontend(plan, "a")
    assert plan.advance(0.0).created == ("r1", "r2")
    plan.replace_all()
    for step in range(40):
        frontend.hear(step / 2)
        plan.advance(step / 2)
        assert len(plan.roster.used) in (2, 3)
    assert not plan.is_replacing
    assert not {"r1", "r2"} & set(plan.roster.used)
