"""Options that cannot be run are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.bench.comparison.options import BenchOptions
from rtlang.contract.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"workloads": ("chess",)}, "chess"),
        ({"workloads": ()}, "workload"),
        ({"repeats": 0}, "repeats"),
        ({"batch_size": 0}, "batch_size"),
        ({"baseline": "guess"}, "baseline"),
        ({"shape": "round"}, "shape"),
        ({"baseline": "llama.cpp"}, "llama_cpp"),
        ({"baseline": "llama.cpp", "llama_cpp": Path("/nowhere")}, "/nowhere"),
        ({"workloads": ("steps",)}, "baseline = 'transformers'"),
        ({"workloads": ("steps", "mixed")}, "workload"),
        ({"workloads": ("states", "tree")}, "states"),
        ({"workloads": ("states",), "baseline": "http://localhost:1/v1"}, "baseline"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        BenchOptions(**options)  # type: ignore[arg-type]


def test_a_quick_run_has_a_budget_unless_repeats_are_given() -> None:
    assert BenchOptions(is_quick=True).budget_s < float("inf")
    assert BenchOptions(is_quick=True, repeats=2).budget_s == float("inf")
    assert (BenchOptions().num_repeats, BenchOptions(repeats=2).num_repeats) == (3, 2)
    assert BenchOptions(baseline="http://localhost:1/v1").is_server
