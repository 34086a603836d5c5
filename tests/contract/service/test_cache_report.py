"""Explanations of what is cached, as text and as plain data."""

from __future__ import annotations

import json

from rtlang.contract.service.cache_report import CacheExplanation, Divergence, PageRun, StateReport, page_runs


def test_pages_in_the_same_place_are_one_run() -> None:
    places: list[tuple[str | None, float | None]] = [
        ("pool", None),
        ("pool", None),
        ("disk", 4.0),
        ("disk", 3.0),
        ("disk", None),
        (None, None),
    ]
    assert page_runs(places, 4) == (
        PageRun(0, 8, "pool"),
        PageRun(8, 8, "disk", 4.0),
        PageRun(16, 4, "disk"),
        PageRun(20, 4, None),
    )
    assert page_runs([], 4) == ()


def test_an_explanation_says_where_and_why() -> None:
    found = CacheExplanation(
        24,
        9,
        Divergence(9, 5, " cat", 6, " dog"),
        (PageRun(0, 8, "pool"), PageRun(8, 8, "disk", 4.0), PageRun(16, 8, None)),
    )
    assert str(found).splitlines() == [
        "9 of 24 tokens are in the pool",
        "token 9 differs: the prompt continues with ' cat' (id 5), stored is ' dog' (id 6)",
        "tokens 8 to 15 are in the disk tier, evicted 4.0 s ago",
        "tokens 16 to 23 must be computed",
    ]
    plain = json.loads(json.dumps(found.to_plain()))
    assert plain["divergence"]["stored_text"] == " dog"
    assert CacheExplanation.from_plain(plain) == found
    assert str(CacheExplanation(4, 4, None, (PageRun(0, 4, "pool"),))) == "4 of 4 tokens are in the pool"


def test_an_explanation_of_a_model_with_states_says_what_is_replayed() -> None:
    found = CacheExplanation(420, 384, None, (PageRun(0, 412, "pool"),), StateReport(412, 384, (96, 384)))
    assert str(found) == "384 of 420 tokens need not be computed: pages 412, state 384: 28 tokens replayed"
    assert CacheExplanation.from_plain(json.loads(json.dumps(found.to_plain()))) == found
