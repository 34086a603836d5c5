"""Hostile input is plain data that reaches a server; what a server does with it is tested in tests/system/test_abuse.py."""

from __future__ import annotations

import re

from rtlang.contract.request_graph import RequestGraph
from rtlang_bench.serve import hostile
from rtlang_bench.serve.streams import generation


def test_every_constraint_is_another_one_and_fits_a_message() -> None:
    constraints = hostile.constraints()
    assert len({(each.kind, each.source) for each in constraints}) == len(constraints) >= 40
    for each in constraints:
        graph = generation("p", constraint=each, max_tokens=8)
        assert len(each.source) < 1 << 20
        assert RequestGraph.from_plain(graph.to_plain()) == graph


def test_stop_patterns_are_valid() -> None:
    for pattern in hostile.stop_patterns():
        re.compile(pattern)
