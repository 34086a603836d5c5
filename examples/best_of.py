"""Several candidates, one winner: the others are stopped as soon as it is certain that they cannot win.

    python examples/best_of.py [--model DIRECTORY | --connect URL]

`rt.best_of` goes on with the likeliest text, `rt.vote` with the most frequent answer, `rt.first` with the one that is there first. Each
program runs twice with the same seeds: once to the end of all candidates, once stopping those that have lost.
"""

from __future__ import annotations

import math
from collections import Counter

from options import open_runtime, parser_of

import rtlang as rt

TIPS = "Give me 3 tips for sleeping."
PROBLEM = "Tom has 12 apples. Then Tom buys 7 more. Later Tom gives away 5. How many apples does Tom have now?"
COUNT = 9


@rt.program
def likeliest(s: rt.State, stops: bool) -> str:
    """The text with the largest sum of log-probabilities."""
    s += rt.user(TIPS)
    if stops:
        s += rt.assistant(rt.best_of(COUNT, rt.gen("tips", max_tokens=80, temperature=0.8, seed=1)))
        return s["tips"]
    s += rt.assistant(rt.gen("tips", max_tokens=80, temperature=0.8, seed=1, n=COUNT, logprobs=0))
    sums = [math.fsum(token.logprob for token in meta.logprobs) for meta in s.meta("tips")]
    return s["tips"][sums.index(max(sums))]


@rt.program
def majority(s: rt.State, stops: bool) -> str:
    """The answer that most lines of thought come to."""
    s += rt.user(PROBLEM)
    thoughts = s.fork(COUNT)
    thoughts += lambda index: rt.assistant(rt.gen("steps", max_tokens=60, temperature=1.0, seed=index))
    answers = [steps.split("answer:")[-1].strip() for steps in thoughts["steps"]]
    return rt.vote(answers) if stops else Counter(rt.value(answers)).most_common(1)[0][0]


@rt.program
def quickest(s: rt.State, stops: bool) -> str:
    """The text that is finished first."""
    s += rt.user(TIPS)
    texts = s.fork(COUNT)
    texts += lambda index: rt.assistant(rt.gen("tips", max_tokens=80, temperature=0.8, seed=index))
    return rt.first(texts["tips"]) if stops else min(rt.value(texts["tips"]), key=len)


def main() -> None:
    options = parser_of(__doc__).parse_args()
    with open_runtime(options) as runtime:
        for program in (likeliest, majority, quickest):
            whole = program.run(False, runtime=runtime)
            result = program.run(True, runtime=runtime)
            generated, everything = result.usage.completion_tokens, whole.usage.completion_tokens
            print(f"{program.name}:")
            print("".join(f"  {line}\n" for line in result.value.splitlines()), end="")
            print(f"  ({generated} of {everything} tokens generated, {1 - generated / everything:.0%} saved)\n")


if __name__ == "__main__":
    main()
