"""The evaluation: questions fit their forms, answers are judged by hand-written cases, and the command writes its figures."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tiny_model.evaluation import evaluate as evaluation
from tiny_model.evaluation.scores import (
    Judge,
    Row,
    Score,
    answer_equals,
    fields_right,
    is_right,
    markdown,
    members_of,
    result_of,
    vote,
)
from tiny_model.evaluation.tasks import DRAWS, KNOWN, TASKS, Form, Question, Task, questions, tools_in, type_schema

import rtlang as rt

EACH = [(task, draws) for task in TASKS for draws in task.draws]
COUNT = 20
BY_KEY = {task.key: task for task in TASKS}
SHEET = json.dumps({"name": "Ada", "age": 30, "role": "pilot", "home": "Rome", "traits": ["calm"], "motto": "Fly."})
STORY = "Once there lived a shy fox named Mira. One day she left. She ran. She slept. They ate. All was well."


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


@pytest.mark.parametrize(
    ("judge", "answer", "expected", "right"),
    [
        (Judge.EXACT, "yes", "yes", True),
        (Judge.EXACT, "yes ", "yes", False),
        (Judge.RECORD, '{"a":1,  "b": "x"}', '{"a": 1, "b": "x"}', True),
        (Judge.RECORD, '{"b": "x", "a": 1.0}', '{"a": 1, "b": "x"}', True),
        (Judge.RECORD, '{"a": 1}', '{"a": 1, "b": "x"}', False),
        (Judge.RECORD, '{"a": true}', '{"a": 1}', False),
        (Judge.RECORD, '{"a": 1', '{"a": 1}', False),
        (Judge.RECORD, "null", '{"a": null}', False),
        (Judge.RECORD, '{"a": [{"b": 1}]}', '{"a": [{"b": 1}]}', True),
        (Judge.RECORD, '{"a": [{"b": 2}]}', '{"a": [{"b": 1}]}', False),
        (Judge.SHEET, SHEET.replace("30", "41").replace("Fly.", "Look up."), SHEET, True),
        (Judge.SHEET, SHEET.replace("Ada", "Ana"), SHEET, False),
        (Judge.SHEET, SHEET.replace("30", '"30"'), SHEET, False),
        (Judge.SHEET, json.dumps(dict(reversed(json.loads(SHEET).items()))), SHEET, False),
        (Judge.SHEET, "no", SHEET, False),
        (Judge.RESULT, "thought: 1 + 1 = 3\nanswer: 12", "thought: 6 + 6 = 12\nanswer: 12", True),
        (Judge.RESULT, "answer: 1", "answer: 12", False),
        (Judge.RESULT, "12", "answer: 12", False),
        (Judge.LIST, "red, blue", "green, white", True),
        (Judge.LIST, "red, red", "green, white", False),
        (Judge.LIST, "red, blue, green", "green, white", False),
        (Judge.LIST, "red, fox", "green, white", False),
        (Judge.LIST, "red, blue", "1. green\n2. white", False),
        (Judge.LIST, "1. red\n2. blue", "1. green\n2. white", True),
        (Judge.LIST, "1. red\n3. blue", "1. green\n2. white", False),
        (Judge.LIST, '["red", "blue"]', '["green", "white"]', True),
        (Judge.LIST, "Pack light.", "Arrive early.", True),
        (Judge.LIST, "Feed the soil.", "Arrive early.", False),
        (Judge.STORY, STORY, STORY, True),
        (Judge.STORY, STORY.replace("They ate", "She ran"), STORY, False),
        (Judge.STORY, STORY[:-1], STORY, False),
        (Judge.STORY, "A fox named Mira. The end.", STORY, False),
    ],
)
def test_an_answer_is_judged_as_a_reader_would(judge: Judge, answer: str, expected: str, right: bool) -> None:
    assert is_right(judge, answer, expected) is right


def test_a_story_has_to_name_its_hero_where_the_prompt_does() -> None:
    other = STORY.replace("Mira", "Mina")
    assert is_right(Judge.STORY, other, STORY, "Tell me a story about a shy fox.")
    assert not is_right(Judge.STORY, other, STORY, "Tell me a story about Mira the fox.")
    assert is_right(Judge.STORY, STORY, STORY, "Tell me a story about Mira the fox.")


def test_numbers_are_equal_by_value_and_booleans_are_no_numbers() -> None:
    assert answer_equals({"a": [1, 2.0]}, {"a": [1.0, 2]})
    assert not answer_equals(True, 1)
    assert not answer_equals([], {})
    assert not answer_equals(None, 0)


def test_field_share_counts_the_fields_of_broken_answers_as_wrong() -> None:
    expected = ['{"a": 1, "b": 2}', '{"a": 1, "b": 2}']
    assert fields_right(['{"a": 1, "b": 3}', "oops"], expected) == 0.25
    assert fields_right(['[{"a": 1}, {"a": 3}]'], ['[{"a": 1}, {"a": 2}]']) == 0.5
    assert fields_right(['{"c": null}'], ['{"a": null, "c": null}']) == 0.5


def test_a_vote_takes_the_commonest_result_and_the_first_of_a_tie() -> None:
    assert vote(["answer: 3", "answer: 4", "x\nanswer: 4"]) == 4
    assert vote(["answer: 3", "nonsense", "answer: 4"]) == 3
    assert vote(["nonsense"]) is None
    assert result_of("answer: 4 apples") is None


def test_members_are_found_in_every_form_of_a_list() -> None:
    forms = ["a, b", "1. a\n2. b", "- a\n- b", '["a", "b"]']
    assert all(members_of(form) == ["a", "b"] for form in forms)
    assert members_of("[1") == []


def test_the_standard_error_is_the_binomial_one() -> None:
    score = Score(90, 100)
    assert score.share == 0.9
    assert score.standard_error == pytest.approx(0.03)
    assert str(score) == "90.0 ± 3.0"


def test_the_table_has_a_line_for_each_row_and_leaves_open_what_was_not_measured() -> None:
    rows = [Row("a task", "known", Score(1, 4, 0.5), Score(2, 4, 0.75)), Row("another", "known", Score(4, 4))]
    header, rule, first, second = markdown(rows).split("\n")
    assert header.count("|") == rule.count("|") == first.count("|") == second.count("|") == 7
    assert first == "| a task | known | 25.0 ± 21.7 | 50.0 | 50.0 ± 25.0 | 75.0 |"
    assert second == "| another | known | 100.0 ± 0.0 |  |  |  |"


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(dtype="float32", num_threads=1, cache_bytes=64 << 20) as running:
        yield running


def test_a_constrained_answer_has_its_form(runtime: rt.Runtime) -> None:
    for key in ("sum", "sentiment", "sheet"):
        asked = questions(BY_KEY[key], KNOWN, 3)
        for question, text in zip(
            asked, evaluation.answers(runtime, BY_KEY[key], asked, is_constrained=True), strict=True
        ):
            assert question.form is not None
            if question.form.options is not None:
                assert text in question.form.options
            elif question.form.schema is not None:
                assert list(json.loads(text)) == list(json.loads(question.expected))
            else:
                assert text.isdigit()


def test_a_question_that_is_refused_counts_as_wrong(runtime: rt.Runtime, caplog: pytest.LogCaptureFixture) -> None:
    asked = [Question([("user", "x " * 5000)], "x", Form(regex="x")), Question([("user", "Hi")], "x")]
    task = Task("t", "a task", lambda draw: asked[0], Judge.EXACT)
    assert evaluation.answers(runtime, task, asked, is_constrained=False)[0] == ""
    assert "counted as wrong" in caplog.text


def test_the_rows_of_a_task_repeat(runtime: rt.Runtime) -> None:
    rows = evaluation.rows_of(runtime, BY_KEY["sum"], 4)
    assert [row.draws for row in rows] == list(BY_KEY["sum"].draws)
    assert all(row.constrained is not None and row.constrained.num_asked == 4 for row in rows)
    assert rows == evaluation.rows_of(runtime, BY_KEY["sum"], 4)


def test_the_command_prints_the_table_and_writes_all_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    evaluation.main(["--count", "2", "--tasks", "sum", "--threads", "1", "--markdown", "--json", str(file)])
    printed = capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert printed.count("| sum, product or quotient |") == 2 == len(figures["rows"])
    assert figures["count"] == figures["rows"][0]["free"]["num_asked"] == 2
    assert figures["checkpoint"] == "rtlang:tiny"
    assert figures["votes"] is None


def test_what_could_not_be_measured_or_written_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, code, reason in (
        (["--json", str(tmp_path)], 2, "no file can be there"),
        (["--json", str(tmp_path / "nowhere" / "x.json")], 2, "no file can be there"),
        (["--checkpoint", str(tmp_path / "nowhere")], 1, "no such directory"),
        (["--dtype", "int9"], 1, "dtype = 'int9'"),
    ):
        with pytest.raises(SystemExit) as ended:
            evaluation.main(wrong)
        assert ended.value.code == code
        assert reason in capsys.readouterr().err
