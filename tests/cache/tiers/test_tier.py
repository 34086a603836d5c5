"""What every tier keeps to, against a dictionary; and the random operations of a cache with a tier below it."""

from __future__ import annotations

import random
from collections import OrderedDict
from pathlib import Path

import pytest

from rtlang.cache.tiers.disk_tier import DiskTier
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.tier import CacheTier
from tests.support.engine.tier_simulation import TierSimulation

PAGE_BYTES, HEADER_BYTES = 100, 64


def make(kind: str, folder: Path, num_pages: int) -> CacheTier:
    tier: CacheTier = (
        HostTier(num_pages * PAGE_BYTES)
        if kind == "host"
        else DiskTier(folder, "model", PAGE_BYTES, num_pages * (PAGE_BYTES + HEADER_BYTES))
    )
    tier.open()
    return tier


def content(number: int) -> bytes:
    return number.to_bytes(4, "little") * (PAGE_BYTES // 4)


@pytest.mark.parametrize("kind", ["host", "disk"])
def test_a_tier_has_the_pages_used_last_and_counts_them(kind: str, tmp_path: Path) -> None:
    generator, tier = random.Random(0), make(kind, tmp_path, 6)
    oracle: OrderedDict[int, bytes] = OrderedDict()
    num_loaded = num_evicted = 0
    for _ in range(400):
        number = generator.randrange(12)
        digest = number.to_bytes(16, "little")
        assert tier.has(digest) == (number in oracle)
        match generator.choice(["put", "get", "touch"]):
            case "put":
                tier.put(digest, memoryview(content(number)))
                oracle[number] = content(number)
                oracle.move_to_end(number)
                if len(oracle) > 6:
                    oracle.popitem(last=False)
                    num_evicted += 1
            case "get":
                found = tier.get(digest)
                assert (None if found is None else bytes(found)) == oracle.get(number)
                if number in oracle:
                    num_loaded += 1
                    oracle.move_to_end(number)
            case "touch":
                tier.touch([digest])
                if number in oracle:
                    oracle.move_to_end(number)
        assert tier.stats.num_pages == len(oracle)
    assert (tier.stats.num_loaded, tier.stats.num_evicted) == (num_loaded, num_evicted)
    assert tier.stats.num_stored == num_evicted + len(oracle)
    tier.clear()
    assert tier.stats.num_pages == tier.stats.num_bytes == 0
    assert not any(tier.has(number.to_bytes(16, "little")) for number in range(12))
    tier.close()


@pytest.mark.parametrize("kind", ["host", "disk"])
def test_a_page_that_is_larger_than_the_tier_is_not_stored(kind: str, tmp_path: Path) -> None:
    tier = make(kind, tmp_path, 1)
    tier.put(bytes(16), memoryview(bytes(PAGE_BYTES * 2)))
    assert not tier.has(bytes(16))
    assert tier.stats.num_bytes == 0


@pytest.mark.parametrize(("num_pages", "page_size", "num_tokens"), [(6, 1, 2), (16, 4, 2), (24, 3, 3)])
def test_pages_go_down_and_come_back_with_the_tokens_of_their_prefix(
    num_pages: int, page_size: int, num_tokens: int
) -> None:
    simulation = TierSimulation(3, num_pages=num_pages, page_size=page_size, num_tokens=num_tokens, sharing=True)
    simulation.run(500)
    assert simulation.num_fetched_pages > 0
    assert simulation.num_dropped > 0 or num_pages > 6
