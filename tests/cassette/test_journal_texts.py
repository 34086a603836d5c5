"""Texts of journals by path are those of the results of their runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.cassette.journal_texts import is_journal, texts_of_journal
from rtlang.contract.errors import JournalError
from rtlang.contract.pictures.run_diff import texts_of


@rt.program
def agent(s: Any) -> None:
    for index, fork in enumerate(s.fork(2)):
        fork += f"go {index} " + rt.gen("tip", 4, temperature=1.0, n=2)

    def turn(state: Any) -> None:
        state += "x" + rt.gen("step", 3)

    rt.repeat(turn, at_most=2, state=s)
    rt.call(lambda: {"a": [1]})


def test_a_journal_has_the_texts_of_its_run(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with rt.Runtime() as runtime, rt.journal(path, runtime, arguments="abc"):
        result = agent.run()
    assert is_journal(path)
    arguments, texts = texts_of_journal(path)
    assert arguments == "abc"
    expected = texts_of(result.record())
    assert {"fork[1]/tip[1]", "repeat[1]/step"} <= set(texts)
    assert texts == {name: expected[name] for name in texts}
    assert set(expected) == set(texts)
    (tmp_path / "other").write_bytes(b"{}")
    assert not is_journal(tmp_path / "other")
    with pytest.raises(JournalError):
        texts_of_journal(tmp_path / "other")
