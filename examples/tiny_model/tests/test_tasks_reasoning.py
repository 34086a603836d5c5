"""Word problems: right equations that lead to the answer, step by step."""

import re
from collections.abc import Callable

import pytest
from equations import EQUATION, holds
from tiny_model.corpus.tasks_arithmetic import wording
from tiny_model.corpus.tasks_reasoning import chained, hard_word_problem, next_steps
from tiny_model.corpus.words import Draw, Messages


@pytest.mark.parametrize("task", [chained, hard_word_problem])
def test_thoughts_lead_to_the_answer(task: Callable[[Draw], Messages]) -> None:
    draw = Draw(3)
    for _ in range(300):
        *thoughts, answer = task(draw)[-1][1].split("\n")
        equations = [EQUATION.findall(thought)[0] for thought in thoughts]
        assert all(map(holds, equations))
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
                assert holds(EQUATION.findall(said)[0])
                so_far.append(EQUATION.findall(said)[0])


def in_any_form(draw: Draw) -> Messages:
    return draw.pick((chained, next_steps))(draw)


def test_the_prompts_of_the_tree_of_thought_are_trained() -> None:
    draw = Draw(6)
    asked = [in_any_form(draw)[0][1] for _ in range(1500)]
    assert any(re.fullmatch(r"Problem: .*\nSteps so far:\nnone\nNext step\?", ask) for ask in asked)
    assert any(re.fullmatch(r"\w+ has \d+ \w+\. .* Think step by step\.", ask) for ask in asked)


def test_held_wordings_stay_out_of_training() -> None:
    held = r"In the beginning|gives \d+ away|of them\.|dollars at first|have in the end|left for \w+\?|earns \d+ dollars more"
    known, evaluation = Draw(7), Draw(7, "test")
    assert not [text for text in (str(in_any_form(known)) for _ in range(3000)) if re.search(held, text)]
    assert [text for text in (str(in_any_form(evaluation)) for _ in range(300)) if re.search(held, text)]
    assert wording(known, ("a",), ("b",)) == "a"


def test_the_same_seed_gives_the_same_problems() -> None:
    first, again = Draw(8), Draw(8)
    assert [in_any_form(first) for _ in range(50)] == [in_any_form(again) for _ in range(50)]
