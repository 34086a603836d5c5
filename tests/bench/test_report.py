from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from rtlang.bench.measure import Measurement
from rtlang.bench.report import Report, compare, percentile

RUN = Measurement(
    total_s=2.0,
    latencies_s=(1.0, 2.0),
    first_token_s=(0.25, 0.5),
    outputs={(0, 1): (5,) * 60, (1, 1): (6,) * 40},
    prompt_tokens=400,
    cached_tokens=100,
    peak_bytes=3 << 20,
)


def runs(*total_s: float) -> list[Measurement]:
    return [replace(RUN, total_s=seconds) for seconds in total_s]


def test_ratios_are_taken_within_pairs_and_summed_up_by_their_median() -> None:
    row = compare("w", "about", runs(1.0, 2.0, 4.0), runs(3.0, 4.0, 20.0))
    assert (row.ratio, row.ratio_min, row.ratio_max) == (3.0, 2.0, 5.0)
    assert row.num_pairs == 3
    assert row.ours.output_tokens_per_s == 50.0
    assert row.baseline.output_tokens_per_s == 25.0


def test_tokens_per_second_count_what_each_side_generated() -> None:
    longer = replace(RUN, outputs={(0, 1): (5,) * 400})
    assert compare("w", "", [longer], [RUN]).ratio == 4.0


def test_the_ratio_by_processor_time_needs_it_on_both_sides() -> None:
    ours, baseline = replace(RUN, cpu_s=1.0), replace(RUN, cpu_s=3.0)
    assert compare("w", "", [ours], [baseline]).cpu_ratio == 3.0
    assert compare("w", "", [ours], [RUN]).cpu_ratio is None


def test_a_side_sums_up_its_graphs() -> None:
    side = compare("w", "", [RUN, replace(RUN, latencies_s=(3.0, 4.0), peak_bytes=7 << 20)], [RUN, RUN]).ours
    assert (side.latency_p50_s, side.latency_p99_s) == (2.0, 4.0)
    assert side.cached_share == 0.25
    assert side.peak_bytes == 7 << 20
    assert side.num_output_tokens == 100


def test_equal_texts_are_counted_among_those_that_both_have() -> None:
    other = replace(RUN, outputs={(0, 1): (5,) * 60, (1, 1): (6,) * 39 + (7,), (2, 1): (1,)})
    row = compare("w", "", [RUN], [other])
    assert (row.num_equal, row.num_compared) == (1, 2)
    assert compare("w", "", [RUN], [other], is_agreement_due=False).num_compared == 0


@pytest.mark.parametrize(("ours", "other"), [(0, 0), (1, 2)])
def test_a_run_without_its_partner_is_refused(ours: int, other: int) -> None:
    with pytest.raises(ValueError, match="paired"):
        compare("w", "", [RUN] * ours, [RUN] * other)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.01, 1.0), (0.5, 2.0), (0.75, 3.0), (0.76, 4.0), (0.99, 4.0), (1.0, 4.0)]
)
def test_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], share) == expected


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.1)])
def test_a_percentile_of_nothing_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        percentile(values, share)


def report() -> Report:
    return Report(
        command="rtlang bench",
        machine="a machine",
        model="a model",
        dtype="float32",
        num_threads=2,
        versions={"torch": "2", "other": None},
        rows=(compare("shared", "32 requests", runs(1.0, 1.0), runs(5.0, 6.0)),),
        notes=("a note",),
        fp32_equal=7,
        fp32_compared=8,
    )


def test_markdown_has_two_lines_per_workload_and_says_what_was_measured_where() -> None:
    header, rule, ours, baseline, empty, *facts = report().to_markdown().splitlines()
    cells = [cell.strip() for cell in ours.strip("|").split("|")]
    assert cells == ["shared", "100", "5.50 (5.00-6.00)", "1.00", "2.00", "0.25", "25%", "3", "2/2"]
    assert header.count("|") == rule.count("|") == ours.count("|") == baseline.count("|")
    assert empty == ""
    text = "\n".join(facts)
    for fact in ("a machine", "a model", "float32", "2 threads", "32 requests", "pairs of runs: 2", "a note", "7 of 8"):
        assert fact in text


def test_the_table_fits_a_terminal() -> None:
    output = StringIO()
    Console(file=output, width=80).print(report().to_table())
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
