"""Word problems: right equations, within bounds, from numbers that the text tells; steps judged by an own reader."""

import re
from collections.abc import Callable

import pytest

from rtlang.model.embedded.tasks_arithmetic import wording
from rtlang.model.embedded.tasks_reasoning import chained, hard_word_problem, judged_step, next_steps
from rtlang.model.embedded.words import Draw, Messages
from tests.support.equations import EQUATION, holds, numbers_of


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


def test_a_step_is_judged_by_its_arithmetic_and_by_its_place() -> None:
    draw, verdicts, kinds = Draw(5), [], set()
    for _ in range(1500):
        messages = judged_step(draw)
        problem = messages[0][1].split("\nSteps so far:")[0]
        steps = EQUATION.findall(messages[0][1].split("Proposed step")[0])
        for (_, asked), (_, said) in zip(messages[::2], messages[1::2], strict=True):
            verdicts.append(said)
            (proposed,) = re.findall(
                r"Proposed step: (.*)\nIs this step right\? (?:yes or no|Yes or no\?|\(yes/no\))", asked
            )
            if proposed.startswith("answer"):
                assert (said == "yes") == (proposed == f"answer: {steps[-1][3]}")
                continue
            (equation,) = EQUATION.findall(proposed)
            known = [*numbers_of(problem), *(int(step[3]) for step in steps)]
            if said == "yes":
                assert holds(equation)
                assert {int(equation[0]), int(equation[2])} <= set(known)
                steps.append(equation)
            else:
                is_told = int(equation[0]) in known and int(equation[2]) in known
                kinds.add(
                    "result"
                    if not holds(equation)
                    else "again"
                    if equation in steps
                    else "sign"
                    if is_told
                    else "number"
                )
    assert 0.45 < verdicts.count("yes") / len(verdicts) < 0.55
    assert kinds == {"result", "again", "sign", "number"}


def in_any_form(draw: Draw) -> Messages:
    return draw.pick((chained, next_steps, judged_step))(draw)


def test_the_prompts_of_the_tree_of_thought_are_trained() -> None:
    draw = Draw(6)
    asked = [in_any_form(draw)[0][1] for _ in range(1500)]
    assert any(re.fullmatch(r"Problem: .*\nSteps so far:\nnone\nNext step\?", ask) for ask in asked)
    judged = r"Problem: .*\nSteps so far:\n.*\nProposed step: .*\nIs this step right\? yes or no"
    assert any(re.fullmatch(judged, ask, re.DOTALL) for ask in asked)
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
