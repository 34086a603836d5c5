"""The tree of a level."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.pictures.structure import MAX_ALIKE, NUM_SHOWN, level_of
from rtlang.contract.request_graph import Apply, Generate, Node, Ref, RoleEnd, RoleStart, Text
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

PARAMS = SamplingParams(max_tokens=4)


def forked(count: int, *, joins: bool = True) -> list[Node]:
    """A text, `count` branches of a text and a generation, and a text that joins them."""
    nodes: list[Node] = [Text(0, None, ("Hello",))]
    ends = []
    for number in range(count):
        nodes.append(Text(len(nodes), 0, (f"branch {number}",)))
        nodes.append(Generate(len(nodes), len(nodes) - 1, "idea", PARAMS))
        ends.append(len(nodes) - 1)
    nodes.append(Text(len(nodes), 0, tuple(Ref(each) for each in ends) if joins else ("on",)))
    return nodes


def test_branches_are_neighbours_and_their_join_is_below() -> None:
    level = level_of(forked(3))
    assert level.stages[None] == [[0]]
    assert level.stages[0] == [[1, 3, 5], [7]]
    assert level.parents[7] == 0
    assert level.sources[7] == [2, 4, 6]
    assert level.ranks[7] == 3


def test_a_branch_that_uses_no_other_is_a_neighbour() -> None:
    assert level_of(forked(2, joins=False)).stages[0] == [[1, 3, 5]]


def test_many_branches_that_are_alike_become_a_group() -> None:
    count = 40
    level = level_of(forked(count))
    group = next(iter(level.groups))
    assert level.groups[group] == count - NUM_SHOWN
    assert level.num_hidden == 2 * (count - NUM_SHOWN)
    assert level.sources[2 * count + 1] == [2, 4, 6, group]
    assert len(level.order) + level.num_hidden == 2 * count + 2 + 1  # and the group
    assert not level_of(forked(MAX_ALIKE)).groups
    assert not level_of(forked(count), collapses=False).groups


def test_values_of_hidden_branches_are_hidden_with_them() -> None:
    nodes = forked(20)
    ends = [node.node_id for node in nodes if isinstance(node, Generate)]
    for end in ends:
        nodes.append(Apply(len(nodes), "upper", (Ref(end),)))
    level = level_of(nodes)
    shown = [each for each in level.order if each >= 42]
    assert len(shown) == NUM_SHOWN


def test_branches_that_differ_are_all_shown() -> None:
    nodes: list[Node] = [Text(0, None, ("x",))]
    nodes += [Generate(number + 1, 0, f"name {number}", PARAMS) for number in range(20)]
    assert len(level_of(nodes).order) == 21


def test_the_end_of_a_message_is_part_of_what_it_ends() -> None:
    nodes: list[Node] = [
        Text(0, None, (RoleStart("assistant"),)),
        Generate(1, 0, "a", PARAMS),
        Text(2, 1, (RoleEnd(),)),
        Text(3, 2, (RoleStart("user"), "b", RoleEnd())),
    ]
    level = level_of(nodes)
    assert level.order == [0, 1, 3]
    assert level.parents[3] == 1
    assert level_of(nodes, collapses=False).order == [0, 1, 2, 3]


def test_values_between_a_sequence_and_its_continuation_stand_aside() -> None:
    nodes: list[Node] = [
        Text(0, None, ("x",)),
        Generate(1, 0, "a", PARAMS),
        Apply(2, "upper", (Ref(1),)),
        Text(3, 1, (Ref(2),)),
    ]
    level = level_of(nodes)
    assert level.stages[1] == [[2], [3]]
    assert level.asides[1] == {0}


@pytest.mark.parametrize("seed", range(sized(100)))
def test_arrows_of_random_graphs_lead_down_and_every_node_has_one_place(seed: int) -> None:
    graph = random_graph(seed, most_nodes=30)
    level = level_of(graph.nodes, collapses=False)
    placed = [each for rows in level.stages.values() for row in rows for each in row]
    assert sorted(placed) == sorted(node.node_id for node in graph.nodes)
    for each in level.order:
        for source in [*level.sources[each], *([level.parents[each]] if each in level.parents else [])]:
            assert level.ranks[source] < level.ranks[each]
    for rows in level.stages.values():
        for upper, lower in pairwise(rows):
            assert max(level.ranks[each] for each in upper) < min(level.ranks[each] for each in lower)
