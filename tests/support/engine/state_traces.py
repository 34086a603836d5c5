"""Workloads whose prompts share prefixes, and the prompt tokens that engines with and without states compute for them.

python -m tests.support.engine.state_traces
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rtlang.contract.config import RuntimeConfig
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner
from tests.support.engine.fake_state_runner import FakeStateRunner

PAGE = 16
NEVER = 10**9


class Call(NamedTuple):
    """A request: its prompt follows the text of another one (None: of none), which must have ended, and new tokens follow that.

    Attributes:
        base: index of the other call, and whether its generated tokens belong to the prompt.
        own: the new tokens.
        max_tokens: to generate.
        branches: whether it is known that others will continue it; then it is held, as programs do.
        points: positions of its prompt at which others are known to part from it.
    """

    base: tuple[int, bool] | None
    own: Sequence[int]
    max_tokens: int
    branches: bool = False
    points: tuple[int, ...] = ()


Trace = list[list[Call]]
"""Waves of calls: those of a wave come together, when the wave before has ended. `base` counts calls of all waves."""


def tree(fan: int = 4, depth: int = 3, *, knows: bool) -> Trace:
    """A graph: each node generates and has `fan` children, which continue its text."""
    rng = random.Random(1)
    waves: Trace = [[Call(None, _text(rng, 400), 40, knows)]]
    first, count = 0, 1
    for level in range(1, depth):
        waves.append(
            [
                Call((first + parent, True), _text(rng, 60), 40, knows and level < depth - 1)
                for parent in range(count)
                for _ in range(fan)
            ]
        )
        first, count = first + count, count * fan
    return waves


def chat(turns: int = 43) -> Trace:
    """One conversation: each turn continues the text of the one before it. About 142,000 prompt tokens, without a cache."""
    rng = random.Random(2)
    return [[Call(None if not turn else (turn - 1, True), _text(rng, 110), 40)] for turn in range(turns)]


def questions(num_documents: int = 4, num_questions: int = 6, *, together: bool, knows: bool) -> Trace:
    """Questions about documents: all come at once, or one after the other."""
    rng = random.Random(3)
    documents = [_text(rng, 505) for _ in range(num_documents)]
    calls = [
        Call(None, [*document, *_text(rng, 25)], 20, points=(505,) if knows else ())
        for _ in range(num_questions)
        for document in documents
    ]
    return [calls] if together else [[each] for each in calls]


TRACES: dict[str, tuple[Callable[[], Trace], int]] = {
    "tree, branches known": (lambda: tree(knows=True), 24),
    "tree, branches not known": (lambda: tree(knows=False), 24),
    "chat of 43 turns": (chat, 8),
    "questions at once": (lambda: questions(together=True, knows=False), 24),
    "questions in turn, ends known": (lambda: questions(together=False, knows=True), 24),
    "questions in turn": (lambda: questions(together=False, knows=False), 24),
    "questions in turn, 4 states": (lambda: questions(together=False, knows=False), 4),
}
"""By name, a trace and the number of states."""


class Outcome(NamedTuple):
    """Prompt tokens that were computed, and states kept."""

    num_prompt_tokens: int
    num_computed: int
    num_kept: int


def replay(trace: Trace, num_states: int) -> Outcome:
    """Compute a trace on an engine with so many states; 0 for a model without states."""
    config = RuntimeConfig(page_size=PAGE, num_pages=4000, max_rows=8, max_step_tokens=256)
    runner: Any = FakeRunner(4000, PAGE, eos_every=NEVER, max_model_len=10**6)
    if num_states:
        runner = FakeStateRunner(4000, PAGE, eos_every=NEVER, max_model_len=10**6, num_states=num_states)
    driver = EngineDriver(runner, config)
    texts: list[tuple[list[int], list[int]]] = []
    num_prompt = num_output = 0
    for wave in trace:
        requests = []
        for call in wave:
            prefix: list[int] = []
            if call.base is not None:
                prompt, generated = texts[call.base[0]]
                prefix = [*prompt, *generated] if call.base[1] else prompt
            tokens = [*prefix, *call.own]
            requests.append(driver.add(tokens, call.max_tokens, branch_points=call.points))
            num_prompt += len(tokens)
            num_output += call.max_tokens - 1
        driver.run()
        for call, request in zip(wave, requests, strict=True):
            if call.branches:
                driver.engine.cache.hold(request.token_ids, 0.0)
        texts += [(request.token_ids[: request.num_prompt_tokens], request.output_token_ids) for request in requests]
    states = driver.engine.cache.states
    return Outcome(num_prompt, runner.num_computed - num_output, 0 if states is None else states.stats.num_kept)


def _text(rng: random.Random, length: int) -> list[int]:
    return [rng.randint(3, 250) for _ in range(length)]


def main() -> None:
    print(f"{'trace':32} {'states':>6} {'prompt':>8} {'dense':>8} {'hybrid':>8} {'ratio':>6} {'kept':>5}")
    for name, (make, num_states) in TRACES.items():
        dense, hybrid = replay(make(), 0), replay(make(), num_states)
        ratio = hybrid.num_computed / dense.num_computed
        print(
            f"{name:32} {num_states:6} {dense.num_prompt_tokens:8,} {dense.num_computed:8,} {hybrid.num_computed:8,} "
            f"{ratio:6.3f} {hybrid.num_kept:5}"
        )


if __name__ == "__main__":
    main()
