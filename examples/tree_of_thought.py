"""Tree of thought with `fork`: several next steps are proposed at once, the likeliest one is followed.

    rtlang run examples/tree_of_thought.py:solve
    python examples/tree_of_thought.py

The problem is the shared beginning of every call; the runtime computes it once. Each level is a fork whose branches run together; plain
Python collects what they propose, and `select` compares the proposals by their likelihood.
"""

from __future__ import annotations

import rtlang as rt

PROBLEM = "Tom has 12 apples. Then Tom buys 7 more. Later Tom gives away 5. How many apples does Tom have now?"
MAX_STEPS = 5


@rt.program
def solve(s: rt.State, problem: str = PROBLEM, branches: int = 4) -> object:
    """Follows the likeliest proposal until one gives the answer."""
    steps: list[str] = []
    while len(steps) < MAX_STEPS and not (steps and steps[-1].startswith("answer:")):
        ask = rt.user("Problem: ", problem, "\nSteps so far:\n", "\n".join(steps) or "none", "\nNext step?")
        proposals = s.fork(branches)
        for index, proposal in enumerate(proposals):
            proposal += ask
            proposal += rt.assistant(rt.gen("step", max_tokens=16, temperature=0.8, seed=index, stop="\n"))
        candidates = dict.fromkeys(str(proposal["step"]) for proposal in proposals)  # str() waits for all of them
        judge = s.copy()
        judge += ask
        judge += rt.assistant(rt.select("best", list(candidates), method="full_likelihood"))
        steps.append(str(judge["best"]))
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
