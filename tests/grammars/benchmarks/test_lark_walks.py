"""Random walks meet no dead end, and would report one."""

from __future__ import annotations

import pytest

from rtlang_grammars.machine.lexed.living_places import LivingPlaces
from rtlang_grammars_bench import lark_walks
from tests.support.long_tests import sized


def test_walks_meet_no_dead_end(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--grammars", str(sized(24)), "--first", "100", "--lexer", "longest", "--lexer", "lark"]
    assert lark_walks.main(options) == 0, capsys.readouterr().out


def test_a_dead_end_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(LivingPlaces, "is_alive", LivingPlaces._may_live)
    assert lark_walks.main(["--first", "12", "--grammars", "1", "--lexer", "longest"]) == 1
    assert "completion after" in capsys.readouterr().out
