"""Savings: counts add up, and every pass has its line."""

from __future__ import annotations

from dataclasses import fields

import pytest

from rtlang.compiler.context import Savings
from rtlang.compiler.pipeline import PASSES


def test_counts_of_parts_add_up() -> None:
    names = [item.name for item in fields(Savings) if item.type == "int"]
    total, part = Savings(), Savings(**{name: number for number, name in enumerate(names, 1)})
    part.aliases[1], part.orders[2] = 0, ("a",)
    total.add(part)
    total.add(part)
    assert [getattr(total, name) for name in names] == [2 * number for number in range(1, len(names) + 1)]
    assert (total.aliases, total.orders) == ({1: 0}, {2: ("a",)})


def test_every_pass_has_a_line() -> None:
    lines = Savings(merged_generations=7).lines(PASSES)
    assert [line.partition(":")[0] for line in lines] == list(PASSES)
    assert any("7 generations" in line for line in lines)
    with pytest.raises(AssertionError, match="inline"):
        Savings().line("inline")
