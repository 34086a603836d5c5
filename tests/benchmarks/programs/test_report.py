"""The report of an ablation: what counts as saved, and how marks are judged."""

from __future__ import annotations

import pytest

from rtlang_bench.programs.meter import Run
from rtlang_bench.programs.report import ALL, Finding, Mark, Spread, Table, findings, variant


def run(prompt: int = 100, generated: int = 50, latency: float = 1.0, steps: float = 20.0, cpu: float = 1.0) -> Run:
    return Run(prompt, generated, (latency, latency), steps, 30, round(2 * steps), 12, cpu)


def test_a_difference_counts_if_it_shows_in_every_turn() -> None:
    with_pass, without = Spread.of([90, 95, 80]), Spread.of([100, 110, 120])
    assert with_pass.saved(without) == pytest.approx(1 - 90 / 110)
    assert without.saved(with_pass) == pytest.approx(1 - 110 / 90)
    assert Spread.of([90, 101]).saved(Spread.of([100, 120])) == 0
    assert not with_pass.is_exact


def tables(without: list[Run]) -> list[Table]:
    whole = [run(), run()]
    return [Table("tree", "", (variant(ALL, whole, whole), variant("without merge", without, whole)))]


def test_what_a_pass_saves_is_measured_against_the_run_without_it() -> None:
    [finding] = findings(tables([run(generated=100, steps=40.0), run(generated=100, steps=80.0)]), ["merge"], 3)
    third = pytest.approx(1 - 1 / 3)
    assert finding.saved == {"generated tokens": 0.5, "steps": third, "latency in steps": third}
    assert finding.is_useful
    assert str(finding) == "merge, tree: saves 50% of generated tokens, 67% of steps, 67% of latency in steps"


def test_a_pass_that_loses_latency_is_named() -> None:
    [finding] = findings(tables([run(prompt=200, steps=10.0), run(prompt=200, steps=10.0)]), ["merge"], 3)
    assert finding.saved == {"prompt tokens": 0.5, "steps": -1.0, "latency in steps": -1.0}
    assert str(finding) == "merge, tree: saves 50% of prompt tokens; costs 100% more steps, 100% more latency in steps"


def test_few_turns_compare_tokens_only() -> None:
    [finding] = findings(tables([run(prompt=200, steps=10.0), run(prompt=200, steps=10.0)]), ["merge"], 2)
    assert finding.saved == {"prompt tokens": 0.5}


def test_a_step_or_two_are_no_difference() -> None:
    [finding] = findings(tables([run(steps=21.0), run(steps=21.0)]), ["merge"], 3)
    assert finding.saved == {}


def test_times_decide_nothing() -> None:
    [finding] = findings(tables([run(), run(latency=9.0, cpu=9.0)]), ["merge"], 3)
    assert finding == Finding("merge", "tree", {})
    assert not finding.is_useful
    assert findings(tables([run(), run()]), ["path"], 3) == ()


@pytest.mark.parametrize(
    ("value", "is_least", "text"),
    [
        (0.95, True, "share: 95.0%, at least 95%: pass"),
        (0.949, True, "share: 94.9%, at least 95%: FAIL"),
        (0.95, False, "share: 95.0%, at most 95%: pass"),
        (0.96, False, "share: 96.0%, at most 95%: FAIL"),
    ],
)
def test_a_mark_is_met_up_to_its_limit(value: float, is_least: bool, text: str) -> None:
    mark = Mark("share", value, 0.95, is_least)
    assert str(mark) == text
    assert mark.is_met is text.endswith("pass")


def test_ratios_are_shown_as_such() -> None:
    assert str(Mark("time", 2.104, 1.6, is_least=False, is_ratio=True)) == "time: 2.10x, at most 1.6x: FAIL"
