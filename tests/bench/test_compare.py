from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.bench import compare as module
from rtlang.bench import workloads
from rtlang.bench.compare import BenchOptions, run_benchmark
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from tests.support.tiny_models import make_checkpoint


@pytest.fixture
def small_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same shapes with few and short texts."""
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
        "SCHEMAS": workloads.SCHEMAS[:3],
    }.items():
        monkeypatch.setattr(workloads, name, value)


def test_both_sides_do_the_same_work_on_every_workload(small_workloads: None, tmp_path: Path) -> None:
    directory = make_checkpoint(tmp_path / "model", max_position_embeddings=1024)
    config = RuntimeConfig(model=str(directory), dtype="float32", num_threads=1, num_pages=512)
    lines: list[str] = []
    report = run_benchmark(config, BenchOptions(repeats=2), command="rtlang bench --repeats 2", tell=lines.append)
    assert [row.workload for row in report.rows] == ["shared", "tree", "mixed", "json"]
    shared, tree, mixed, constrained = report.rows
    assert report.fp32_equal == report.fp32_compared == 6 - 2
    for row, num_tokens in [(shared, 4 * 5), (tree, 6 * 4)]:
        assert row.ours.num_output_tokens == row.baseline.num_output_tokens == num_tokens
        assert row.num_pairs == 2
    for row in (shared, tree, mixed):
        assert row.num_equal == row.num_compared > 0
        assert row.ratio > 0
        assert row.cpu_ratio is not None
    assert shared.ours.cached_share > 0.5
    assert shared.baseline.cached_share == 0.0
    assert mixed.ours.cached_share < 0.05  # texts may begin with the same token
    assert constrained.ours.num_output_tokens > 0
    assert report.model == directory.name
    assert report.command == "rtlang bench --repeats 2"
    assert any("tree" in line for line in lines)


def test_a_quick_run_stops_repeating_when_its_time_is_used_up(
    small_workloads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_BUDGET_S", 0.0)
    directory = make_checkpoint(tmp_path / "model", max_position_embeddings=1024)
    config = RuntimeConfig(model=str(directory), dtype="float32", num_threads=1, num_pages=512)
    report = run_benchmark(config, BenchOptions(workloads=("mixed",), is_quick=True))
    (row,) = report.rows
    assert row.num_pairs == 1
    assert any("quick" in note for note in report.notes)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"workloads": ("chess",)}, "chess"),
        ({"workloads": ()}, "workload"),
        ({"repeats": 0}, "repeats"),
        ({"batch_size": 0}, "batch_size"),
        ({"baseline": "guess"}, "baseline"),
        ({"shape": "round"}, "shape"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        BenchOptions(**options)  # type: ignore[arg-type]


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="nowhere"):
        run_benchmark(RuntimeConfig(model=str(tmp_path / "nowhere")), BenchOptions())
