"""The comparison of the orders of eviction: the traces share what they say, and the default is never behind recency."""

from __future__ import annotations

import pytest

from tests.support.eviction_traces import NUM_OUTPUT_TOKENS, PAGE_SIZE, TRACES, hit_rate, table


def test_a_pool_with_room_for_all_finds_all_that_came_before() -> None:
    document, question = list(range(160)), list(range(1000, 1040))
    requests = [(document + question, list(range(2000, 2000 + NUM_OUTPUT_TOKENS)))] * 3
    rate, num_pages = hit_rate(requests, 100)
    assert rate == pytest.approx(2 * 199 / (3 * 199))
    assert num_pages == -(-(200 + NUM_OUTPUT_TOKENS) // PAGE_SIZE)


def test_the_default_keeps_up_with_recency_on_conversations_and_wins_on_documents() -> None:
    lines = table([0], ["documents", "agents"]).splitlines()
    assert lines[0] == "| trace | pool | recent | frequent | valuable |"
    for line in lines[2:]:
        name, _, recent, _, valuable = (cell.strip() for cell in line.strip("|").split("|"))
        assert float(valuable) >= float(recent) + (0.03 if name == "documents" else 0)


def test_traces_are_the_same_for_one_seed() -> None:
    for make in TRACES.values():
        first, again = make(1), make(1)
        assert [next(first) for _ in range(5)] == [next(again) for _ in range(5)]
