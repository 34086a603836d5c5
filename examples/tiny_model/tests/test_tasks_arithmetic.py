"""Sums and comparisons of the corpus, checked by Python's own arithmetic."""

import re
from itertools import pairwise

import pytest
from equations import exact
from tiny_model.corpus.documents import tasks_arithmetic
from tiny_model.corpus.tasks_arithmetic import arithmetic, comparison, drill
from tiny_model.corpus.words import Draw, Messages, Split

LEFT = re.compile(r"(\d+) ([-+*/]) (\d+)")


def answered(messages: Messages) -> list[tuple[str, str]]:
    return [(asked[1], said[1]) for asked, said in pairwise(messages) if said[0] == "assistant"]


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_line_of_a_drill_is_right_and_in_the_order_of_the_question(split: Split) -> None:
    draw = Draw(1, split)
    for _ in range(300):
        messages = drill(draw)
        lines = messages[-1][1].strip().split("\n")
        lefts = LEFT.findall(messages[0][1])
        assert len(lines) == len(lefts) >= 6
        for left, line in zip(lefts, lines, strict=True):
            value = exact(*left)
            assert 0 <= value <= 200
            assert line in (str(value), f"{' '.join(left)} = {value}")


@pytest.mark.parametrize("split", ["train", "test"])
def test_questions_for_a_result_get_it(split: Split) -> None:
    draw = Draw(2, split)
    for _ in range(300):
        for asked, said in answered(arithmetic(draw)):
            (left,) = LEFT.findall(asked)
            assert exact(*left) == int(said)


@pytest.mark.parametrize(
    ("draw", "wordings"),
    [
        (Draw(6), {"known"}),
        (Draw(6, "test", wordings="train"), {"known"}),
        (Draw(6, "test"), {"known", "held"}),
        (Draw(6, wordings="test"), {"known", "held"}),
    ],
    ids=["train", "held words", "test", "held wordings"],
)
def test_held_wordings_come_where_the_draw_has_those_of_the_test_split(draw: Draw, wordings: set[str]) -> None:
    assert {tasks_arithmetic.wording(draw, ("known",), ("held",)) for _ in range(50)} == wordings


def test_numbers_are_compared_as_python_compares_them() -> None:
    draw, seen = Draw(5), set()
    for _ in range(300):
        for asked, said in answered(comparison(draw)):
            numbers = [int(number) for number in re.findall(r"\d+", asked)]
            if re.search(r"larger than|more than", asked):
                expected, kind = "yes" if numbers[0] > numbers[1] else "no", "order"
            elif re.search(r"[Ee]ven", asked):
                expected, kind = ("even", "odd")[numbers[0] % 2], "parity"
            elif "after" in asked:
                expected, kind = str(numbers[0] + 1), "after"
            elif asked.startswith("Count"):
                expected, kind = " ".join(str(n) for n in range(numbers[0], numbers[1] + 1)), "count"
            else:
                is_most = re.search(r"larg|more", asked)
                expected, kind = str(max(numbers) if is_most else min(numbers)), "most" if is_most else "least"
            assert said == expected, asked
            seen.add(kind)
    assert seen == {"order", "parity", "after", "count", "most", "least"}


def test_held_wordings_are_never_drawn_for_training_and_are_for_evaluation() -> None:
    draw, evaluation = Draw(6), Draw(6, "test")
    drawn = {tasks_arithmetic.wording(draw, ("a", "b"), ("c",)) for _ in range(200)}
    assert drawn == {"a", "b"}
    assert {tasks_arithmetic.wording(evaluation, ("a", "b"), ("c",)) for _ in range(200)} == {"a", "b", "c"}
