"""The command `python -m rtlang_bench.restart`."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang_bench import restart
from rtlang_bench.restart import WarmRestart, app


@pytest.mark.parametrize(("warm_s", "code"), [(0.1, 0), (0.9, 1)])
def test_the_line_is_printed_and_a_missed_goal_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, warm_s: float, code: int
) -> None:
    def measured(config: Any, *, num_tokens: int, rounds: int, tell: Any) -> WarmRestart:
        return WarmRestart(num_tokens, 1, (1.0,) * rounds, (warm_s,) * rounds, is_same_text=True)

    monkeypatch.setattr(restart, "measure_warm_restart", measured)
    result = CliRunner().invoke(app, ["--tokens", "100", "--rounds", "2"])
    assert result.exit_code == code
    assert result.stdout == f"{measured(None, num_tokens=100, rounds=2, tell=None)}\n"
