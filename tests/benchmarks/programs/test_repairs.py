"""The trial of repairs against a retry loop."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from rtlang_bench.programs.repairs import Repairs, Row, app


def test_no_row_of_the_loop_is_missed_on_the_embedded_model() -> None:
    result = CliRunner().invoke(app, ["--documents", "12"])
    assert result.exit_code == 0, result.output
    assert "12 documents: " in result.output
    assert "0 missed" in result.output


@pytest.mark.parametrize(("repaired", "tokens", "is_met"), [(True, 13, True), (True, 14, False), (False, 9, False)])
def test_the_goal_is_all_rows_within_the_tokens(repaired: bool, tokens: int, is_met: bool) -> None:
    found = Repairs((Row(False, True, repaired, 10, tokens), Row(False, False, True, 10, tokens)))
    assert found.is_met is is_met
    assert found.num_missed == (not repaired)
    assert f"tokens {tokens / 10:.2f}x" in str(found)
