"""Questions of the evaluation: the expected answer is right by its judge and fits the form that it would be held to."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from tiny_model.evaluation.scores import Judge, is_right
from tiny_model.evaluation.tasks import DRAWS, TASKS, Question, Task, questions, tools_in, type_schema

EACH = [(task, draws) for task in TASKS for draws in task.draws]
COUNT = 40


def fits(question: Question) -> bool:
    form = question.form
    if form is None:
        return True
    if form.options is not None:
        return question.expected in form.options
    if form.regex is not None:
        return re.fullmatch(form.regex, question.expected) is not None
    assert form.schema is not None
    return Draft202012Validator(form.schema).is_valid(json.loads(question.expected))


@pytest.mark.parametrize(("task", "draws"), EACH, ids=[f"{task.key}, {draws}" for task, draws in EACH])
def test_the_expected_answer_is_right_and_fits_its_form_and_nonsense_is_wrong(task: Task, draws: str) -> None:
    for question in questions(task, draws, COUNT):
        assert is_right(task.judge, question.expected, question.expected), question
        assert not is_right(task.judge, "nothing of the kind", question.expected), question
        assert fits(question), question
        assert question.prompt[-1][0] in ("user", "text")


def test_questions_are_the_same_at_every_call_and_different_for_every_kind_of_draws() -> None:
    task = TASKS[0]
    again = {draws: questions(task, draws, 5) for draws in task.draws}
    assert again == {draws: questions(task, draws, 5) for draws in task.draws}
    assert len({str(asked) for asked in again.values()}) == len(task.draws)


def test_every_task_has_a_key_of_its_own_and_known_draws() -> None:
    assert len({task.key for task in TASKS}) == len({task.name for task in TASKS}) == len(TASKS)
    assert all(set(task.draws) <= set(DRAWS) for task in TASKS)


def test_a_schema_has_the_types_of_the_record_and_lets_any_field_be_missing_where_one_is() -> None:
    record = {"name": "Ada", "age": 3, "price": 1.5, "is_new": True, "items": [{"item": "cup", "quantity": 2}]}
    validator = Draft202012Validator(type_schema(record))
    assert validator.is_valid(record)
    assert not validator.is_valid({**record, "age": "3"})
    assert not validator.is_valid({**record, "age": None})
    assert not validator.is_valid({key: value for key, value in record.items() if key != "age"})
    assert not validator.is_valid({**record, "items": [{"item": "cup"}]})
    assert Draft202012Validator(type_schema([{"room": 12}, {"room": "B3"}])).is_valid([{"room": "A1"}, {"room": 7}])
    with_gap = Draft202012Validator(type_schema({**record, "age": None}))
    assert with_gap.is_valid({**record, "name": None})
    assert with_gap.is_valid({**record, "age": 7})


@pytest.mark.parametrize(
    "line",
    [
        "- set_timer(minutes, label)",
        "- set_timer(minutes, label): Sets a timer.",
        "- set_timer(minutes: integer, label: string)",
        '{"name": "set_timer", "description": "x", "parameters": {"minutes": "integer", "label": "string"}}',
        "set_timer: Sets a timer. Parameters: minutes, label",
    ],
)
def test_tools_are_read_in_every_format(line: str) -> None:
    assert tools_in(f"Tools:\n{line}\nWhat is up?") == {"set_timer": ["minutes", "label"]}


def test_the_tools_that_a_prompt_lists_allow_no_other_call() -> None:
    task = next(task for task in TASKS if task.key == "tools")
    for question in questions(task, "known", 30):
        assert question.form is not None
        assert question.form.schema is not None
        other = json.loads(question.expected) | {"name": "not_a_tool"}
        assert not Draft202012Validator(question.form.schema).is_valid(other)


def test_a_plain_text_question_ends_before_its_label() -> None:
    task = next(task for task in TASKS if task.key == "sentiment")
    plain = [question for question in questions(task, "known", 60) if question.prompt[0][0] == "text"]
    assert len(plain) > 3
    for question in plain:
        assert len(question.prompt) == 1
        assert question.prompt[0][1].endswith(": ")


def test_constrained_tasks_are_those_with_one_form_of_answer() -> None:
    without = {task.key for task in TASKS if questions(task, "known", 1)[0].form is None}
    assert without == {
        "facts",
        "lookup",
        "catalogue",
        "compare",
        "told",
        "copy",
        "words",
        "rewriting",
        "lists",
        "story",
    }
    assert {task.judge for task in TASKS} == set(Judge)
