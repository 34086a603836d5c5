"""Every family of word problems: right equations, within bounds, from numbers that the text tells."""

import pytest
from equations import EQUATION, holds, numbers_of
from tiny_model.corpus.word_problems import FAMILIES, Family
from tiny_model.corpus.words import Draw, Split


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("family", tuple(dict.fromkeys(FAMILIES)))
def test_the_steps_use_told_numbers_and_earlier_results_and_stay_within_bounds(family: Family, split: Split) -> None:
    draw = Draw(1, split)
    for _ in range(400):
        problem = family(draw, draw.number(1, 6), draw.chance(0.5))
        assert 1 <= len(problem.steps) <= 7, problem
        known = numbers_of(problem.text)
        for step in problem.steps:
            (equation,) = EQUATION.findall(step)
            assert holds(equation), step
            a, b, result = int(equation[0]), int(equation[2]), int(equation[3])
            assert a in known and b in known, (step, problem)  # noqa: PT018 - one reason
            assert 0 <= result <= 200
            known.append(result)
        assert problem.result == result
