"""The measurement of the best of several candidates; no timing decides."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.programs.__main__ import app
from rtlang_bench.programs.best_of import SHAPE, run_best_of


def test_both_sides_are_timed(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["--workload", "best_of", "--quick", "--json", str(path)])
    assert result.exit_code == 0, result.output
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert figures["one"]["total_s"]["median"] >= figures["one"]["prompt_s"] > 0
    assert figures["many"]["step_s"] > 0
    assert figures["marks"][0]["limit"] == 1.6
    assert "best of 16" in result.output


def test_the_ratio_is_that_of_the_pairs() -> None:
    report = run_best_of(RuntimeConfig(), is_quick=True, repeats=2)
    assert report.num_pairs == 2
    assert report.ratio.low <= report.ratio.median <= report.ratio.high
    assert report.is_met is (report.ratio.median <= 1.6)


def test_the_shape_has_half_a_billion_weights() -> None:
    hidden, layers = SHAPE["hidden_size"], SHAPE["num_hidden_layers"]
    head = hidden // SHAPE["num_attention_heads"]
    attention = 2 * hidden * hidden + 2 * hidden * SHAPE["num_key_value_heads"] * head
    total = SHAPE["vocab_size"] * hidden + layers * (attention + 3 * hidden * SHAPE["intermediate_size"])
    assert 0.45e9 < total < 0.55e9
