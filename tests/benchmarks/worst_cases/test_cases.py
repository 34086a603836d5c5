"""The case of a number."""

from __future__ import annotations

from itertools import islice

from rtlang_bench.worst_cases.cases import ISSUE, KINDS, is_known, kind_and_name, make_case, numbers
from rtlang_bench.worst_cases.frame_cases import FRAMES
from rtlang_bench.worst_cases.graph_cases import ARGUMENTS, NODES
from rtlang_bench.worst_cases.route_cases import ROUTES


def test_a_case_follows_from_its_seed_and_number() -> None:
    for number in (0, 2, *range(7, 30)):
        assert make_case(3, number) == make_case(3, number)
        assert make_case(3, number).requests == make_case(3, number).requests
    assert any(make_case(3, number).requests != make_case(4, number).requests for number in range(7, 20))


def test_the_cases_go_round_all_functions_nodes_routes_and_frames() -> None:
    seen = {kind_and_name(number) for number in range(500)}
    names = {"issue": ISSUE, "function": ARGUMENTS, "node": NODES, "route": ROUTES, "frame": FRAMES}
    assert seen == {(kind, name) for kind in KINDS for name in names[kind]}


def test_numbers_can_be_limited_to_a_kind_or_a_name() -> None:
    assert list(numbers(3, 5)) == [5, 6, 7]
    assert all(kind_and_name(number)[0] == "node" for number in numbers(20, 0, "node"))
    assert {kind_and_name(number) for number in numbers(5, 0, "function:list")} == {("function", "list")}
    assert list(numbers(100, 0, "issue")) == list(range(len(ISSUE)))
    assert list(islice(numbers(10, 0, "issue:format"), 5)) == [list(ISSUE).index("format")]


def test_known_kinds_and_names() -> None:
    assert is_known("route")
    assert is_known("route:chat")
    assert not is_known("route:nothing")
    assert not is_known("bombs")
