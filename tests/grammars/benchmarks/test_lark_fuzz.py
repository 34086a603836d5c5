"""The comparison with lark: it finds no difference, and would report one."""

from __future__ import annotations

import pytest

from rtlang_grammars_bench import lark_fuzz


def test_random_grammars_agree_with_lark(capsys: pytest.CaptureFixture[str]) -> None:
    assert lark_fuzz.main(["--grammars", "25", "--first", "5000"]) == 0
    assert "0 differences" in capsys.readouterr().out


def test_a_difference_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lark_fuzz, "accepts", lambda grammar, text: True)
    assert lark_fuzz.main(["--grammars", "3"]) == 1
    assert "should be False" in capsys.readouterr().out
