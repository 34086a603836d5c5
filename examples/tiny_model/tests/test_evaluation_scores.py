"""When an answer counts as right, and what scores say. The oracle is written out by hand."""

import json

import pytest
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

SHEET = json.dumps({"name": "Ada", "age": 30, "role": "pilot", "home": "Rome", "traits": ["calm"], "motto": "Fly."})
STORY = "Once there lived a shy fox named Mira. One day she left. She ran. She slept. They ate. All was well."


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
