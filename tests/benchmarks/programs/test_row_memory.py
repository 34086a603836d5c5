"""The memory of rows is measured in every way, and its line tells whether the goal is met."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtlang.testing import ScriptedRuntime
from rtlang_bench.programs.row_memory import PROGRAMS, WAYS, RowMemory, measure, rows


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_run_in_every_way(name: str, way: str) -> None:
    told: list[str] = []
    with ScriptedRuntime({"label": "yes"}) as runtime:
        found = measure(runtime, PROGRAMS[name], 1000, way=way, max_in_flight=32, tell=told.append)
        assert runtime.count("label") == 1200  # 200 before, which do not count
    assert (found.num_rows, found.num_failed) == (1000, 0)
    assert found.most >= found.idle > 0
    assert told[-1].startswith("    1000 rows")


def test_failures_and_too_much_memory_miss_the_goal() -> None:
    found = RowMemory(1000, 100 << 20, 400 << 20, 2.0, 0)
    assert found.is_met
    assert str(found) == (
        "1000 rows: at most 300 MiB above the idle runtime's 100 MiB (goal: 300), 314573 bytes a row; 0 failed, 2000 us a row"
    )
    assert not replace(found, most=found.most + 1).is_met
    assert not replace(found, num_failed=1).is_met


def test_rows_are_made_as_they_are_read() -> None:
    made = rows(1 << 60)
    assert next(made) != next(made)
