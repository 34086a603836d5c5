"""The engine with a model of states, against token-by-token generation; see fake_state_runner."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.engine.requests.credit import Credit
from tests.support.engine.fake_state_runner import FakeStateDeviceRunner
from tests.support.engine.state_driver import StateDriver
from tests.support.long_tests import sized


def prompts(rng: random.Random, count: int, longest: int = 40) -> list[list[int]]:
    """Prompts that share prefixes of all lengths, few tokens and many."""
    made: list[list[int]] = [[1]]
    for _ in range(count):
        base = rng.choice(made)
        cut = rng.randint(1, len(base))
        made.append((base[:cut] + [rng.randint(100, 103) for _ in range(rng.randint(1, 20))])[:longest])
    return made[1:]


@pytest.mark.parametrize("seed", range(sized(400, usual=16)))
def test_random_workloads_give_the_tokens_of_generation_without_a_cache(seed: int) -> None:
    rng = random.Random(seed)
    wrong = rng.choice([None, 0.2, 0.6])
    driver = StateDriver(
        rng.choice([2, 3, 5, 9, 40]),
        rng.choice([20, 24, 200]),
        is_pipelined=seed % 2 == 1,
        wrong=wrong,
        policy=rng.choice(["program", "fcfs", "longest_prefix"]),
        prefix_sharing=rng.random() < 0.9,
        max_rows=rng.choice([2, 5, 8]),
        max_step_tokens=rng.choice([5, 16, 64]),
    )
    # Far apart: a request whose steps fail twice in a row is at fault.
    driver.runner.fail_at = set(rng.sample(range(5, 200, 30), rng.choice([0, 0, 3])))
    if isinstance(driver.runner, FakeStateDeviceRunner):
        driver.runner.fail_collect_at = set(rng.sample(range(20, 200, 30), rng.choice([0, 0, 2])))
    credit = Credit(rng.randint(0, 20))
    for tokens in prompts(rng, 25):
        branch_points = tuple(sorted(rng.sample(range(1, len(tokens) + 1), k=min(2, len(tokens)))))
        rest: dict[str, Any] = {"priority": rng.randint(0, 2), "seed": rng.randint(0, 1)}
        if rng.random() < 0.1:
            rest["score_from"], rest["score_only"] = max(1, len(tokens) - rng.randint(1, 8)), True
            if len(tokens) < 2:
                continue
        else:
            rest["credit"] = credit if rng.random() < 0.2 else None
            rest["every"] = rng.choice([0, 0, 2, 5])
        for choice in range(rng.choice([1, 1, 1, 3])):
            driver.add(tokens, rng.randint(1, 14), choice=choice, branch_points=branch_points, **rest)
        for _ in range(rng.randint(0, 3)):
            driver.step()
        if rng.random() < 0.1:
            driver.abort_one(rng)
        if rng.random() < 0.2:
            driver.engine.grant(credit, rng.randint(1, 5))
    while len(driver.last) < len(driver.expected):
        driver.run()
        driver.engine.grant(credit, 7)
    driver.assert_texts()
