"""Facts about single nodes."""

from __future__ import annotations

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Apply,
    Block,
    Const,
    Decide,
    Generate,
    Ref,
    Repeat,
    Switch,
    Text,
    blocks_of,
    choices_of,
    dependencies,
    last_id,
    name_of,
    num_requests,
    parent_of,
)

GEN = Generate(5, 4, "a", SamplingParams(n=3))
INNER = Block((Text(8, 7, (Ref(2),)), Generate(9, 8, None, SamplingParams())), 9, Ref(3))
SWITCH = Switch(7, 6, Ref(5, 1), (("x", INNER),), None, "s")
LOOP = Repeat(7, 6, INNER, Ref(9), 10, 4)


def test_dependencies_include_those_of_blocks_but_not_their_own_nodes() -> None:
    assert dependencies(GEN) == {4}
    assert dependencies(SWITCH) == {6, 5, 2, 3}
    assert dependencies(LOOP) == {6, 2, 3}
    assert dependencies(Apply(4, "len", (Ref(1), Const(2)))) == {1}
    assert dependencies(Decide(4, "best", (Ref(1),), None, (Ref(2),))) == {1, 2}


def test_a_loop_reserves_the_ids_of_all_iterations() -> None:
    assert (last_id(GEN), last_id(SWITCH), last_id(LOOP)) == (5, 9, 47)
    outer = Repeat(1, 0, Block((LOOP,), 7), Const(True), 3, 60)
    assert last_id(outer) == 181


def test_values_have_no_sequence_and_text_has_no_name() -> None:
    assert (parent_of(SWITCH), parent_of(Apply(4, "len", ()))) == (6, None)
    assert (name_of(SWITCH), name_of(Text(0, None, ()))) == ("s", None)
    assert (choices_of(GEN), choices_of(SWITCH), choices_of(Text(0, None, ()))) == (3, 1, 0)
    assert (num_requests(GEN), num_requests(SWITCH)) == (3, 0)
    assert [len(blocks_of(node)) for node in (GEN, SWITCH, LOOP)] == [0, 1, 1]
