"""Answers in the corpus are right: recomputed from their prompts for a random sample of each group of tasks."""

import json
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from tiny_model.corpus.tasks_arithmetic import arithmetic, comparison, drill
from tiny_model.corpus.tasks_extraction import PROSE, extraction
from tiny_model.corpus.tasks_reasoning import chained, hard_word_problem, next_steps
from tiny_model.corpus.tasks_tools import tool_call
from tiny_model.corpus.word_problem_chains import bus, collection
from tiny_model.corpus.word_problems import FAMILIES, Family
from tiny_model.corpus.words import Draw, Messages, Split
from tiny_support import EQUATION, exact, is_true, numbers_of

LEFT = re.compile(r"(\d+) ([-+*/]) (\d+)")
SPLITS = pytest.mark.parametrize("split", ["train", "test"])


def answered(messages: Messages) -> list[tuple[str, str]]:
    return [(asked[1], said[1]) for asked, said in pairwise(messages) if said[0] == "assistant"]


@SPLITS
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


@SPLITS
def test_questions_for_a_result_get_it(split: Split) -> None:
    draw = Draw(2, split)
    for _ in range(300):
        for asked, said in answered(arithmetic(draw)):
            (left,) = LEFT.findall(asked)
            assert exact(*left) == int(said)


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


@SPLITS
@pytest.mark.parametrize("family", tuple(dict.fromkeys(FAMILIES)))
def test_the_steps_use_told_numbers_and_earlier_results_and_stay_within_bounds(family: Family, split: Split) -> None:
    draw = Draw(1, split)
    for _ in range(400):
        problem = family(draw, draw.number(1, 6), draw.chance(0.5))
        assert 1 <= len(problem.steps) <= 7, problem
        known = numbers_of(problem.text)
        for step in problem.steps:
            (equation,) = EQUATION.findall(step)
            assert is_true(equation), step
            a, b, result = int(equation[0]), int(equation[2]), int(equation[3])
            assert a in known and b in known, (step, problem)  # noqa: PT018 - one reason
            assert 0 <= result <= 200
            known.append(result)
        assert problem.result == result


def collected(text: str) -> int:
    """The result of a problem about a collection, read sentence by sentence."""
    current = 0
    for sentence in re.split(r"(?<=\.) ", text):
        numbers = [int(digits) for digits in re.findall(r"\d+", sentence)]
        if "neighbor" in sentence or "shop opens" in sentence or "day" in sentence or "house" in sentence:
            continue
        if " has " in sentence:
            current = numbers[0]
        elif re.search(r"packs|boxes", sentence):
            current += numbers[0] * numbers[1]
        elif "half" in sentence:
            current //= 2
        elif re.search(r"doubles|triples", sentence):
            current *= 2 if "doubles" in sentence else 3
        elif re.search(r"gives away|loses|sells|breaks|gives \d+ (?:to|away)", sentence):
            current -= numbers[0]
        elif numbers:
            current += numbers[0]
    return current


@SPLITS
def test_a_collection_comes_to_what_its_sentences_tell(split: Split) -> None:
    draw = Draw(2, split)
    for _ in range(600):
        problem = collection(draw, draw.number(1, 6), draw.chance(0.5))
        assert problem.result == collected(problem.text.rsplit(" How many ", 1)[0]), problem


@SPLITS
def test_the_passengers_of_a_bus_are_those_who_got_on_and_not_off(split: Split) -> None:
    draw = Draw(3, split)
    for _ in range(1000):
        problem = bus(draw, draw.number(1, 6), draw.chance(0.7))
        on = re.findall(r"(?:starts with|leaves with|There are) (\d+)|(\d+) (?:people )?get on", problem.text)
        off = re.findall(r"(\d+) (?:people )?get off", problem.text)
        assert problem.result == sum(int(a or b) for a, b in on) - sum(map(int, off)), problem


@pytest.mark.parametrize("task", [chained, hard_word_problem])
def test_thoughts_lead_to_the_answer(task: Callable[[Draw], Messages]) -> None:
    draw = Draw(3)
    for _ in range(300):
        *thoughts, answer = task(draw)[-1][1].split("\n")
        equations = [EQUATION.findall(thought)[0] for thought in thoughts]
        assert all(map(is_true, equations))
        assert answer == f"answer: {equations[-1][3]}"
        assert task is chained or 4 <= len(thoughts) <= 6


def test_a_single_next_step_comes_after_the_steps_so_far() -> None:
    draw = Draw(4)
    for _ in range(400):
        messages = next_steps(draw)
        so_far = EQUATION.findall(messages[0][1])
        for (_, asked), (_, said) in zip(messages[::2], messages[1::2], strict=True):
            assert asked.endswith(("step?", "step."))
            if said.startswith("answer"):
                assert said == f"answer: {so_far[-1][3]}"
            else:
                assert is_true(EQUATION.findall(said)[0])
                so_far.append(EQUATION.findall(said)[0])


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def is_told(value: object, text: str) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return value.lower() in text.lower()
    return re.search(rf"(?<![\d.]){re.escape(str(value))}0*(?!\d)", text) is not None


@SPLITS
def test_every_value_of_a_record_is_in_its_prompt(split: Split) -> None:
    draw = Draw(11, split)
    for messages in (extraction(draw) for _ in range(1000)):
        if messages[-1][0] == "assistant":
            prompt = "\n".join(content for _, content in messages[:-1])
            for value in leaves(json.loads(messages[-1][1])):
                assert is_told(value, prompt), (value, prompt)


def test_known_and_held_out_texts_of_a_kind_differ() -> None:
    for kind in PROSE:
        assert len(set(kind.known)) >= 14
        assert len(set(kind.held)) >= 3
        assert not set(kind.known) & set(kind.held)


@SPLITS
def test_a_call_names_a_listed_tool_and_its_parameters(split: Split) -> None:
    draw = Draw(13, split)
    for _ in range(500):
        messages = tool_call(draw)
        turns = [message for message in messages if message[0] != "system"]
        for (_, request), (_, answer) in zip(turns[::2], turns[1::2], strict=True):
            if re.match("(Tool result|Result|The tool returned): ", request):
                [(key, value)] = json.loads(request.split(": ", 1)[1]).items()
                assert answer == f"The {key} is {value}."
                continue
            call = json.loads(answer)
            assert list(call) == ["name", "arguments"]
            line = next(line for line in messages[0][1].split("\n") if re.search(rf"(?<!\w){call['name']}[(\":]", line))
            for key, value in call["arguments"].items():
                assert key in line
                assert str(value) in request, (value, request)
