"""The command `rtlang bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.bench import language
from rtlang.bench.comparison import sides
from rtlang.bench.language import Cost
from rtlang.bench.workloads import requests
from rtlang_kernels.cpu.machine_rates import MachineRates
from tests.support.models.tiny_models import make_checkpoint


def test_tables_are_printed_and_figures_and_a_picture_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "SCHEMAS", requests.SCHEMAS[:3])
    monkeypatch.setattr(requests, "JSON_REQUESTS", 3)
    monkeypatch.setattr(sides, "machine_rates", lambda num_threads, **_: MachineRates(1e10, 1e11))
    make_checkpoint(tmp_path / "long", max_position_embeddings=1024)
    command = [
        "bench", "--workload", "json", "--quick", "--repeats", "1", "--markdown", "--json", f"{tmp_path}/figures.json",
        "--model", f"{tmp_path}/long", "--threads", "1", "--num-pages", "800", "--dtype", "float32",
        "--profile", "--picture", f"{tmp_path}/figures.svg",
    ]  # fmt: skip
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("| workload |")
    figures = json.loads((tmp_path / "figures.json").read_text())
    (row,), (profile,) = figures["rows"], figures["profiles"]
    assert row["workload"] == profile["workload"] == "json"
    assert f"({row['ratio_min']:.2f}-{row['ratio_max']:.2f})" in result.stdout
    assert "\n| part | json |\n" in result.stdout
    assert f">{row['ratio']:.2f}</text>" in (tmp_path / "figures.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--workload", "chess"], "workload = 'chess': expected one of shared, tree, mixed, json"),
        (["--workload", ","], "expected one of shared"),
        (["--picture", "{}/figures.png"], "expected a name that ends with .svg or .html"),
        (["--workload", "speculate", "--profile"], "has neither --picture nor --profile"),
        (["--json", "{}/no/such/folder.json"], "the parent folder does not exist"),
        (["--model", "{}/nowhere"], "cannot load the model"),
        (["--dtype", "int3"], "dtype = 'int3'"),
        (["--device", "cuda"], "a GPU is measured by `python -m rtlang_bench.device` in a checkout"),
        (["fleet-soak", "--minutes", "3"], "`python -m rtlang_bench.fleet_soak` in a checkout"),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path: Path, arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["bench", *(argument.format(tmp_path) for argument in arguments)])
    assert result.exit_code == 1
    assert told in result.stderr.splitlines()[-1]


def test_language_tells_every_figure_and_fails_over_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    low, high = Cost("fast", 1.0, 1.0, 1.0, 60.0), Cost("slow", 99.0, 1.0, 100.0, 60.0)
    monkeypatch.setattr(language, "measure_calls", lambda repeats: [low])
    result = CliRunner().invoke(app, ["bench", "language", "--repeats", "2"])
    assert (result.exit_code, result.stdout) == (0, f"{low}\n")
    monkeypatch.setattr(language, "measure_calls", lambda repeats: [low, high])
    result = CliRunner().invoke(app, ["bench", "language"])
    assert (result.exit_code, result.stdout) == (1, f"{low}\n{high}\n")
    assert "exceeds a limit" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--pools", "1,x"], "--pools 1,x: expected numbers above 0"),
        (["--pools", "0"], "--pools 0: expected numbers above 0"),
        (["--doors", "chat,fax"], "--doors chat,fax: expected names among chat, responses, messages, websocket"),
        (["--side", "both"], "--side both: expected lru or sessions"),
        (["--json", "/no/such/folder/x.json"], "the parent folder does not exist"),
    ],
)
def test_agents_refuses_unknown_options_before_it_starts(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["bench", "agents", *arguments])
    assert result.exit_code != 0
    assert told in " ".join(result.stderr.split())
