"""Memory divided between pages and states."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rtlang.model.layers.cache_division import LEAST_STATES, MemoryNeeds, divide_cache, states_beside

# 12 layers of attention in bf16 beside the states of qwen3_next, and LFM2-1.2B: bytes by the formulas of their configurations
QWEN3_NEXT = MemoryNeeds(16 * 24_576, 77_900_000, usual_pages=256, longest_pages=16_384, row_limit=256)
LFM2 = MemoryNeeds(16 * 24_576, 120_000, usual_pages=256, longest_pages=2_048, row_limit=256)


@pytest.mark.parametrize("needs", [QWEN3_NEXT, LFM2], ids=["large states", "small states"])
def test_pages_and_states_fill_the_memory_and_fit(needs: MemoryNeeds) -> None:
    generator = random.Random(0)
    for _ in range(2_000):
        cache_bytes = int(10 ** generator.uniform(5, 12))
        fraction = generator.choice([None, generator.uniform(0.01, 0.99)])
        num_pages, num_states = divide_cache(needs, cache_bytes, fraction)
        left = cache_bytes - num_pages * needs.page_bytes - num_states * needs.state_bytes
        assert 0 <= left < needs.page_bytes
        if fraction is not None:
            assert num_states * needs.state_bytes <= fraction * cache_bytes < (num_states + 1) * needs.state_bytes
        elif cache_bytes >= 2 * (needs.page_bytes + needs.state_bytes):
            assert num_states >= LEAST_STATES
            assert num_pages >= 2


def test_large_states_are_as_many_as_usual_sequences_have_pages() -> None:
    num_pages, num_states = divide_cache(QWEN3_NEXT, 40 << 30, None)
    num_sequences = num_pages // QWEN3_NEXT.usual_pages
    assert num_sequences > 100
    assert num_states == pytest.approx(2 * num_sequences, rel=0.02)


def test_small_states_serve_every_row_and_an_eighth_of_the_memory_holds_checkpoints() -> None:
    num_states = divide_cache(LFM2, 1 << 30, None)[1]
    assert num_states == LFM2.row_limit + (1 << 27) // LFM2.state_bytes
    assert (
        divide_cache(replace(LFM2, state_bytes=1_000), 1 << 30, None)[1]
        == LFM2.row_limit + (1 << 29) // LFM2.page_bytes
    )


def test_eight_checkpoints_are_kept_where_half_of_the_memory_has_room() -> None:
    usual = QWEN3_NEXT.usual_pages * QWEN3_NEXT.page_bytes
    for cache_bytes in (5 << 28, 3 << 29):
        num_sequences = cache_bytes // (usual + 2 * QWEN3_NEXT.state_bytes)
        assert num_sequences < 8
        half = cache_bytes // 2 // QWEN3_NEXT.state_bytes
        found = divide_cache(QWEN3_NEXT, cache_bytes, None)[1]
        assert found == max(2 * num_sequences, min(num_sequences + 8, half))
    assert divide_cache(QWEN3_NEXT, 200_000_000, None)[1] == LEAST_STATES


def test_a_model_without_recurrent_layers_has_pages_only() -> None:
    needs = MemoryNeeds(1000, 0, 4, 8, 16)
    assert divide_cache(needs, 10_500, None) == (10, 0)
    assert divide_cache(needs, 10_500, 0.5) == (10, 0)
    assert states_beside(needs, 10, 1 << 30) == 0
    assert needs.sequences_bytes(64) == (64 * 4 + 8) * 1000


def test_a_model_without_attention_has_pages_of_no_bytes() -> None:
    needs = MemoryNeeds(0, 1000, 4, 8, 16)
    assert divide_cache(needs, 10_500, None) == (10 * 4 + 8, 10)
    assert divide_cache(needs, 1 << 40, None)[0] == 1 << 18


def test_a_given_number_of_pages_leaves_a_state_for_every_row_and_checkpoints() -> None:
    needs = MemoryNeeds(1000, 500, 4, 8, row_limit=16)
    assert states_beside(needs, 40, 1 << 30) == 16 + 10
    assert states_beside(needs, 4, 1 << 30) == 16 + 8
    assert states_beside(needs, 4, 2_600) == 5


def test_a_given_number_of_pages_heeds_the_share_of_states() -> None:
    needs = MemoryNeeds(1000, 500, 4, 8, row_limit=16)
    assert states_beside(needs, 40, 1 << 30, 0.5) == 80
    assert states_beside(needs, 40, 1 << 30, 0.2) == 20
    assert states_beside(needs, 40, 5_000, 0.5) == 10


def test_pages_that_take_more_than_the_cache_leave_no_states() -> None:
    assert states_beside(MemoryNeeds(1000, 500, 4, 8, row_limit=16), 40, -7_500) == 0
