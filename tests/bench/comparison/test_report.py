from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from rtlang.bench.comparison.report import Report, compare
from rtlang.bench.comparison.step_profile import FUSED, PARTS, PROFILE_TITLE, Profile
from rtlang.bench.machine import Environment
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.workload import ArrivesBeside, PoissonArrivals, Workload

WORKLOAD = Workload("w", "about", ())
RUN = Measurement(
    total_s=2.0,
    latencies_s=(1.0, 2.0),
    output_times_s={(0, 1): (0.25, 0.5, 1.0), (1, 1): (0.5, 1.75)},
    outputs={(0, 1): (5,) * 60, (1, 1): (6,) * 40},
    prompt_tokens=400,
    cached_tokens=100,
    peak_bytes=3 << 20,
)


def runs(*total_s: float) -> list[Measurement]:
    return [replace(RUN, total_s=seconds) for seconds in total_s]


def test_ratios_are_taken_within_pairs_and_summed_up_by_their_median() -> None:
    row = compare(WORKLOAD, runs(1.0, 2.0, 4.0), runs(3.0, 4.0, 20.0))
    assert (row.ratio, row.ratio_min, row.ratio_max) == (3.0, 2.0, 5.0)
    assert row.num_runs == 3
    assert row.ours.output_tokens_per_s == 50.0
    assert row.baseline is not None
    assert row.baseline.output_tokens_per_s == 25.0


def test_tokens_per_second_count_what_each_side_generated() -> None:
    longer = replace(RUN, outputs={(0, 1): (5,) * 400})
    assert compare(WORKLOAD, [longer], [RUN]).ratio == 4.0


def test_the_ratio_by_processor_time_needs_it_on_both_sides() -> None:
    ours, baseline = replace(RUN, cpu_s=1.0), replace(RUN, cpu_s=3.0)
    assert compare(WORKLOAD, [ours], [baseline]).cpu_ratio == 3.0
    assert compare(WORKLOAD, [ours], [RUN]).cpu_ratio is None


def test_a_side_sums_up_its_graphs() -> None:
    side = compare(WORKLOAD, [RUN, replace(RUN, latencies_s=(3.0, 4.0), peak_bytes=7 << 20)], [RUN, RUN]).ours
    assert (side.latency_p50_s, side.latency_p99_s) == (2.0, 4.0)
    assert side.cached_share == 0.25
    assert side.latency_mean_s == 2.5
    assert (side.first_token_p50_s, side.first_token_p99_s) == (0.25, 0.5)
    assert (side.gap_p50_s, side.gap_p99_s) == (0.5, 1.25)
    assert side.peak_bytes == 7 << 20
    assert side.num_output_tokens == 100


def test_equal_texts_are_counted_among_those_that_both_have() -> None:
    other = replace(RUN, outputs={(0, 1): (5,) * 60, (1, 1): (6,) * 39 + (7,), (2, 1): (1,)})
    row = compare(WORKLOAD, [RUN], [other])
    assert (row.num_equal, row.num_compared) == (1, 2)


@pytest.mark.parametrize(("ours", "other"), [(0, 0), (1, 2)])
def test_a_run_without_its_partner_is_refused(ours: int, other: int) -> None:
    with pytest.raises(ValueError, match="paired"):
        compare(WORKLOAD, [RUN] * ours, [RUN] * other)


def report() -> Report:
    return Report(
        environment=Environment("rtlang bench", "a machine", "a model", "float32", 2, {"torch": "2", "other": None}),
        rows=(compare(Workload("shared", "32 requests", ()), runs(1.0, 1.0), runs(5.0, 6.0)),),
        notes=("a note",),
        fp32_equal=7,
        fp32_compared=8,
    )


def test_markdown_has_two_lines_per_workload_and_says_what_was_measured_where() -> None:
    header, rule, ours, baseline, empty, *facts = report().to_markdown().splitlines()
    cells = [cell.strip() for cell in ours.strip("|").split("|")]
    assert cells == ["shared", "100", "5.50 (5.00-6.00)", "1.00/2.00", "0.25/0.50", "500/1250", "25%", "3", "2/2"]
    assert header.count("|") == rule.count("|") == ours.count("|") == baseline.count("|")
    assert empty == ""
    text = "\n".join(facts)
    for fact in ("a machine", "a model", "float32", "2 threads", "32 requests", "pairs of runs: 2", "a note", "7 of 8"):
        assert fact in text


def test_the_table_fits_a_terminal() -> None:
    output = StringIO()
    Console(file=output, width=80).print(*report().to_tables())
    text = output.getvalue()
    assert "5.50 (5.00-6.00)" in text
    assert "…" not in text


def test_a_report_is_sound_while_most_float32_texts_agree() -> None:
    assert report().is_sound
    assert replace(report(), fp32_equal=6).is_sound
    assert not replace(report(), fp32_equal=5).is_sound


def test_the_plain_form_keeps_every_figure() -> None:
    plain = report().to_plain()
    assert plain["rows"][0]["ours"]["output_tokens_per_s"] == 100.0
    assert plain["rows"][0]["ratio_max"] == 6.0
    assert (plain["command"], plain["versions"]) == ("rtlang bench", {"torch": "2", "other": None})


def test_programs_that_arrive_over_time_are_compared_by_their_latency() -> None:
    workload = Workload("poisson", "", (), arrival=PoissonArrivals(0.5))
    row = compare(workload, [RUN], [replace(RUN, latencies_s=(4.0, 8.0), total_s=2.5)])
    assert (row.ratio, row.ratio_of) == (4.0, "mean latency")
    assert row.program_ratio == 1.25


def test_gaps_count_beside_the_graph_that_arrives() -> None:
    workload = Workload("longprompt", "", (), arrival=ArrivesBeside(1, 2))
    row = compare(workload, [replace(RUN, arrivals_s=(0.0, 0.4))], [RUN])
    assert row.ours.gap_p99_s == 0.25


def test_a_workload_without_a_baseline_says_why() -> None:
    row = compare(WORKLOAD, [RUN], [], reason="it cannot wait")
    assert (row.baseline, row.ratio, row.ratio_min, row.num_runs) == (None, None, None, 1)
    told = replace(report(), rows=(row,))
    ours, baseline = told.to_markdown().splitlines()[2:4]
    assert ours.split("|")[2:4] == [" 50 ", " - "]
    assert set(baseline.split("|")[2:-2]) == {" - "}
    assert any("not run on the baseline: it cannot wait" in fact for fact in told.facts())


def test_profiles_are_a_table_of_their_own() -> None:
    parts_s = {**dict.fromkeys(PARTS, 0.0), "linears": 0.5, FUSED: 1.2, "head": 0.2}
    told = replace(report(), profiles=(Profile("shared", 10, 2.0, parts_s, {"linears": 0.75, "attention": 0.25}),))
    lines = told.to_markdown().splitlines()
    start = lines.index("| part | shared |")
    assert lines[start + 2 : start + 7] == [
        "| layers in one call | 120.00 (60.0%) |",
        "| linears | 50.00 (25.0%) |",
        "| head | 20.00 (10.0%) |",
        "| explained | 190.00 (95.0%) |",
        "| unexplained | 10.00 (5.0%) |",
    ]
    assert any(
        "shared: layers in one call are, by a run of separate calls: linears 75%, attention 25%" in line
        for line in lines
    )
    assert [table.title for table in told.to_tables()] == ["rtlang against transformers static batching", PROFILE_TITLE]
