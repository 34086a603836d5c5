"""Budgets stop work: by states, bytes, time and cancellation."""

from __future__ import annotations

import threading

import pytest

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits


def test_states_may_be_spent_up_to_the_limit_and_no_further() -> None:
    budget = Budget(Limits(max_states=10))
    budget.spend(states=10)
    with pytest.raises(GrammarError, match="more than 10 states"):
        budget.spend(states=1)


def test_bytes_may_be_spent_up_to_the_limit_and_no_further() -> None:
    budget = Budget(Limits(max_bytes=100))
    budget.spend(num_bytes=100)
    with pytest.raises(GrammarError, match="more than 100 bytes"):
        budget.spend(num_bytes=1)


def test_a_budget_without_time_stops_at_a_check_and_after_many_spends() -> None:
    with pytest.raises(GrammarError, match="more than -1 s"):
        Budget(Limits(max_seconds=-1.0)).check()
    budget = Budget(Limits(max_seconds=-1.0))
    with pytest.raises(GrammarError, match="more than -1 s"):
        _spend_often(budget)


def _spend_often(budget: Budget) -> None:
    for _ in range(1000):
        budget.spend()


class Clocks:
    """Wall time, and the CPU time of the thread."""

    wall = cpu = 50.0

    def monotonic(self) -> float:
        return self.wall

    def thread_time(self) -> float:
        return self.cpu


def test_only_time_of_the_thread_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks()
    monkeypatch.setattr("rtlang_grammars.spec.limits.time", clocks)
    budget = Budget(Limits(max_seconds=2.0))
    for _ in range(19):  # a machine on which it gets a hundredth of a core
        clocks.wall, clocks.cpu = clocks.wall + 10.0, clocks.cpu + 0.1
        budget.check()
    clocks.wall, clocks.cpu = clocks.wall + 10.0, clocks.cpu + 0.2
    with pytest.raises(GrammarError, match="more than 2 s"):
        budget.check()


def test_time_of_several_threads_counts_on_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks()
    monkeypatch.setattr("rtlang_grammars.spec.limits.time", clocks)
    budget = Budget(Limits(max_seconds=2.0))
    clocks.wall, clocks.cpu = clocks.wall + 10.0, clocks.cpu + 1.9
    budget.check()
    errors: list[str] = []

    def work() -> None:
        clocks.cpu = 3.0  # the clock of another thread
        try:
            budget.check()
            clocks.wall, clocks.cpu = clocks.wall + 10.0, clocks.cpu + 0.2
            budget.check()
        except GrammarError as error:
            errors.append(error.reason)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == ["too complex: it takes more than 2 s"]


def test_cancelling_stops_the_budget_and_what_was_renewed_from_it() -> None:
    flag = threading.Event()
    budget = Budget(cancelled=flag)
    renewed = budget.renewed()
    budget.check()
    flag.set()
    for stopped in (budget, renewed):
        with pytest.raises(GrammarError, match="cancelled"):
            stopped.check()


def test_a_renewed_budget_has_spent_nothing() -> None:
    budget = Budget(Limits(max_states=5))
    budget.spend(states=5)
    budget.renewed().spend(states=5)


@pytest.mark.parametrize(("text", "fits"), [("a" * 8, True), ("a" * 9, False), ("é" * 4, True), ("é" * 5, False)])
def test_a_source_is_measured_in_bytes(text: str, fits: bool) -> None:
    budget = Budget(Limits(max_source_bytes=8))
    if fits:
        budget.check_source(text)
    else:
        with pytest.raises(GrammarError, match="more than 8 bytes"):
            budget.check_source(text)


def test_depth_is_refused_where_it_is() -> None:
    budget = Budget(Limits(max_depth=3))
    budget.check_depth(3)
    with pytest.raises(GrammarError, match="3 levels") as caught:
        budget.check_depth(4, "1:7")
    assert caught.value.location == "1:7"
