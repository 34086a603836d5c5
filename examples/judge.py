"""A judge: several answers, a rubric, and votes. The whole judgement is one submission.

    python examples/judge.py [--model DIRECTORY | --connect URL]

Every answer is forked by criterion, and every criterion by juror; what branches share is computed once. Scores are numbers from 1 to 5,
`rt.vote` takes the score that most jurors give and stops the others once it is certain, `rt.best` the answer with the largest total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from options import open_runtime, parser_of

import rtlang as rt

QUESTION = "A farmer has 128 sheep. He sells 49 and buys 73. How many sheep does the farmer have now?"
RUBRIC = {"correct": "Is the answer right?", "clear": "Is it easy to follow?", "short": "Is it free of needless words?"}
NUM_ANSWERS, NUM_JURORS = 4, 3
Score = Literal[1, 2, 3, 4, 5]


@dataclass
class Grade:
    answer: str
    scores: dict[str, Score]
    total: int


@rt.program
def judge(s: rt.State, question: str = QUESTION) -> tuple[int, list[Grade]]:
    """The number of the best answer, and the grades of all."""
    answers = s.fork(NUM_ANSWERS)
    for number, answer in enumerate(answers):
        answer += rt.user(question)
        answer += rt.assistant(rt.gen("answer", max_tokens=40, temperature=1.0, seed=number))
    grades = [grade(s.copy(), question, answer["answer"]) for answer in answers]
    return rt.best(range(NUM_ANSWERS), by=[each.total for each in grades]), grades


def grade(s: rt.State, question: str, answer: str) -> Grade:
    """One answer by all criteria."""
    s += rt.system("You grade answers with a score from 1 (bad) to 5 (good).")
    s += rt.user("Question: ", question, "\nAnswer: ", answer)
    scores = {}
    for criterion, fork in zip(RUBRIC, s.fork(len(RUBRIC)), strict=True):
        fork += rt.user(RUBRIC[criterion], " The score:")
        jurors = fork.fork(NUM_JURORS)
        jurors += lambda juror: rt.assistant(rt.gen("score", max_tokens=2, type=Score, temperature=1.0, seed=juror))
        scores[criterion] = rt.vote(jurors["score"])
    return Grade(answer, scores, sum(scores.values()))


def main() -> None:
    options = parser_of(__doc__).parse_args()
    with open_runtime(options) as runtime:
        result = judge.run(runtime=runtime)
    best, grades = result.value
    print(QUESTION)
    for number, each in enumerate(grades):
        scores = ", ".join(f"{criterion} {score}" for criterion, score in each.scores.items())
        print(f"\n{'>' if number == best else ' '} {each.total:2} points: {scores}")
        print("".join(f"    {line}\n" for line in each.answer.splitlines()), end="")
    usage = result.usage
    print(f"\n{len(result.breaks)} graph breaks, {usage.cached_tokens} of {usage.prompt_tokens} prompt tokens cached")


if __name__ == "__main__":
    main()
