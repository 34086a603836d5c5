"""Answers beside a journal: any process may add them; those that do not fit leave the question open."""

from __future__ import annotations

import shlex
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rtlang.cassette.answers import AnswersFile, GivenAnswer, JournalDesk, how_to_answer
from rtlang.contract.errors import QuestionError, UnansweredError
from rtlang.contract.process.call_context import Question


def number(answer: Any) -> Any:
    if not isinstance(answer, int):
        raise ValueError("expected a number")
    return answer


def question(path: str = "ask", **options: Any) -> Question:
    return Question("How many?", path, check=number, **options)


def test_answers_are_read_as_they_come_and_broken_lines_are_skipped(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    one, other = AnswersFile(journal), AnswersFile(journal)
    assert one.of("ask") == []
    other.add("ask", {"a": [1, None]})
    assert one.of("ask") == [GivenAnswer({"a": [1, None]})]
    with open(one.path, "ab") as file:
        file.write(b'{"path": "ask", "ans')  # killed while it wrote
    assert one.of("ask") == [GivenAnswer({"a": [1, None]})]
    other.add("fork[1]/ask", "yes")
    other.refuse("ask", 0, "too long")
    with open(one.path, "ab") as file:
        file.write(b'[1]\n{"path": 3, "answer": 1}\n{"path": "none", "refused": 9, "reason": ""}\n')
    assert one.of("ask") == [GivenAnswer({"a": [1, None]}, "too long")]
    assert one.of("fork[1]/ask") == AnswersFile(journal).of("fork[1]/ask") == [GivenAnswer("yes")]
    with pytest.raises(ValueError, match="JSON"):
        one.add("ask", float("nan"))


def test_a_run_that_waits_takes_the_first_answer_that_fits(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    desk, found = JournalDesk(journal, None), list[Any]()
    waiting = threading.Thread(target=lambda: found.append(desk.answer(question(), None)))
    waiting.start()
    file = AnswersFile(journal)
    file.add("other", 1)
    file.add("ask", "many")
    file.add("ask", 7)
    waiting.join(10)
    assert found == [7]
    assert [each.refused for each in file.of("ask")] == ["the answer 'many' does not fit: expected a number", None]
    assert desk.has_answer("ask")
    assert not desk.has_answer("none")


def test_without_an_answer_the_run_ends_when_it_may_not_wait(tmp_path: Path) -> None:
    desk = JournalDesk(str(tmp_path / "journal"), 0)
    with pytest.raises(UnansweredError, match=r"'How many.' at 'ask': .*rtlang answer .*journal ask VALUE") as found:
        desk.answer(question(), None)
    assert (found.value.path, found.value.question) == ("ask", "How many?")
    with pytest.raises(QuestionError, match="nobody answered within timeout_s = 5"):
        desk.answer(question(timeout_s=5.0, asked_at=time.time() - 6), None)


def test_a_handler_answers_or_leaves_the_question_to_others(tmp_path: Path) -> None:
    desk = JournalDesk(str(tmp_path / "journal"), 0)
    assert desk.answer(question(), lambda asked: len(asked.text)) == 9

    async def later(asked: Question) -> int:
        return 4

    assert desk.answer(question(), later) == 4

    def leaves(asked: Question) -> Any:
        raise UnansweredError(asked.path, asked.text, "not here")

    with pytest.raises(UnansweredError, match="rtlang answer"):
        desk.answer(question(), leaves)
    with pytest.raises(QuestionError, match="does not fit: expected a number"):
        desk.answer(question(), lambda asked: "x")
    with pytest.raises(ZeroDivisionError):
        desk.answer(question(), lambda asked: 1 // 0)


def test_the_command_that_answers_is_quoted_for_a_shell() -> None:
    command = how_to_answer("my runs/a.journal", "fork[1]/ask").split("`")[1]
    assert shlex.split(command) == ["rtlang", "answer", "my runs/a.journal", "fork[1]/ask", "VALUE"]
    assert "'fork[1]/ask'" in command


def test_a_closed_desk_lets_all_go(tmp_path: Path) -> None:
    desk, errors = JournalDesk(str(tmp_path / "journal"), None), list[Exception]()

    def wait() -> None:
        try:
            desk.answer(question(), None)
        except UnansweredError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    desk.close()
    waiting.join(10)
    assert len(errors) == 1
