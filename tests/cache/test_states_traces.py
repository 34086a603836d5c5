"""The orders of eviction of checkpoints: with room for all, only unseen junctions are missed; the default beats recency."""

from __future__ import annotations

import pytest

from tests.support.eviction_traces import NUM_OUTPUT_TOKENS, PAGE_SIZE
from tests.support.state_traces import state_hit_rate, table


def test_with_room_for_all_the_second_visit_of_a_junction_pays_and_the_third_hits() -> None:
    document = list(range(160))
    requests = [
        ([*document, *range(1000 * number, 1000 * number + 40)], list(range(2000, 2000 + NUM_OUTPUT_TOKENS)))
        for number in range(1, 5)
    ]
    assert len(document) % PAGE_SIZE == 0
    assert state_hit_rate(requests, 100, 20) == pytest.approx(2 * 160 / (4 * 199))


def test_the_value_of_checkpoints_beats_their_recency() -> None:
    for line in table([0], ["trees"]).splitlines()[2:]:
        _, _, _, dense, recent, value = (cell.strip() for cell in line.strip("|").split("|"))
        assert float(dense) >= float(value) >= float(recent)
