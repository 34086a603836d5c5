"""The index of sent prefixes against lists: for each replica the blocks in the order of their last use, under random operations."""

from __future__ import annotations

from random import Random

import pytest

from rtlang.fleet.routing.sent_index import SentIndex
from tests.support.long_tests import sized

TOKENS_PER_BLOCK = 64.0


class ListIndex:
    """The oracle: whole prefixes as tuples, the most recently used last, one block evicted at a time."""

    def __init__(self) -> None:
        self.blocks: dict[str, list[tuple[int, ...]]] = {}
        self.capacity: dict[str, int] = {}

    def note(self, name: str, prefix: tuple[int, ...]) -> None:
        held = self.blocks[name]
        for length in range(len(prefix), 0, -1):
            if prefix[:length] in held:
                held.remove(prefix[:length])
            held.append(prefix[:length])
        del held[: max(0, len(held) - self.capacity[name])]

    def num_held(self, name: str, prefix: tuple[int, ...]) -> int:
        held = self.blocks[name]
        return max((length for length in range(1, len(prefix) + 1) if prefix[:length] in held), default=0)


def digests_of(prefix: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(hash(prefix[:length]) % 2**64 for length in range(1, len(prefix) + 1))


def num_held(index: SentIndex, name: str, prefix: tuple[int, ...]) -> int:
    return max((match.held_by(name) for match in index.match(digests_of(prefix))), default=0)


def random_prefix(random: Random, known: list[tuple[int, ...]]) -> tuple[int, ...]:
    """New, or a part of a known one with a new or an empty end."""
    start: tuple[int, ...] = ()
    if known and random.random() < 0.8:
        chosen = random.choice(known)
        start = chosen[: random.randint(0, len(chosen))]
    prefix = start + tuple(random.randint(0, 2) for _ in range(random.choice((0, 0, 1, 3, 9))))
    known.append(prefix)
    return prefix


@pytest.mark.parametrize("seed", range(sized(12)))
def test_index_agrees_with_lists_of_blocks(seed: int) -> None:
    random = Random(seed)
    index, oracle = SentIndex(), ListIndex()
    known: list[tuple[int, ...]] = []
    for step in range(150):
        names = list(oracle.blocks)
        if not names or random.random() < 0.08:
            name, capacity = f"r{step}", random.choice((3, 10, 40))
            index.add(name, capacity * TOKENS_PER_BLOCK)
            oracle.blocks[name], oracle.capacity[name] = [], capacity
        elif random.random() < 0.05:
            name = random.choice(names)
            index.remove(name)
            del oracle.blocks[name]
        else:
            name, prefix = random.choice(names), random_prefix(random, known)
            index.note(name, digests_of(prefix), TOKENS_PER_BLOCK)
            oracle.note(name, prefix)
            assert index.num_tokens(name) == len(oracle.blocks[name]) * TOKENS_PER_BLOCK
        index.check()
        prefix = random_prefix(random, known)
        for name in oracle.blocks:
            assert num_held(index, name, prefix) == oracle.num_held(name, prefix)
    for name in list(oracle.blocks):
        index.remove(name)
    assert list(index.segments()) == []


def test_blocks_count_at_the_size_that_they_were_sent_with() -> None:
    index = SentIndex()
    index.add("a", 100.0)
    index.note("a", digests_of((1, 2, 3)), 20.0)
    index.note("a", digests_of((4, 5)), 30.0)
    index.check()
    assert index.num_tokens("a") == 100.0
    assert num_held(index, "a", (1, 2, 3)) == 2, "20 tokens too many: the end of the older prefix is forgotten"
    assert num_held(index, "a", (4, 5)) == 2


def test_a_prefix_above_the_capacity_is_held_in_part() -> None:
    index = SentIndex()
    index.add("a", 4 * TOKENS_PER_BLOCK)
    index.note("a", digests_of((1, 2, 3, 4, 5, 6)), TOKENS_PER_BLOCK)
    index.check()
    assert num_held(index, "a", (1, 2, 3, 4, 5, 6)) == 4


def test_a_long_prefix_takes_one_segment() -> None:
    index = SentIndex()
    index.add("a", 1e9)
    index.add("b", 1e9)
    for name in ("a", "b", "a"):
        index.note(name, digests_of(tuple(range(1000))), TOKENS_PER_BLOCK)
    assert len(list(index.segments())) == 1
