"""The host's time on a pretended device: all of it but the clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from typer.testing import CliRunner

from rtlang_bench.device import host_time
from rtlang_bench.device.pretended import ENVIRONMENT


def test_the_command_times_free_and_constrained_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():  # which the command sets
        monkeypatch.setenv(name, value)
    figures = tmp_path / "figures"
    options = ["--rows", "3", "--turns", "1", "--tokens", "12", "--kinds", "free,records", "--json", str(figures)]
    done = CliRunner().invoke(host_time.app, options)
    assert done.exit_code == 0, done.output
    free, records = map(json.loads, figures.read_text().splitlines())
    assert (free["kind"], free["ratio"], free["num_rows"]) == ("free", 1.0, 3)
    assert (records["kind"], records["num_rows"]) == ("records", 3)
    assert records["step_ms"] > 0
    assert records["num_replayed"] >= 6
    assert set(records["parts_ms"]) == {"schedule", "launch", "sample", "collect", "apply"}
    assert str(host_time.GOAL) in done.output


@pytest.mark.parametrize("options", [["--kinds", "free,typo"], ["--rows", "8,none"], ["--rows", "0"]])
def test_options_that_are_wrong_are_named(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(host_time.app, options)
    assert done.exit_code == 1
    assert " ".join(options) in done.output
