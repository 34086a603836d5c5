"""Measurements against what ran, and the verdict."""

from __future__ import annotations

from rtlang_bench.figure import Figure
from rtlang_bench.worst_cases.judge import (
    Baseline,
    CaseRecord,
    Measurement,
    MemorySample,
    baseline_of,
    figures,
    held_lines,
    note_measurements,
    note_memory,
    report,
    worst_cases,
)

QUIET = Baseline({"stream": 0.02}, 100 << 20)


def record(number: int, begun: float, ended: float, *wrong: str) -> CaseRecord:
    return CaseRecord(number, f"function:f{number}", begun, ended, ("value",), wrong)


def verdict(
    records: list[CaseRecord],
    measurements: list[Measurement],
    samples: list[MemorySample] | None = None,
    restarts: int = 0,
) -> dict[str, Figure]:
    found = figures(records, measurements, samples or [], QUIET, limit_bytes=64 << 20, restarts=restarts)
    return {each.name: each for each in found}


def test_a_measurement_is_noted_at_all_cases_that_ran_during_it() -> None:
    records = [record(1, 0.0, 1.0), record(2, 0.5, 2.0), record(3, 3.0, 4.0)]
    note_measurements(
        records, [Measurement("stream", 0.9, 1.5), Measurement("schema", 1.2, 3.5), Measurement("stream", 1, 9, "x")]
    )
    assert [sorted(each.worst) for each in records] == [["stream"], ["schema", "stream"], ["schema"]]


def test_memory_is_noted_from_the_beginning_of_a_case() -> None:
    records = [record(1, 1.0, 2.0), record(2, 5.0, 6.0)]
    note_memory(
        records,
        [MemorySample(0.9, 10, 90), MemorySample(1.5, 10, 290), MemorySample(4.0, 10, 290), MemorySample(5.5, 5, 5)],
    )
    assert [each.worst["memory"] for each in records] == [200.0, 0.0]


def test_the_baseline_is_the_largest_of_each_kind() -> None:
    found = baseline_of([Measurement("stream", 0, 0.1), Measurement("stream", 1, 1.3), Measurement("schema", 0, 2)], 5)
    assert round(found.seconds["stream"], 3) == 0.3
    assert "stream 300 ms, schema 2000 ms, tokenize 0 ms" in str(found)


def test_a_quiet_run_keeps_all_bounds() -> None:
    probes = [Measurement(kind, 1.0, 1.1) for kind in ("stream", "schema", "tokenize", "tokens")]
    samples = [MemorySample(1.0, 60 << 20, 140 << 20)]
    found = verdict([record(1, 0, 2)], probes, samples)
    assert all(each.is_met for each in found.values())
    assert round(found["longest_gap"].value) == 80
    assert round(found["memory_growth"].value) == 100


def test_each_bound_can_be_missed() -> None:
    probes = [Measurement(kind, 1.0, 1.1) for kind in ("schema", "tokenize", "tokens")]

    def missed(*measurements: Measurement, **rest: object) -> set[str]:
        found = verdict([record(1, 0, 2)], [*probes, *measurements], **rest)  # type: ignore[arg-type]
        return {name for name, figure in found.items() if not figure.is_met}

    assert missed(Measurement("stream", 1.0, 1.3)) == {"longest_gap"}
    assert missed(Measurement("schema", 1.0, 2.5)) == {"slowest_schema"}
    assert missed(Measurement("tokenize", 1.0, 2.5)) == {"slowest_tokenize"}
    assert missed(Measurement("tokens", 1.0, 2.5)) == {"slowest_tokens"}
    assert missed(Measurement("stream", 1.0, 9.0, "lost")) == {"canary_errors"}
    assert missed(samples=[MemorySample(1.0, 0, 400 << 20)]) == {"memory_growth"}
    assert missed(restarts=1) == {"engine_restarts"}
    wrong = verdict([record(1, 0, 2, "no answer")], probes)
    assert [name for name, figure in wrong.items() if not figure.is_met] == ["wrong_ends"]
    assert not verdict([record(1, 0, 2)], [])["slowest_schema"].is_met, "nothing was measured"


def test_the_report_names_the_worst_cases_and_what_was_wrong() -> None:
    records = [record(1, 0, 1, "no answer for 60 s"), record(2, 0, 1, "no answer for 60 s"), record(3, 0, 1)]
    records[2].name = records[1].name = records[0].name = "route:chat"
    records[0].worst, records[2].worst = {"stream": 0.2}, {"stream": 0.9}
    records[2].alone = {"stream": 0.1}
    assert [each.number for each in worst_cases(records, "stream")] == [3, 1]
    lines = list(report(records))
    assert "  900 ms, alone 100 ms: case 3 route:chat: value" in lines
    assert "  2 x route:chat: no answer for 60 s (first: case 1)" in lines
    assert lines[-1] == "ends: 3 x value"


def test_work_that_held_a_thread_is_shown_by_its_place_and_noted_at_its_case() -> None:
    holds = [Measurement("held", 0.5, 0.5 + n / 10, place=f"engine thread: f at {n % 2}") for n in range(1, 5)]
    assert list(held_lines(holds))[1:] == [
        "  400 ms at most, 2 times: engine thread: f at 0",
        "  300 ms at most, 2 times: engine thread: f at 1",
    ]
    records = [record(1, 0.0, 1.0)]
    note_measurements(records, holds)
    assert round(records[0].worst["held"], 3) == 0.4
    assert not verdict(records, holds)["longest_held"].is_met
