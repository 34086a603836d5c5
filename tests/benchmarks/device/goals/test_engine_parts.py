"""The parts of the runtime run in triton's interpreter on tiny models; the times say nothing there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from typer.testing import CliRunner

from rtlang_bench.device import run
from rtlang_bench.device.goals.engine_parts import CONSTRAINTS, TINY, app

KINDS = {
    "live-small": ["live", "live", "decoding"],
    "live-large": ["live", "live"],
    "steps": ["decoding"] * 6,
    "variants": ["decoding"] * 6,
    "constrained": ["constrained"] * len(CONSTRAINTS),
    "profile": ["profile"] * 2,
}
"""Kinds of the figures of each part."""


@pytest.mark.long
@pytest.mark.parametrize("part", KINDS)
def test_a_part_writes_its_figures(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    file = tmp_path / "figures"
    arguments = [part, "--tiny", "--device", "interpreter", "--budget-s", "900", "--json", str(file)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    figures = [json.loads(line) for line in file.read_text().splitlines()]
    assert [figure["kind"] for figure in figures] == KINDS[part]
    if part == "live-small":
        assert [(each["rows"], each["arrivals"]) for each in figures[:2]] == [(2, "at once"), (2, "one by one")]
        assert all(each["tokens_per_s"] > 0 for each in figures)
        assert figures[2]["variant"] == "small"
    if part == "steps":
        variants = [(each["variant"], each["case"]["name"]) for each in figures]
        names = [f"batch {rows}" for rows in TINY.rows]
        assert variants == [(name, case) for name in ("floats", "float8 inputs", "float8") for case in names]


def test_wrong_texts_fail_their_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setattr(run, "check", lambda config, tell: False)
    file = tmp_path / "figures"
    found = CliRunner().invoke(app, ["texts", "--device", "interpreter", "--json", str(file)])
    assert found.exit_code == 1
    assert "FAILED texts: ArithmeticError: fewer than 95% of the outputs match the CPU's" in found.output
    assert json.loads(file.read_text()) == {"kind": "texts", "is_right": False}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stairs"], "stairs: expected steps, constrained"),
        (["steps", "--device", "cpu"], "--device cpu: expected cuda or interpreter"),
        (["steps", "--budget-s", "inf"], "--budget-s inf: expected a finite number"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], message: str) -> None:
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 1
    assert message in found.output
