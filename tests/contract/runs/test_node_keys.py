"""Keys change with everything that an outcome depends on, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Arg,
    Call,
    Const,
    Decide,
    Generate,
    Marks,
    Node,
    Ref,
    Select,
    Text,
)
from rtlang.contract.runs.node_keys import Keys

GREEDY = SamplingParams()
SAMPLED = SamplingParams(temperature=1.0)


def key_of(*nodes: Node, inputs: dict[str, str] | None = None, seed: int = 1) -> bytes | None:
    """The key of the last node."""
    return Keys(inputs or {}, seed).add(nodes).get(nodes[-1].node_id)


TEXT = Text(0, None, ("a",))
NODE = Generate(1, 0, "x", GREEDY)


def test_names_hints_and_ids_do_not_count() -> None:
    expected = key_of(TEXT, NODE)
    assert key_of(TEXT, replace(NODE, name="y", marks=Marks(remaining_tokens=7))) == expected
    assert key_of(replace(TEXT, node_id=5), Generate(9, 5, "x", GREEDY)) == expected
    assert key_of(TEXT, NODE, seed=2) == expected
    hurried = replace(NODE, params=SamplingParams(priority=3, deadline_s=9.0))
    assert key_of(TEXT, hurried) == expected


@pytest.mark.parametrize(
    "nodes",
    [
        (Text(0, None, ("b",)), NODE),
        (Text(0, None, ("a", "")), Text(1, 0, ("b",)), Generate(2, 1, "x", GREEDY)),
        (TEXT, Generate(1, 0, "x", SamplingParams(max_tokens=3))),
        (TEXT, Generate(1, 0, "x", SamplingParams(seed=4))),
        (TEXT, Generate(1, None, "x", GREEDY)),
        (TEXT, Select(1, 0, "x", ("a", "b"))),
    ],
)
def test_what_is_asked_counts(nodes: tuple[Node, ...]) -> None:
    assert key_of(*nodes) not in (key_of(TEXT, NODE), None)


def test_a_sampled_node_depends_on_the_seed_of_its_run_and_its_id() -> None:
    node = Generate(1, 0, "x", SAMPLED)
    keys = {key_of(TEXT, node), key_of(TEXT, node, seed=2), key_of(TEXT, replace(node, node_id=2))}
    assert len(keys) == 3
    fixed = Generate(1, 0, "x", SamplingParams(temperature=1.0, seed=3))
    assert key_of(TEXT, fixed) == key_of(TEXT, replace(fixed, node_id=2), seed=2)


def test_what_a_node_builds_on_counts() -> None:
    def behind(params: SamplingParams, seed: int) -> bytes | None:
        return key_of(
            TEXT, Generate(1, 0, "x", params), Text(2, None, (Ref(1),)), Generate(3, 2, "y", GREEDY), seed=seed
        )

    assert behind(GREEDY, 1) == behind(GREEDY, 2)
    assert len({behind(GREEDY, 1), behind(SAMPLED, 1), behind(SAMPLED, 2)}) == 3


def test_inputs_count() -> None:
    nodes = (Text(0, None, (Arg("q"),)), NODE)
    assert key_of(*nodes, inputs={"q": "a"}) != key_of(*nodes, inputs={"q": "b"})


def test_calls_and_first_values_belong_to_their_run() -> None:
    first = Decide(2, "first", (Ref(1), Ref(1)))
    behind: tuple[Node, ...] = (TEXT, NODE, first, Text(3, None, (Ref(2),)), Generate(4, 3, "y", GREEDY))
    assert key_of(*behind) not in (key_of(*behind, seed=2), None)
    call: tuple[Node, ...] = (Call(0, "f", ()), Text(1, None, (Ref(0),)), Generate(2, 1, "y", GREEDY))
    assert key_of(*call) not in (key_of(*call, seed=2), None)
    assert key_of(Call(0, "f", ())) not in (key_of(Call(0, "g", ())), key_of(Call(0, "f", (Const(1),))))


def test_calls_of_a_run_are_told_apart_by_their_paths() -> None:
    calls = [Call(number, "f", (Const(number // 2),), path=f"f()#{number + 1}") for number in range(4)]
    keys = Keys({}, 1).add(calls)
    assert len(set(keys.values())) == 4
    others = Keys({}, 1).add([Call(7, "g", ()), *(replace(each, node_id=each.node_id + 8) for each in calls)])
    assert [others[number + 8] for number in range(4)] == [keys[number] for number in range(4)]


def test_values_with_lone_surrogates_have_keys() -> None:
    keys = [key_of(Call(0, "f", (Const(text),), path="f()")) for text in ("\udcff", "\udcfe", "?")]
    assert len(set(keys)) == 3
    assert None not in keys


def test_what_happened_in_a_run_has_a_key_of_its_own() -> None:
    keys = Keys({}, 1)
    assert len({keys.of_run(1), keys.of_run(2), Keys({}, 2).of_run(1), *keys.add([TEXT, NODE]).values()}) == 5
