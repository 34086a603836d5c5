"""Corpus tasks: word problems solved in steps, and the next step of one."""

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.tasks_arithmetic import wording
from tiny_model.corpus.word_problem_chains import Problem
from tiny_model.corpus.word_problems import FAMILIES, LONG_FAMILIES
from tiny_model.corpus.words import Draw, Messages

TEMPLATES = sections_of("tasks_reasoning")

ASK_SOLVE = (
    "{problem} Think step by step.",
    "{problem} Think step by step.",
    TEMPLATES["ASK_SOLVE"],
    TEMPLATES["ASK_SOLVE 2"],
)
HELD_ASK_SOLVE = (TEMPLATES["HELD_ASK_SOLVE"], TEMPLATES["HELD_ASK_SOLVE 2"])
ASK_NEXT = ("Next step?", "Next step?", "Give the next step.", "What is the next step?")
SO_FAR = TEMPLATES["SO_FAR"]


def sum_steps(draw: Draw) -> tuple[str, list[str], int]:
    """A word problem of one to six steps, the equation of each, and the result."""
    problem = draw.pick(FAMILIES)(draw, draw.pick((1, 2, 2, 3, 3, 4, 5, 6)), draw.chance(0.45))
    return problem.text, problem.steps, problem.result


def hard_steps(draw: Draw) -> tuple[str, list[str], int]:
    """A word problem of four to six steps with larger numbers."""
    while True:
        problem: Problem = draw.pick(LONG_FAMILIES)(draw, draw.number(4, 6), True)
        if 4 <= len(problem.steps) <= 6:
            return problem.text, problem.steps, problem.result


def drawn(draw: Draw) -> tuple[str, list[str], int]:
    """A word problem of any length, its steps, and the result; a quarter of them hard."""
    return hard_steps(draw) if draw.chance(0.25) else sum_steps(draw)


def in_full(draw: Draw, problem: str, steps: list[str], result: int) -> Messages:
    """The problem, and all of its steps with the result as the answer."""
    thoughts = "\n".join(f"thought: {step}" for step in steps)
    ask = wording(draw, ASK_SOLVE, HELD_ASK_SOLVE).format(problem=problem)
    return [("user", ask), ("assistant", f"{thoughts}\nanswer: {result}")]


def chained(draw: Draw) -> Messages:
    """A word problem, answered by one `thought:` for each step and the `answer:`."""
    return in_full(draw, *drawn(draw))


def hard_word_problem(draw: Draw) -> Messages:
    """Four to six steps, larger numbers; one sample is often wrong where a vote of several is right."""
    return in_full(draw, *hard_steps(draw))


def next_steps(draw: Draw) -> Messages:
    """The next step after the steps so far, and at times all that follow, one for each turn."""
    problem, steps, result = drawn(draw)
    done = draw.number(0, len(steps))
    so_far = "\n".join(steps[:done]) or "none"
    left = [*steps[done:], f"answer: {result}"]
    if draw.chance(0.6):
        left = left[:1]
    ask = SO_FAR.format(problem=problem, steps=so_far)
    messages: Messages = []
    for step in left:
        messages += [("user", ask + draw.pick(ASK_NEXT)), ("assistant", step)]
        ask = ""
    return messages
