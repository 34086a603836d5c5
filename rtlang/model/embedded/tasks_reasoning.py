"""Corpus tasks: word problems solved in steps, the next step of one, and whether a proposed step is right."""

from rtlang.model.embedded.tasks_arithmetic import MAX_RESULT, wording, wrong
from rtlang.model.embedded.word_problem_chains import Problem
from rtlang.model.embedded.word_problems import FAMILIES, LONG_FAMILIES
from rtlang.model.embedded.words import Draw, Messages

ASK_SOLVE = (
    "{problem} Think step by step.",
    "{problem} Think step by step.",
    "Solve step by step.\n{problem}",
    "Problem: {problem}\nThink step by step.",
)
HELD_ASK_SOLVE = ("Problem: {problem}\nSolve step by step.", "{problem}\nThink step by step.")
ASK_NEXT = ("Next step?", "Next step?", "Give the next step.", "What is the next step?")
SO_FAR = "Problem: {problem}\nSteps so far:\n{steps}\n"
ASK_JUDGE = ("yes or no", "yes or no", "Yes or no?", "(yes/no)")


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


def not_next(draw: Draw, problem: str, steps: list[str], done: int) -> str:
    """A step that does not come next: wrong, with another sign or number, or done before."""
    step, kind = steps[done], draw.random.random()
    first, sign, second = step.split(" = ")[0].split()
    a, b = int(first), int(second)
    if kind < 0.16 and sign in "+-":
        other, value = ("-", a - b) if sign == "+" else ("+", a + b)
        if 0 <= value <= MAX_RESULT:
            return f"{a} {other} {b} = {value}"
    if kind < 0.3 and sign in "+-":
        told = set(problem.replace(".", " ").replace(",", " ").split())
        for line in steps:
            told.update(line.split())
        change = draw.pick((-10, -2, -1, 1, 2, 10))
        value = a + b + change if sign == "+" else a - b - change
        if b + change > 0 and 0 <= value <= MAX_RESULT and str(b + change) not in told:
            return f"{a} {sign} {b + change} = {value}"
    if kind < 0.36 and done and steps[done - 1] != step:
        return steps[done - 1]
    return wrong(draw, step)


def judged_step(draw: Draw) -> Messages:
    """Is a proposed step right? One proposal, or several in turn; a right one is taken, so the next must follow it."""
    problem, steps, result = drawn(draw)
    done = draw.number(0, len(steps))
    ask = SO_FAR.format(problem=problem, steps="\n".join(steps[:done]) or "none")
    messages: Messages = []
    for _ in range(draw.pick((1, 3, 4, 5, 6))):
        if done > len(steps):
            break
        is_right = draw.chance(0.5)
        if done == len(steps):
            changed = wrong(draw, f"{result} + 0 = {result}").split(" = ")[1]
            step = f"answer: {result if is_right else changed}"
        else:
            step = steps[done] if is_right else not_next(draw, problem, steps, done)
        messages += [
            ("user", f"{ask}Proposed step: {step}\nIs this step right? {draw.pick(ASK_JUDGE)}"),
            ("assistant", "yes" if is_right else "no"),
        ]
        ask = ""
        done += is_right
    return messages
