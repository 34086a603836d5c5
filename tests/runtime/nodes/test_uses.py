"""What a decision makes needless, with a search through the whole graph as oracle, and how much of a large graph is looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Apply,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    Node,
    Operand,
    Ref,
    Repeat,
    Switch,
    Text,
    all_nodes,
    blocks_of,
    choices_of,
)
from rtlang.runtime.nodes import uses as uses_module
from rtlang.runtime.nodes.slots import Slot, operand_slots, slots_of
from rtlang.runtime.nodes.uses import LEAST_SEARCHED, Uses
from tests.support.long_tests import sized


def needless(
    lost: Iterable[Slot], running: Mapping[int, Node], parts: Mapping[int, Collection[int]], outputs: Collection[int]
) -> tuple[set[int], set[Slot]]:
    """The definition: what no needed node leads to, found by a search through all nodes."""
    uses = {node_id: slots_used(node, parts.get(node_id, ())) for node_id, node in running.items()}
    lost_choices: set[tuple[int, int]] = set()
    candidates: set[int] = set()
    pending = list(lost)
    while pending:
        node_id, choice = pending.pop()
        if node_id not in running:
            continue
        choices = range(choices_of(running[node_id])) if choice is None else (choice,)
        lost_choices.update((node_id, each) for each in choices)
        if node_id not in candidates:
            candidates.add(node_id)
            pending.extend(uses[node_id])
    kept: set[int] = set()
    kept_choices: set[Slot] = set()
    needed: list[Slot] = [
        (node_id, None)
        for node_id, node in running.items()
        if node_id in outputs or (node_id not in candidates and matters(node))
    ]
    for node_id in candidates:  # choices that nobody voted on stay
        others = range(choices_of(running[node_id]))
        needed.extend((node_id, each) for each in others if (node_id, each) not in lost_choices)
    while needed:
        slot = needed.pop()
        node_id, choice = slot
        if node_id not in running or slot in kept_choices:
            continue
        kept_choices.add(slot)
        if node_id not in kept:
            kept.add(node_id)
            needed.extend(uses[node_id])
    ended = candidates - kept
    single = {
        slot
        for slot in lost_choices
        if slot[0] in kept and slot not in kept_choices and (slot[0], None) not in kept_choices
    }
    while True:  # text and nameless values behind them, which nothing needs
        behind = {
            node_id
            for node_id in running.keys() - kept - ended
            if any(slot[0] in ended or slot in single for slot in uses[node_id])
        }
        if not behind:
            break
        ended |= behind
    return ended, single


def slots_used(node: Node, parts: Collection[int]) -> set[Slot]:
    slots = slots_of(node) | {(part, None) for part in parts}
    for each in all_nodes([node]):
        slots |= slots_of(each)
        operands: list[Operand | None] = [block.value for block in blocks_of(each)]
        if isinstance(each, Repeat):
            operands.append(each.until)
        slots |= operand_slots(operands)
    return {slot for slot in slots if slot[0] != node.node_id}


def matters(node: Node) -> bool:
    return not isinstance(node, Text) and not (isinstance(node, Apply) and node.name is None)


def random_nodes(rng: Random, count: int) -> list[Node]:
    """Nodes that use earlier ones."""
    nodes: list[Node] = [Text(0, None, ("a",))]
    sequences, values = [0], [Ref(0)][:0]
    for number in range(1, count):
        kind = rng.choice(("text", "generate", "generate", "choices", "apply", "apply", "call", "switch"))
        parent = rng.choice(sequences[-6:])
        pick = rng.choice(values[-8:]) if values else Const(1)
        node: Node
        if kind == "text" or not values:
            node = Text(number, parent, ("b", pick) if isinstance(pick, Ref) and rng.random() < 0.4 else ("b",))
            sequences.append(number)
        if kind == "generate" or not values:
            node = Generate(number, parent, None, SamplingParams(max_tokens=2))
            sequences.append(number)
            values.append(Ref(number))
        elif kind == "choices":
            node = Generate(number, parent, None, SamplingParams(max_tokens=2, n=3))
            values += [Ref(number, choice) for choice in range(3)]
        elif kind == "apply":
            name = rng.choice((None, None, f"n{number}"))
            node = Apply(number, "upper", (pick,), name)
            values.append(Ref(number))
        elif kind == "call":
            node = Call(number, "f", (pick,))
            values.append(Ref(number))
        elif kind == "switch":
            inner = Text(1000 + number, number, ("c", pick) if isinstance(pick, Ref) else ("c",))
            node = Switch(number, parent, pick, ((1, Block((inner,), inner.node_id, rng.choice(values))),), None)
            sequences.append(number)
        nodes.append(node)
    return nodes


def uses_of(nodes: Iterable[Node], *, is_prepared: bool) -> Uses:
    uses = Uses()
    for node in uses.prepared(nodes) if is_prepared else nodes:
        if node is not None:
            uses.add(node)
    return uses


@pytest.mark.parametrize("seed", range(sized(300)))
def test_needless_work_is_that_of_the_definition(seed: int) -> None:
    rng = Random(seed)
    nodes = random_nodes(rng, rng.randint(4, 30))
    uses = uses_of(nodes, is_prepared=bool(seed % 2))
    parts: dict[int, list[int]] = {}
    for node in nodes:
        if isinstance(node, Switch) and rng.random() < 0.5:
            inner = Text(2000 + node.node_id, node.parent, ("d",))
            parts[node.node_id] = [inner.node_id]
            uses.add_parts(node.node_id, [inner.node_id])
            uses.add(inner)
            nodes = [*nodes, inner]
    ended = {node.node_id for node in nodes if rng.random() < 0.15}
    for node_id in ended:
        uses.end(node_id)
    running = {node.node_id: node for node in nodes if node.node_id not in ended}
    refs = [Ref(node.node_id, rng.randrange(choices_of(node))) for node in nodes if matters(node)]
    if not refs:
        return
    chosen = rng.sample(refs, min(len(refs), rng.randint(1, 5)))
    outputs = set(rng.sample(sorted(running), min(len(running), 1))) if rng.random() < 0.3 else set()
    lost = operand_slots(chosen[: rng.randint(1, len(chosen))])
    assert uses.needless(lost, outputs.__contains__) == needless(lost, running, parts, outputs)
    vote = Decide(5000, "vote", tuple(chosen))
    uses.add(vote)
    kept = operand_slots(chosen) - lost
    rest = Decide(5000, "vote", tuple(ref for ref in chosen if (ref.node_id, ref.choice) in kept) or (Const(1),))
    found = uses.needless(lost, outputs.__contains__, 5000, kept)
    assert found == needless(lost, running | {5000: rest}, parts, outputs)


def test_a_decision_looks_at_its_own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a graph of thousands of nodes, the work of one decision among them is that of its operands."""
    nodes: list[Node] = [Text(0, None, ("root",))]
    for number in range(1, 6000, 2):
        nodes += [Text(number, 0, ("a",)), Generate(number + 1, number, f"n{number}", SamplingParams(max_tokens=2))]
    looked_at: list[Any] = []
    original = uses_module._Search._slots

    def slots(self: Any, node_id: int) -> Any:
        looked_at.append(node_id)
        return original(self, node_id)

    monkeypatch.setattr(uses_module._Search, "_slots", slots)
    uses = uses_of(nodes, is_prepared=True)
    assert uses.needless({(20, 0), (30, 0)}, lambda node_id: False) == ({19, 20, 29, 30}, set())
    assert len(looked_at) < 20


def test_searches_of_a_graph_that_has_searched_for_long_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses_module, "MAX_SEARCHED", 5_000)
    uses = Uses()
    for node_id in range(2_000):
        uses.add(Apply(node_id, "list", (Ref(node_id - 1),) if node_id else ()))
    found = []
    for _ in range(20):
        before = uses.num_searched
        found.append(len(uses.needless([(1_999, 0)], lambda node_id: False)[0]))  # all of them, which stay in this test
        assert uses.num_searched - before <= 2_000
    assert found == [2_000, 2_000, *(0,) * 18], "what is not found goes on"
    assert uses.num_searched <= 5_000 + 18 * (LEAST_SEARCHED + 1)


def test_the_blocks_of_a_control_node_are_read_in_steps() -> None:
    block = Block(tuple(Text(10 + index, 1, ("a",)) for index in range(500)), 509, Ref(3))
    steps = list(Uses().prepared([Switch(1, None, Const(1), ((1, block),), None)]))
    assert steps[:-1] == [None] * 501
    assert isinstance(steps[-1], Switch)


def test_the_users_of_nodes_that_have_ended_are_forgotten() -> None:
    uses = uses_of([Text(0, None, ("a",)), Text(1, 0, ("b",))], is_prepared=False)
    assert uses.used_by([Text(1, 0, ("b",))]) == {0}
    for _ in range(2):
        uses.end(1)
    assert uses.used_by([Text(1, 0, ("b",))]) == set()
    assert list(uses.running) == [0]
    assert not uses._users[0]
