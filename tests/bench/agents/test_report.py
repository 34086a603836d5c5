"""The arithmetic of the figures."""

from __future__ import annotations

from rtlang.bench.agents.replay import Replayed, TurnFigures
from rtlang.bench.agents.report import INFERRED, LRU, AgentFigures, AgentsReport, cached_share
from rtlang.bench.machine import Environment


def turn(first_s: float, num_prompt: int, num_cached: int, num_returning: int, door: str = "chat") -> TurnFigures:
    return TurnFigures(door, first_s, num_prompt, num_cached, 4, num_returning)


TURNS = (turn(1.0, 100, 60, 0), turn(3.0, 150, 104, 104), turn(2.0, 200, 77, 154, "other"))


def test_tokens_that_no_earlier_turn_had_do_not_count_as_returning() -> None:
    assert cached_share(TURNS) == (104 + 77) / (104 + 154)
    assert cached_share([turn(1.0, 9, 9, 4)]) == 1.0
    assert cached_share([turn(1.0, 9, 9, 0)]) == 1.0


def test_a_report_compares_the_sides_at_each_pool() -> None:
    plain = AgentFigures.of(3.0, LRU, Replayed(TURNS, 9.0, 10, 8))
    better = AgentFigures.of(3.0, INFERRED, Replayed(TURNS[:2], 9.0, 10, 0))
    assert (plain.num_turns, plain.num_returning, plain.first_s, plain.returning_s) == (3, 2, (2.0, 3.0), (2.5, 3.0))
    assert plain.num_computed == 40 + 46 + 123
    assert plain.doors["other"] == (1, 0.5, 2.0, 2.0)
    report = AgentsReport(Environment.of("x", "m", "float32", 1), "traces", (plain, better))
    assert report.ratios() == ["3x: first token p99 1.00 of plain LRU's, of returning turns 1.00, computed tokens 0.41"]
    assert report.to_plain()["figures"][0]["num_different"] == 8
    assert "| 3x | plain LRU | 3 | 70.2% |" in report.to_markdown()
    assert [row[2] for row in report.door_rows()] == ["chat", "other", "chat"]
    assert [table.row_count for table in report.to_tables()] == [2, 3]
