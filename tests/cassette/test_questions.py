"""Open questions of journals: found while runs go on, and answered with values that fit."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from rtlang.cassette.answers import AnswersFile
from rtlang.cassette.journal_file import JournalFile
from rtlang.cassette.questions import OpenQuestion, give_answer, open_questions
from rtlang.contract.errors import JournalError, QuestionError

HEAD = {"model": "m@1", "seed": 7, "inputs": {}, "run": "abc"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def intent(function: str, args: list[Any], policy: str = "once", at: float = 5.0) -> dict[str, Any]:
    return {"function": function, "args": args, "policy": policy, "at": at}


@contextlib.contextmanager
def journal(path: Path, intents: dict[str, Any]) -> Any:
    with contextlib.closing(JournalFile(path)) as file:
        if not file.head:
            file.begin(HEAD)
            file.note_intents(intents)
        yield file


INTENTS = {
    "ask": intent("rt.ask", ["Pay?", {"type": "boolean"}, None], at=3.0),
    "fork[1]/ask": intent("rt.ask", ["Who?", None, 60.0], at=2.0),
    "pay()": intent("pay", [7, {"$int": str(1 << 70)}], "once"),
    "ship()": intent("ship", ["a"], "ask"),
    "log()": intent("log", [], "retry"),
}


def test_questions_are_those_without_an_answer_and_calls_of_dead_runs(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    with journal(path, INTENTS) as file:
        assert [each.path for each in open_questions(path)] == ["fork[1]/ask", "ask"], "the calls may be running"
        file.note_unknown("ship()")
        assert [each.path for each in open_questions(path)] == ["fork[1]/ask", "ask", "ship()"]
        file.note_answer("ask", {"value": True}, is_effect=True)
    who, pay, ship = open_questions(path)
    assert (who.path, who.text, who.schema, who.timeout_s, who.is_unknown) == ("fork[1]/ask", "Who?", None, 60.0, False)
    assert (pay.path, pay.is_unknown) == ("pay()", True)
    assert f"pay(7, {1 << 70})" in pay.text
    assert ship.to_plain()["journal"] == str(path)
    with journal(path, {}) as file:
        file.note_finished()
    assert open_questions(path) == []


def test_a_directory_is_searched_and_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "notes").write_text("hello")
    (tmp_path / "old").write_bytes(b"rtlang-journal 1\n")
    for name in ("one", "a/b/two"):
        with journal(tmp_path / name, {"ask": INTENTS["ask"]}):
            pass
    assert {Path(each.journal).name for each in open_questions(tmp_path)} == {"one", "two"}
    with pytest.raises(JournalError, match="expected a file that a journal made"):
        open_questions(tmp_path / "notes")
    with pytest.raises(FileNotFoundError):
        open_questions(tmp_path / "none")


def test_answers_are_checked_and_given_once(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    with journal(path, INTENTS):
        who, ask = open_questions(path)
        with pytest.raises(QuestionError, match=r"the answer .*maybe.* does not fit"):
            give_answer(ask, "maybe")
        give_answer(ask, False)
        (again,) = (each for each in open_questions(path) if each.path == "ask")
        assert again.is_answered
        with pytest.raises(QuestionError, match="it has an answer already"):
            give_answer(again, True)
        AnswersFile(str(path)).refuse("ask", 0, "no")
        (again,) = (each for each in open_questions(path) if each.path == "ask")
        assert (again.is_answered, again.refused) == (False, "no")
        with pytest.raises(QuestionError, match="expected text"):
            give_answer(who, 5)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (None, "5", "5"),
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, '"5"', "5"),
        ({"type": "string", "enum": ["a", "b"]}, "a", "a"),
        ({"type": "integer"}, "5", 5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "Yes ", True),
        ({"type": "boolean"}, "n", False),
        (SCHEMA, '{"n": 3}', {"n": 3}),
        (True, "null", None),
    ],
)
def test_typed_answers_are_json_or_text(schema: Any, text: str, value: Any) -> None:
    assert OpenQuestion("", "ask", "?", schema, False, 0.0, None, False, None).read(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("retry", {"outcome": "retry"}),
        (" fail ", {"outcome": "fail"}),
        ("done", {"outcome": "done"}),
        ('{"outcome": "done", "value": [1]}', {"outcome": "done", "value": [1]}),
        ("yes", None),
        ('{"outcome": "retry", "value": 1}', None),
    ],
)
def test_outcomes_of_calls_are_words_or_objects(text: str, value: Any) -> None:
    question = OpenQuestion("", "pay()", "?", {}, True, 0.0, None, False, None)
    if value is None:
        with pytest.raises(QuestionError, match="does not fit: expected"):
            question.read(text)
    else:
        assert question.read(text)["outcome"] == value["outcome"]


def test_wrong_answers_name_the_question() -> None:
    question = OpenQuestion("", "ask", "How many?", SCHEMA, False, 0.0, None, False, None)
    for text in ("3", '{"n": "x"}', '{"n": 1, "m": 2}', "{"):
        with pytest.raises(QuestionError, match=r"the question 'How many\?' at 'ask': the answer"):
            question.read(text)
