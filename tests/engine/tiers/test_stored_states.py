"""Where states are looked for, against digests from the definition, and which ones are worth their bytes."""

from __future__ import annotations

import random

import pytest

from rtlang.cache.tiers.digest import sequence_digests
from rtlang.engine.tiers.stored_states import (
    MAX_KV_RATIO,
    NUM_TOKENS_WITHOUT_KV,
    StoredState,
    is_worth_storing,
    possible_states,
)
from tests.support.engine.tier_simulation import naive_end_digest

ROOT = b"root"


def naive_states(
    tokens: list[int], size: int, num_pages: int, start: int, num_each: int, namespace: str, num_public: int
) -> list[StoredState]:
    """All states of a sequence whose first `num_pages` pages can be reached, at each of the last `num_each` tokens in these."""
    found = []
    for position in range(start + 1, len(tokens) + 1):
        whole = position // size * size
        if position > whole and (position < num_pages * size - num_each or whole > num_pages * size):
            continue
        if whole > num_pages * size:
            continue
        name = namespace if position > num_public and position > whole else ""
        arguments = tuple(tokens[:position]), size, namespace, num_public, name
        needs_tail = position > num_pages * size
        tail = naive_end_digest(b"rtlang tail", *arguments) if needs_tail else None
        found.append(StoredState(position, naive_end_digest(b"rtlang state", *arguments), tail))
    return found[::-1]


@pytest.mark.parametrize("seed", range(40))
def test_states_are_looked_for_where_they_can_be_used(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([1, 2, 3, 8])
    tokens = [rng.randrange(5) for _ in range(rng.randint(1, 40))]
    num_pages = rng.randint(0, len(tokens) // size)
    namespace = rng.choice(["", "a"])
    start, num_public = rng.randint(0, len(tokens)), rng.randint(0, len(tokens)) if namespace else 0
    digests = sequence_digests(ROOT, tokens, size, num_pages, namespace, num_public)
    for has_kv in (True, False):
        num_each = size if has_kv else NUM_TOKENS_WITHOUT_KV
        found = list(possible_states(ROOT, digests, tokens, size, start, namespace, num_public, has_kv=has_kv))
        assert found == naive_states(tokens, size, num_pages, start, num_each, namespace, num_public)


def test_a_long_prompt_is_looked_up_at_few_positions() -> None:
    tokens, size = list(range(20_000)), 16
    digests = sequence_digests(ROOT, tokens, size, len(tokens) // size)
    with_kv = [state.position for state in possible_states(ROOT, digests, tokens, size, 0)]
    assert with_kv == [*range(20_000, 19_984, -1), *range(19_984, 0, -16)]
    without = [state.position for state in possible_states(ROOT, digests, tokens, size, 0, has_kv=False)]
    assert without == [*range(20_000, 20_000 - 1024, -1), *range(20_000 - 1024, 0, -16)]


def test_a_state_needs_the_pages_up_to_it() -> None:
    assert StoredState(8, b"s").num_pages(4) == 2
    assert StoredState(9, b"s").num_pages(4) == 3
    assert StoredState(9, b"s", b"t").num_pages(4) == 2


def test_a_state_is_worth_its_bytes_if_it_spares_enough_or_was_used() -> None:
    num_tokens = 100 // MAX_KV_RATIO
    assert is_worth_storing(num_tokens, 1, 1000, 10.0)
    assert not is_worth_storing(num_tokens - 1, 1, 1000, 10.0)
    assert is_worth_storing(1, 2, 1000, 10.0)
    assert is_worth_storing(1, 1, 1000, 0.0), "pages without K and V are no measure"
    assert is_worth_storing(num_tokens, 1, 1000, 10.0, 2.0, 1.0)
    assert not is_worth_storing(num_tokens, 9, 1000, 10.0, 1.0, 2.0)
    assert is_worth_storing(num_tokens, 1, 1000, 10.0, None, 2.0)
    assert is_worth_storing(num_tokens, 1, 1000, 10.0, 1.0, None)
