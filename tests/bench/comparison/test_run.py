from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.bench.comparison import options as module
from rtlang.bench.comparison import run, sides
from rtlang.bench.comparison.options import BenchOptions
from rtlang.bench.comparison.report import Report
from rtlang.bench.comparison.run import run_benchmark
from rtlang.bench.workloads import arriving, dependent_calls, requests
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang_kernels.cpu.machine_rates import MachineRates
from tests.support.models.tiny_models import make_checkpoint


@pytest.fixture
def small_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same shapes with few and short texts, on a machine whose rates are known."""
    monkeypatch.setattr(sides, "machine_rates", lambda num_threads, **_: MachineRates(1e10, 1e11))
    for name, value in {
        "SHARED_REQUESTS": 4,
        "SHARED_TOKENS": 40,
        "OWN_TOKENS": 6,
        "SHARED_OUTPUT": 5,
        "TREE_LEVELS": 2,
        "TREE_BRANCH": 2,
        "TREE_ROOT_TOKENS": 20,
        "TREE_NODE_TOKENS": 6,
        "TREE_OUTPUT": 4,
        "MIXED_REQUESTS": 6,
        "QUICK_MIXED_REQUESTS": 4,
        "MIXED_PROMPT_TOKENS": (4, 32),
        "MIXED_OUTPUT_TOKENS": (2, 12),
        "JSON_REQUESTS": 6,
        "JSON_PROMPT_TOKENS": 12,
        "SCHEMAS": requests.SCHEMAS[:3],
    }.items():
        monkeypatch.setattr(requests, name, value)


def test_both_sides_do_the_same_work_on_every_workload(small_workloads: None, tmp_path: Path) -> None:
    directory = make_checkpoint(tmp_path / "model", max_position_embeddings=1024)
    config = RuntimeConfig(model=str(directory), dtype="float32", num_threads=1, num_pages=512)
    lines: list[str] = []
    report = run_benchmark(config, BenchOptions(repeats=2), command="rtlang bench --repeats 2", tell=lines.append)
    assert isinstance(report, Report)
    assert [row.workload for row in report.rows] == ["shared", "tree", "mixed", "json"]
    shared, tree, mixed, constrained = report.rows
    assert report.fp32_equal == report.fp32_compared == 6 - 2
    for row, num_tokens in [(shared, 4 * 5), (tree, 6 * 4)]:
        assert row.baseline is not None
        assert row.ours.num_output_tokens == row.baseline.num_output_tokens == num_tokens
        assert row.num_runs == 2
    for row in (shared, tree, mixed):
        assert row.num_equal == row.num_compared > 0
        assert row.ratio is not None
        assert row.ratio > 0
        assert row.cpu_ratio is not None
    assert shared.ours.cached_share > 0.5
    assert shared.baseline is not None
    assert shared.baseline.cached_share == 0.0
    assert mixed.ours.cached_share < 0.05  # texts may begin with the same token
    assert constrained.ours.num_output_tokens > 0
    assert report.environment.model == directory.name
    assert report.environment.command == "rtlang bench --repeats 2"
    assert any("tree" in line for line in lines)


def test_a_quick_run_stops_repeating_when_its_time_is_used_up(
    small_workloads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_BUDGET_S", 0.0)
    monkeypatch.setattr(run, "_agreement_in_float32", lambda config, options: (8, 8))
    directory = make_checkpoint(tmp_path / "model", max_position_embeddings=1024)
    config = RuntimeConfig(model=str(directory), dtype="float32", num_threads=1, num_pages=512)
    report = run_benchmark(config, BenchOptions(workloads=("mixed",), is_quick=True))
    assert isinstance(report, Report)
    (row,) = report.rows
    assert row.num_runs == 1
    assert any("quick" in note for note in report.notes)


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="nowhere"):
        run_benchmark(RuntimeConfig(model=str(tmp_path / "nowhere")), BenchOptions())


def test_programs_and_arrivals_are_run_where_the_baseline_can(
    small_workloads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: dict[object, dict[str, object]] = {
        dependent_calls: {
            "QUICK_AGENTS": 2,
            "QUICK_AGENT_CALLS": (2, 3),
            "AGENT_SYSTEM_TOKENS": 24,
            "AGENT_TASK_TOKENS": 8,
            "AGENT_OUTPUT": (2, 4),
            "AGENT_DELAY_S": (0.001, 0.002),
            "QUICK_ESSAYS": 1,
            "RUBRIC_TOKENS": 16,
            "ESSAY_TOKENS": 16,
            "CRITERIA": 2,
            "CRITERION_TOKENS": 4,
            "ANALYSIS_OUTPUT": 3,
            "MERGED_OUTPUT": 4,
        },
        arriving: {"QUICK_PROGRAMS": 3, "QUICK_LONGEST_PROMPT": 40, "LONG_PROMPT_TOKENS": 200, "QUICK_STREAMED": 24},
    }
    for changed, values in small.items():
        for name, value in values.items():
            monkeypatch.setattr(changed, name, value)
    directory = make_checkpoint(tmp_path / "model", max_position_embeddings=2048)
    config = RuntimeConfig(model=str(directory), dtype="float32", num_threads=1, num_pages=512)
    monkeypatch.setattr(run, "_agreement_in_float32", lambda config, options: (8, 8))  # in the first test
    options = BenchOptions(
        workloads=("agents", "judge", "poisson", "longprompt"), is_quick=True, repeats=1, profiles=True
    )
    report = run_benchmark(config, options)
    assert isinstance(report, Report)
    agents, judge, poisson, longprompt = report.rows
    assert agents.num_equal == agents.num_compared == 2 + 3
    assert judge.num_compared == 2 + 2 + 1
    assert judge.num_equal >= 2  # the analyses; objects may have other white space
    for row in (agents, judge):
        assert row.baseline is not None
        assert row.ours.cached_share > row.baseline.cached_share == 0
    for row in (poisson, longprompt):
        assert row.baseline is None
        assert row.reason == "a static batch takes no request while it runs"
        assert row.ours.num_output_tokens > 0
    assert longprompt.ours.num_output_tokens == 8 * 24 + 16
    assert "0.8 of the capacity of the slower side" in poisson.summary
    assert [each.workload for each in report.profiles] == ["agents", "judge", "poisson", "longprompt"]
    for each in report.profiles:
        assert each.num_steps > 0
        assert each.parts_s["head"] > 0
        assert each.parts_s["linears"] + each.parts_s["layers in one call"] > 0
        assert 0 < each.explained <= 1
    assert report.profiles[1].parts_s["constraints"] > 0
