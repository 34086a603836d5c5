"""Random sizes and values of cases."""

from __future__ import annotations

import json
from random import Random

from rtlang_bench.worst_cases.draws import Draws, hostile_grammar, hostile_pattern, hostile_schema, nested, tools


def test_sizes_reach_the_limit_and_slightly_beyond_and_are_most_often_small() -> None:
    draws = Draws(Random(1))
    sizes = [draws.size(1_000_000) for _ in range(2_000)]
    assert min(sizes) < 10
    assert 1_000_000 < max(sizes) <= 1_200_001
    assert 1_000_000 in sizes
    assert sorted(sizes)[1_000] < 20_000
    assert all(each >= 5 for each in (draws.size(10, least=5) for _ in range(100)))


def test_values_can_be_sent_and_have_about_the_size_that_was_asked_for() -> None:
    draws = Draws(Random(2))
    for _ in range(200):
        assert len(json.dumps(draws.plain(1_000))) < 200_000
        assert len(draws.text(500)) in (500, 501)
        assert 0 < len(draws.tool_text(300)) <= 300
        assert len(draws.json_text(600)) < 2_000
        assert len(draws.digits(20)) < 30


def test_schemas_patterns_and_tools_are_plain() -> None:
    draws = Draws(Random(3))
    for _ in range(50):
        json.dumps(hostile_schema(draws))
        assert hostile_pattern(draws)
        assert hostile_grammar(draws)
    assert [each["function"]["name"] for each in tools(draws, 2, 3)] == ["f0", "f1"]
    assert nested(2, 1) == [[1]]
