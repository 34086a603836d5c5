"""The commands `rtlang bench language` and `rtlang bench programs`; the latter's figures are tested in tests/bench/programs."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.bench import language
from rtlang.bench.language import Cost


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
