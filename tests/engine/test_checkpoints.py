"""The choice of checkpoints against brute force over all choices."""

from __future__ import annotations

import random
from collections.abc import Collection
from itertools import combinations

import pytest

from rtlang.engine.checkpoints import (
    BRANCH_WEIGHT,
    END_WEIGHT,
    JUNCTION_WEIGHT,
    KV_SHARE,
    StateSizes,
    choose,
    common_position,
)
from tests.support.long_tests import sized

PAGE = 4
LARGE = StateSizes(10_000, 0.0)


def spared(weights: dict[int, float], start: int, chosen: Collection[int]) -> float:
    """Tokens that visitors of the weighted positions need not compute again."""
    return sum(
        weight * (max([each for each in chosen if each <= position], default=start) - start)
        for position, weight in weights.items()
    )


@pytest.mark.parametrize("seed", range(sized(400, usual=60)))
def test_the_choice_spares_nearly_as_much_as_the_best_one(seed: int) -> None:
    """The tokens spared are submodular in the choice, so greedy choice has at least 1 - 1/e of the best (Nemhauser et al. 1978)."""
    rng = random.Random(seed)
    num_tokens, start = rng.randint(1, 60), rng.choice([0, 0, 7, 12])
    points = [rng.randint(1, 64) for _ in range(rng.randint(0, 6))]
    num_in_pages, count = rng.choice([0, 16, 24]), rng.randint(0, 4)
    found = choose(
        num_tokens,
        PAGE,
        LARGE,
        count * LARGE.state_bytes,
        branch_points=points,
        num_in_pages=num_in_pages,
        num_state_tokens=start,
    )
    last = (num_tokens - 1) // PAGE * PAGE
    weights: dict[int, float] = {}
    for position, weight in [
        *((point, BRANCH_WEIGHT) for point in points),
        (num_in_pages, JUNCTION_WEIGHT),
        (last, END_WEIGHT),
    ]:
        page = position if -(-position // PAGE) * PAGE <= num_tokens else min(position, last) // PAGE * PAGE
        if page - start >= PAGE:
            weights[page] = weights.get(page, 0) + weight
    assert list(found) == sorted(set(found))
    assert set(found) <= weights.keys()
    assert len(found) == min(count, len(weights))
    best = max(spared(weights, start, each) for each in combinations(weights, len(found)))
    assert spared(weights, start, found) >= 0.63 * best


def test_states_that_are_small_are_kept_everywhere() -> None:
    sizes = StateSizes(1000, 100.0)  # as much as 10 tokens
    assert sizes.stride(PAGE) == 40
    found = choose(403, PAGE, sizes, 100 * 1000)
    assert found == (40, 80, 120, 160, 200, 240, 280, 320, 360, 400)
    assert len(found) * sizes.state_bytes <= 403 * sizes.token_bytes / KV_SHARE


def test_a_small_budget_spreads_them() -> None:
    found = choose(403, PAGE, StateSizes(1000, 100.0), 3 * 1000)
    assert len(found) == 3
    assert found[-1] == 400
    assert max(b - a for a, b in zip((0, *found), found, strict=False)) <= 200


def test_states_that_are_large_are_kept_at_branches_only() -> None:
    sizes = StateSizes(77_900_000, 24_590.0)  # qwen3_next: as much as 3,168 tokens
    assert choose(5000, 16, sizes, 10 * sizes.state_bytes, branch_points=(1000, 3007)) == (1000, 3007, 4992)


def test_a_request_that_only_scores_keeps_what_others_want() -> None:
    found = choose(100, PAGE, StateSizes(1000, 100.0), 10**6, branch_points=(50,), num_in_pages=80, keeps_end=False)
    assert found == (50, 80)


def test_a_model_without_kv_has_no_stride() -> None:
    assert StateSizes(1000, 0.0).stride(16) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_common_position_is_that_of_a_loop(seed: int) -> None:
    rng = random.Random(seed)
    a = [rng.randint(0, 3) for _ in range(rng.randint(0, 40))]
    cut = rng.randint(0, len(a))
    b = a[:cut] + [rng.randint(0, 3) for _ in range(rng.randint(0, 10))]
    limit = rng.randint(0, 45)
    common = 0
    while common < min(len(a), len(b), limit) and a[common] == b[common]:
        common += 1
    assert common_position(a, b, limit, PAGE) == common // PAGE * PAGE
