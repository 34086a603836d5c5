"""What lies before a node of a run, and what depends on what, from its record."""

from __future__ import annotations

from rtlang.contract.params import SamplingParams
from rtlang.contract.pictures.node_links import NodeLinks
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.request_graph import Apply, Block, Call, Const, Generate, Ref, Repeat, Text

GREEDY = SamplingParams()


def test_values_in_texts_and_functions_lead_to_the_nodes_behind_them() -> None:
    record = RunRecord(
        recorded=(
            Text(0, None, ("q",)),
            Generate(1, 0, "a", GREEDY, path="a"),
            Apply(2, "lower", (Ref(1),)),
            Call(3, "f", (Ref(2),), path="f()"),
            Text(4, None, ("other ", Ref(3))),
            Generate(5, 4, "b", GREEDY, path="b"),
        ),
        node_paths={1: "a", 3: "f()", 5: "b"},
    )
    links = NodeLinks(record)
    assert links.ids == {"a": 1, "f()": 3, "b": 5}
    assert [links.parents_of(each) for each in (1, 3, 5)] == [(), (1,), (3,)]
    assert [links.dependants_of(each) for each in (1, 3, 5)] == [(3,), (5,), ()]
    assert links.parts_before(5) == ["other ", Ref(3)]


def test_turns_of_a_loop_are_told_apart() -> None:
    body = Block((Text(2, 1, ("more",)), Generate(3, 2, "step", GREEDY, path="repeat[*]/step")), 3)
    record = RunRecord(
        recorded=(
            Text(0, None, ("q",)),
            Repeat(1, 0, body, Const(False), 2, 2, path="repeat"),
            Generate(6, 1, "end", GREEDY, path="end"),
        ),
        nodes={3: NodeRecord(texts=("one",)), 5: NodeRecord(texts=("two",))},
        copies={3: (3, 5)},
        node_paths={1: "repeat", 3: "repeat[0]/step", 5: "repeat[1]/step", 6: "end"},
        paths={1: ("more", Ref(3), "more", Ref(5))},
    )
    links = NodeLinks(record)
    assert links.control_of(5) == 1
    assert links.control_of(6) is None
    assert links.parts_before(3) == ["q", "more"]
    assert links.parts_before(5) == ["q", "more", Ref(3), "more"]
    assert links.parts_before(6) == ["q", "more", Ref(3), "more", Ref(5)]
    assert links.parents_of(6) == (1,)
    assert links.parents_of(1) == (3, 5)
