"""Tree of thought with `fork`: several next steps are proposed and judged at once, the best is followed.

    rtlang run examples/tree_of_thought.py:solve
    python examples/tree_of_thought.py

The problem is the shared beginning of every call; the runtime computes it once. Each level is a fork, so all proposals of a level, and
then all judgements, run together.
"""

from __future__ import annotations

import rtlang as rt

PROBLEM = "Tom has 12 apples. Then Tom buys 7 more. Later Tom gives away 5. How many apples does Tom have now?"
MAX_STEPS = 5


def steps_text(steps: list[str]) -> str:
    return "\n".join(steps) if steps else "none"


@rt.program
def solve(s: rt.State, problem: str = PROBLEM, branches: int = 3) -> object:
    """Follows the likeliest right step until a step gives the answer."""
    steps: list[str] = []
    for _ in range(MAX_STEPS):
        proposals = s.fork(branches)
        for index, proposal in enumerate(proposals):
            proposal += rt.user("Problem: ", problem, "\nSteps so far:\n", steps_text(steps), "\nNext step?")
            proposal += rt.assistant(
                rt.gen("step", max_tokens=16, temperature=0.0 if index == 0 else 0.7, seed=index, stop="\n")
            )
        candidates = list(dict.fromkeys(str(proposal["step"]) for proposal in proposals))  # waits for all of them
        judges = s.fork(len(candidates))
        for judge, candidate in zip(judges, candidates, strict=True):
            judge += rt.user(
                "Problem: ", problem, "\nSteps so far:\n", steps_text(steps),
                "\nProposed step: ", candidate, "\nIs this step right? yes or no",
            )  # fmt: skip
            judge += rt.assistant(rt.select("verdict", ["yes", "no"]))
        chances = [judge.meta("verdict").probabilities["yes"] for judge in judges]
        best = candidates[chances.index(max(chances))]
        steps.append(best)
        if best.startswith("answer:"):
            break
    s.set("steps", steps)
    return steps[-1].removeprefix("answer:").strip()


def main() -> None:
    with rt.Runtime() as runtime:
        result = solve.run(runtime=runtime)
        print(PROBLEM)
        for step in result["steps"]:
            print("  ", step)
        stats = runtime.stats()
        share = stats["num_cached_tokens"] / stats["num_prompt_tokens"]
        print(f"{share:.0%} of the prompt tokens were already computed.")


if __name__ == "__main__":
    main()
