"""Budgets: checks, and the form in which they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.budget import Budget


@pytest.mark.parametrize("budget", [Budget(tokens=5), Budget(seconds=0.5), Budget(5, 1.0, 7)])
def test_the_plain_form_is_read_back(budget: Budget) -> None:
    assert Budget.from_plain(budget.to_plain()) == budget


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"tokens": 0}, "tokens"),
        ({"tokens": True}, "tokens"),
        ({"computed": 1.5}, "computed"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": -1}, "seconds"),
        ({}, "budget"),
        ({"pages": 1}, "budget"),
    ],
)
def test_mistakes_name_the_field(limits: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Budget.from_plain(limits)
    assert caught.value.field == field
