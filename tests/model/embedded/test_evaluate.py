"""Scoring of answers; the questions that the scores stand on."""

import json

import pytest

from rtlang.model.embedded import corpus
from rtlang.model.embedded.evaluate import (
    TASKS,
    UNSEEN_INSTRUCTIONS,
    field_share,
    last_turn,
    same_record,
    same_result,
    sheet_fits,
)
from rtlang.model.embedded.words import Draw

SHEET = json.dumps({"name": "Ada", "age": 30, "role": "pilot", "home": "Rome", "traits": ["calm"], "motto": "Fly."})


def test_records_are_compared_as_json() -> None:
    assert same_record('{"a":1,  "b": "x"}', '{"a": 1, "b": "x"}')
    assert not same_record('{"a": 2}', '{"a": 1}')
    assert not same_record('{"a": 1', '{"a": 1}')


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (SHEET.replace("30", "41").replace("Fly.", "Look up."), True),
        (SHEET.replace("Ada", "Ana"), False),
        (SHEET.replace("30", '"30"'), False),
        (json.dumps(dict(reversed(json.loads(SHEET).items()))), False),
        ("no", False),
    ],
)
def test_a_sheet_may_invent_only_what_the_prompt_leaves_open(answer: str, expected: bool) -> None:
    assert sheet_fits(answer, SHEET) is expected


def test_only_the_number_after_answer_counts() -> None:
    assert same_result("thought: 1 + 1 = 3\nanswer: 12", "answer: 12")
    assert not same_result("answer: 1", "answer: 12")
    assert not same_result("12", "answer: 12")


def test_field_share_counts_the_fields_of_broken_answers_as_wrong() -> None:
    expected = ['{"a": 1, "b": 2}', '{"a": 1, "b": 2}']
    assert field_share(['{"a": 1, "b": 3}', "oops"], expected) == 0.25


@pytest.mark.parametrize(("name", "split", "task", "is_right"), TASKS, ids=[task[0] for task in TASKS])
def test_the_expected_answer_is_right_and_another_is_wrong(
    name: str, split: object, task: object, is_right: object
) -> None:
    draw = Draw(3, split)  # type: ignore[arg-type]
    question = last_turn(task, draw, is_right)  # type: ignore[arg-type]
    assert question.is_right(question.expected, question.expected), name
    assert not question.is_right("nothing of the kind", question.expected), name


def test_the_unseen_wordings_are_not_in_the_corpus() -> None:
    openings = ["structured data", "Look at what follows", "Parse:", "Keys wanted", "Convert to a record"]
    assert all(any(opening in wording for opening in openings) for wording in UNSEEN_INSTRUCTIONS)
    draw = Draw(77)
    texts = " ".join(content for _ in range(3000) for _, content in corpus.conversation(draw))
    assert not [opening for opening in openings if opening in texts]
