"""Programs over the lines of a file, from the command line's side."""

from __future__ import annotations

import datetime
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import rtlang as rt
from rtlang.__main__ import app
from rtlang.console.source import CommandError, read_rows
from rtlang.lang.rows.jsonl import JsonlSummary
from rtlang.testing import ScriptedRuntime


@rt.program
def ask(s: rt.State, text: str, day: datetime.date | None = None, style: str = "plain") -> Any:
    s += f"{style} {text} {day.isoformat() if day else ''}" + rt.gen("label")
    return s["label"]


def run_rows(program: rt.Program, arguments: dict[str, Any], batch: Path, out: Path, runtime: Any) -> JsonlSummary:
    return program.bind(**arguments).run_to_jsonl(read_rows(program, batch), out, runtime=runtime)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def runtime() -> Any:
    with ScriptedRuntime({"label": lambda prompt: prompt.upper()}) as runtime:
        yield runtime


def test_each_line_of_the_file_is_a_run(runtime: ScriptedRuntime, tmp_path: Path) -> None:
    batch, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    batch.write_text('{"text": "a", "day": "2026-11-29"}\n\n{"text": "b", "style": "short"}\n')
    summary = run_rows(ask, {"style": "long"}, batch, out, runtime)
    assert (summary.num_written, summary.num_failed) == (2, 0)
    values = {line["index"]: line["value"] for line in lines_of(out)}
    assert values == {0: "LONG A 2026-11-29", 1: "SHORT B "}
    with batch.open("a") as more:
        more.write('{"text": "c"}')
    summary = run_rows(ask, {"style": "long"}, batch, out, runtime)
    assert (summary.num_written, summary.num_skipped) == (1, 2)


def test_standard_input_is_read(runtime: ScriptedRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "a"}\n{"text": "b"}\n')))
    assert run_rows(ask, {}, Path("-"), tmp_path / "out.jsonl", runtime).num_written == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "in.jsonl:2: not JSON"),
        ("[1]", "in.jsonl:2: expected a JSON object"),
        ('{"text": "b", "day": "soon"}', "in.jsonl:2: day='soon'"),
    ],
)
def test_a_wrong_line_is_named_and_the_others_are_kept(
    line: str, said: str, runtime: ScriptedRuntime, tmp_path: Path
) -> None:
    batch, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    batch.write_text(f'{{"text": "a"}}\n{line}\n')
    with pytest.raises(CommandError, match=said):
        run_rows(ask, {}, batch, out, runtime)
    assert len(lines_of(out)) <= 1


def test_a_file_that_cannot_be_opened_is_named(runtime: ScriptedRuntime, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--batch .*missing\.jsonl: No such file"):
        run_rows(ask, {}, tmp_path / "missing.jsonl", tmp_path / "out.jsonl", runtime)


def test_the_command_runs_a_file_and_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "programs.py"
    source.write_text(
        "import rtlang as rt\n\n@rt.program\ndef ask(s, text: str):\n    s += text + rt.gen('y', max_tokens=2)\n"
    )
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"no": "b"}\n')

    def invoke(*more: str) -> Any:
        files = ["--batch", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")]
        settings = ["--model", "rtlang:tiny", "--num-pages", "64", "--threads", "1"]
        return CliRunner().invoke(app, ["run", f"{source}:ask", *files, *settings, *more])

    result = invoke()
    assert result.exit_code == 1
    assert "2 rows written" in result.stdout
    assert "1 rows failed; the same command runs them again" in result.stderr
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    result = invoke()
    assert (result.exit_code, len(lines_of(tmp_path / "out.jsonl"))) == (0, 2)
    assert "1 rows written" in result.stdout
    assert "1 were there already" in result.stdout
    assert "--json cannot be combined with --batch" in invoke("--json").stderr
    nowhere = CliRunner().invoke(
        app, ["run", f"{source}:ask", "--batch", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "no" / "out")]
    )
    assert "--out" in nowhere.stderr
    assert "No such file" in nowhere.stderr
    alone = CliRunner().invoke(app, ["run", f"{source}:ask", "--batch", "x"])
    assert "--batch requires --out" in alone.stderr
