"""Questions in the terminal of a run."""

from __future__ import annotations

import io
from typing import Any

import pytest

from rtlang.console.questions.prompt import asked, hint, terminal_handler
from rtlang.contract.errors import UnansweredError
from rtlang.contract.process.call_context import UNKNOWN_SCHEMA, Question


def even(answer: Any) -> Any:
    if answer % 2:
        raise ValueError("expected an even number")
    return answer


def test_it_asks_until_an_answer_fits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("many\n3\n4\n"))
    assert asked(Question("How\x1b[2Jmany?", "ask", {"type": "integer"}, check=even)) == 4
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "a whole number" in shown
    assert "the answer 'many' does not fit" in shown
    assert "expected an even number" in shown


def test_the_end_of_input_leaves_the_question_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(UnansweredError, match="standard input has ended"):
        asked(Question("?", "ask"))
    assert terminal_handler() is None, "no terminal"


@pytest.mark.parametrize(
    ("schema", "is_unknown", "text"),
    [
        (None, False, "text"),
        ({"type": "boolean"}, False, "yes or no"),
        ({"enum": ["a", 1]}, False, 'one of "a", 1'),
        ({"type": "number"}, False, "a number"),
        ({"type": "string"}, False, "text"),
        ({"type": "array"}, False, "JSON of the schema"),
        (UNKNOWN_SCHEMA, True, "done, retry, fail"),
    ],
)
def test_hints_say_what_to_type(schema: Any, is_unknown: bool, text: str) -> None:
    assert text in hint(schema, is_unknown)
