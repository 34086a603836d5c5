"""Places and keys of nodes: the same however a program records its nodes; and where two nodes differ."""

from __future__ import annotations

from rtlang.cassette.places import PlacedNode, Places, difference
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Apply, Block, Call, Const, Generate, Marks, Node, Ref, Repeat, Text
from rtlang.contract.runs.node_keys import Keys

GREEDY = SamplingParams(max_tokens=4)


def placed(*nodes: Node) -> dict[str, PlacedNode]:
    return {each.place: each for _, each in Places(Keys({}, 7)).add(nodes)}


def shown(before: dict[str, PlacedNode], now: dict[str, PlacedNode], place: str) -> tuple[str, str, str, str]:
    node, field, old, new = difference(before[place], now[place], before, now)
    return node.content["kind"], field, old, new


def test_the_order_of_nodes_and_hints_change_nothing() -> None:
    one = placed(
        Text(0, None, ("A",)),
        Generate(1, 0, "a", GREEDY, path="a"),
        Text(2, None, ("B",)),
        Generate(3, 2, "b", SamplingParams(max_tokens=4, temperature=1.0), path="b"),
        Text(4, 1, (" and ", Ref(3))),
        Generate(5, 4, "c", GREEDY, path="c"),
    )
    other = placed(
        Text(0, None, ("B",)),
        Generate(2, 0, "b", SamplingParams(max_tokens=4, temperature=1.0), path="b"),
        Text(4, None, ("A",)),
        Generate(7, 4, "a", GREEDY, path="a", marks=Marks(is_urgent=False)),
        Text(8, 7, (" and ", Ref(2))),
        Generate(9, 8, "c", GREEDY, path="c"),
    )
    assert one == other
    assert {place for place in one if not place.startswith("=")} == {"a", "b", "c"}


def test_a_difference_names_the_field_also_of_a_text_before_the_node() -> None:
    def graph(text: str = "A", maximum: int = 4, count: int = 2) -> dict[str, PlacedNode]:
        return placed(
            Text(0, None, (text,)),
            Generate(1, 0, "a", GREEDY, path="a"),
            Apply(2, "repeat", (Ref(1), Const(count))),
            Text(3, 1, (Ref(2),)),
            Generate(4, 3, "b", SamplingParams(max_tokens=maximum), path="b"),
        )

    assert shown(graph(), graph("B"), "a") == ("text", "parts", "['A']", "['B']")
    kind, field, old, new = shown(graph(), graph(maximum=9), "b")
    assert (kind, field) == ("generate", "params")
    assert "4" in old
    assert "9" in new
    assert shown(graph(), graph(count=3), "b")[:2] == ("apply", "args")


def test_copies_of_a_loop_have_the_paths_of_their_turns() -> None:
    body = Block(
        (Text(1, 0, ("x",)), Generate(2, 1, "w", GREEDY, path="repeat[*]/w"), Call(3, "f", (), path="repeat[*]/f()")), 2
    )
    places = Places(Keys({}, 7))
    places.add([Repeat(0, None, body, Const(False), 3, 3, path="repeat")])
    found = [places.of(node_id) for node_id in (2, 5, 9)]
    assert [each and each[0] for each in found] == ["repeat[0]/w", "repeat[1]/w", "repeat[2]/f()"]
    assert places.of(100) is None
    assert len({each[2] for each in places.of_block(range(10))}) == 10, "each copy has a key of its own"
