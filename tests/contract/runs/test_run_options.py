"""The options of a run: their checks, their one clock, and what a target must be able to do for them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from rtlang.contract.errors import GraphError, ParameterError
from rtlang.contract.params import MAX_DEADLINE_S
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions, abilities_of

GIVEN: dict[Ability, dict[str, Any]] = {
    Ability.CREDIT: {"credit": 0},
    Ability.PROGRESS: {"reports_progress": True},
    Ability.CONTINUE: {"continue_from": {1: [(2,)]}},
    Ability.BUDGET: {"budget": Budget(tokens=3)},
    Ability.CACHE_SALT: {"cache_salt": "s"},
    Ability.KNOWN: {"known": {1: KnownOutcome(ParameterError("x", 1, "y"))}},
}


@pytest.mark.parametrize("ability", Ability)
def test_an_option_is_refused_by_name_where_its_ability_is_missing(ability: Ability) -> None:
    options = RunOptions(**GIVEN[ability])
    options.check_abilities(frozenset({ability}))
    (name,) = GIVEN[ability]
    with pytest.raises(GraphError, match=f"this server does not offer {name}") as refused:
        options.check_abilities(ALL_ABILITIES - {ability}, "this server")
    assert refused.value.field == name
    DEFAULT_OPTIONS.check_abilities(frozenset())


def test_a_target_that_declares_no_abilities_has_none() -> None:
    assert abilities_of(object()) == frozenset()


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": "x"},
        {"deadline_s": 0},
        {"seed": -1},
        {"credit": -1},
        {"budget": {"tokens": 3}},
        {"inputs": [("a", "b")]},
        {"known": 7},
        {"continue_from": "x"},
        {"principal": "me"},
    ],
)
def test_a_wrong_option_is_refused_where_it_is_given(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        RunOptions(**wrong)


def test_none_stands_for_the_usual_value() -> None:
    assert RunOptions(inputs=None, known=None, continue_from=None, principal=None) == RunOptions()  # type: ignore[arg-type]


def test_the_deadline_counts_from_the_first_time_at_which_the_run_began() -> None:
    options = RunOptions(deadline_s=5.0).begun(100.0)
    assert options.begun(200.0) is options
    assert options.deadline == 105.0
    assert str(options.deadline_error()) == "the deadline of 5 s has passed"
    assert RunOptions(deadline_s=1e300).begun(0.0).deadline == MAX_DEADLINE_S
    assert RunOptions().begun(3.0).deadline is None


def test_every_ability_belongs_to_an_option() -> None:
    assert {item.metadata["needs"] for item in fields(RunOptions) if "needs" in item.metadata} == set(Ability)
