"""`rtlang quantize`: what it prints and writes, and mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rtlang as rt
from rtlang.__main__ import app


def test_a_model_is_made_that_loads_and_its_error_is_told(tmp_path: Path) -> None:
    out, report = tmp_path / "tiny4", tmp_path / "report.json"
    found = CliRunner().invoke(
        app, ["quantize", "rtlang:tiny", str(out), "--calibrate", "sample", "--report", str(report)]
    )
    assert found.exit_code == 0, found.output
    assert "self_attn.q_proj" in found.output
    assert "channels scaled" in found.output
    described = json.loads(report.read_text())
    assert described["predictions"]["agreement"] > 0.8
    assert f"{described['predictions']['divergence']:.4f} nats" in found.output

    @rt.program
    def greet(s: Any) -> None:
        s += rt.user("Hello") + rt.assistant(rt.gen("answer", max_tokens=4))

    with rt.Runtime(str(out)) as runtime:
        assert greet.run(runtime=runtime)["answer"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rtlang:tiny", "OUT", "--group", "48"], "--group 48: expected 32, 64 or 128"),
        (["rtlang:tiny", "OUT", "--calibrate", "none.txt"], "none.txt: cannot be read"),
        (["missing", "OUT"], "no such directory"),
        (["rtlang:tiny", "FILE/below", "--no-comparison"], "file/below: cannot be written: "),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    paths = {"OUT": str(tmp_path / "out"), "FILE": str(tmp_path / "file")}
    for name, path in paths.items():
        arguments = [each.replace(name, path) for each in arguments]
    found = CliRunner().invoke(app, ["quantize", *arguments])
    assert found.exit_code == 1
    assert message in found.output
    assert len(found.output.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
