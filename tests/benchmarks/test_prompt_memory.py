"""The measurement of memory: samples at even distances, with the parts that the system tells."""

from __future__ import annotations

import sys

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.prompt_memory import HEADER, measure, sample


def test_memory_is_sampled_after_each_part_of_the_prompts() -> None:
    found = list(measure(RuntimeConfig(num_pages=64, num_threads=1), 4, longest=20, num_samples=2))
    assert [each.num_prompts for each in found] == [0, 2, 4]
    assert len(str(found[0]).split()) == len(HEADER.split()) - 2
    if sys.platform == "linux":
        assert all(each.resident > 1 << 20 for each in found)


def test_a_large_block_is_seen() -> None:
    before = sample(0)
    block = bytearray(64 << 20)
    after = sample(0)
    if before.in_use:  # glibc
        assert after.in_use + after.mapped - before.in_use - before.mapped >= len(block)
