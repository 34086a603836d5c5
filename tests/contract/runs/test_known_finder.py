"""Outcomes of an earlier run are found by what nodes build on, by renamed nodes too, and not behind edits."""

from __future__ import annotations

import pickle

import pytest

from rtlang.contract.errors import ConstraintError, RtlangError
from rtlang.contract.events import Completion, NodeFinished, Timing
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Block, Call, Const, Decide, Generate, Node, Ref, Repeat, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.known_finder import Edit, KnownFinder, RunOutcomes

GREEDY = SamplingParams()
SAMPLED = SamplingParams(temperature=1.0)


def ended(text: str, finish: FinishReason = FinishReason.STOP) -> NodeFinished:
    return NodeFinished(1, 0, None, (Completion(text, (1,), finish),), Usage(5, 0, 3), Timing())


def chain(*paths: str, params: SamplingParams = SAMPLED) -> list[Node]:
    """A sequence of generations."""
    nodes: list[Node] = [Text(0, None, ("x",))]
    for number, path in enumerate(paths, 1):
        nodes.append(Generate(number, number - 1, path, params, path=path))
    return nodes


def base_of(nodes: list[Node], seed: int | None = None) -> RunOutcomes:
    """A run in which each generation has its path as its text."""
    outcomes: dict[int, NodeFinished | RtlangError] = {
        node.node_id: ended(node.path or "") for node in nodes if isinstance(node, Generate)
    }
    return RunOutcomes.of(nodes, outcomes, seed, "m")


def found(
    base: RunOutcomes, nodes: list[Node], seed: int | None = None, edits: tuple[Edit, ...] = ()
) -> dict[int, str]:
    """The texts that a run of these nodes takes over."""
    known = KnownFinder(base.new_keys(seed), base, edits).add(nodes)
    return {node_id: text_of(each) for node_id, each in known.items()}


def text_of(outcome: KnownOutcome) -> str:
    assert isinstance(outcome.end, NodeFinished)
    return outcome.end.completions[0].text


def test_a_run_takes_over_its_own_outcomes_with_no_usage() -> None:
    base = base_of(chain("a", "b"))
    assert found(base, chain("a", "b")) == {1: "a", 2: "b"}
    known = KnownFinder(base.new_keys(None), base).add(chain("a"))[1]
    assert isinstance(known.end, NodeFinished)
    assert known.is_replayed
    assert known.end.usage == Usage()


def test_a_pickled_run_has_the_same_outcomes() -> None:
    base = pickle.loads(pickle.dumps(base_of(chain("a", "b"), seed=3)))
    assert found(base, chain("a", "b"), seed=3) == {1: "a", 2: "b"}


@pytest.mark.parametrize(("before", "now"), [(None, 7), (7, 8), (0, 7)])
def test_another_seed_takes_over_greedy_nodes_only(before: int | None, now: int) -> None:
    assert found(base_of(chain("a", "b"), before), chain("a", "b"), now) == {}
    greedy = chain("a", "b", params=GREEDY)
    assert found(base_of(greedy, before), greedy, now) == {1: "a", 2: "b"}


def test_without_a_seed_a_run_has_that_of_its_base() -> None:
    assert found(base_of(chain("a"), 7), chain("a")) == found(base_of(chain("a"), 7), chain("a"), 7) == {1: "a"}


def test_renamed_nodes_take_over_and_so_does_what_builds_on_them() -> None:
    assert found(base_of(chain("a", "b", "c")), chain("a", "beta", "c")) == {1: "a", 2: "b", 3: "c"}
    assert found(base_of(chain("a", "b", "c")), chain("x", "y", "z")) == {1: "a", 2: "b", 3: "c"}
    assert found(base_of(chain("fork[0]/a")), chain("copy/b")) == {1: "fork[0]/a"}


def test_a_node_with_a_counterpart_is_not_taken_over() -> None:
    """A second sample of the same text must not be the first one again."""
    new: Node = Generate(1, 0, "new", SAMPLED, path="new")
    nodes = [Text(0, None, ("x",)), new, Generate(2, 0, "a", SAMPLED, path="a")]
    assert found(base_of(chain("a")), nodes) == {2: "a"}
    assert found(base_of(chain("a")), [*nodes[:2], Generate(2, 0, "b", SAMPLED, path="b")]) == {1: "a"}


def test_of_several_equal_forks_each_takes_over_its_own() -> None:
    def forks(name: str) -> list[Node]:
        paths = [f"fork[{index}]/{name}" for index in range(3)]
        return [Text(0, None, ("x",)), *(Generate(i, 0, name, SAMPLED, path=path) for i, path in enumerate(paths, 1))]

    before = base_of(forks("tip"))
    assert found(before, forks("advice")) == {1: "fork[0]/tip", 2: "fork[1]/tip", 3: "fork[2]/tip"}
    moved = [Text(0, None, ("x",)), Generate(1, 0, "tip", SAMPLED, path="elsewhere/tip")]
    assert found(before, moved) == {}  # three could be meant


def test_parts_of_a_graph_are_found_one_by_one_and_again_after_a_refusal() -> None:
    base, nodes = base_of(chain("a", "b", "c")), chain("a", "beta", "c")
    finder = KnownFinder(base.new_keys(None), base)
    parts = [finder.add(nodes[:3]), finder.add(nodes[:3]), finder.add(nodes[3:])]
    assert [{key: text_of(each) for key, each in part.items()} for part in parts] == [
        {1: "a", 2: "b"},
        {1: "a", 2: "b"},
        {3: "c"},
    ]


def test_an_edit_is_given_and_hides_what_builds_on_it() -> None:
    nodes = [*chain("a", "b", params=GREEDY), Generate(3, 0, "c", GREEDY, path="c")]
    edit = Edit("a", 0, KnownOutcome(ended("edited")))
    assert found(base_of(nodes), nodes, edits=(edit,)) == {1: "edited", 3: "c"}


def test_equal_nodes_of_which_one_was_edited_keep_their_own_texts() -> None:
    forks: list[Node] = [
        Text(0, None, ("x",)),
        *(Generate(i, 0, "a", GREEDY, path=f"fork[{i}]/a") for i in (1, 2)),
    ]
    base = base_of(forks)
    assert found(base, forks) == {1: "fork[1]/a", 2: "fork[2]/a"}
    assert found(base, [forks[0], Generate(1, 0, "a", GREEDY, path="third")]) == {}


def test_in_a_loop_what_comes_before_an_edit_is_taken_over() -> None:
    body = Block(
        (Generate(2, 1, "step", GREEDY, path="repeat[*]/step"), Call(3, "f", (Ref(2),), path="repeat[*]/f()")), 2
    )
    nodes: list[Node] = [
        Text(0, None, ("x",)),
        Repeat(1, 0, body, Const(False), 3, 2, path="repeat"),
        Generate(8, 1, "end", GREEDY, path="end"),
    ]
    outcomes: dict[int, NodeFinished | RtlangError] = {node_id: ended(str(node_id)) for node_id in range(2, 9)}
    base = RunOutcomes.of(nodes, outcomes, None, None)
    assert found(base, nodes) == {node_id: str(node_id) for node_id in range(2, 9)}
    edit = Edit("repeat", 3, KnownOutcome(ended("edited")))
    assert found(base, nodes, edits=(edit,)) == {2: "2", 3: "3", 4: "edited"}


def test_failed_and_shortened_outcomes_are_computed_again() -> None:
    nodes, lowered = chain("a", "b", params=GREEDY), ended("b")
    object.__setattr__(lowered, "max_tokens", 3)
    outcomes: dict[int, NodeFinished | RtlangError] = {1: ConstraintError("no"), 2: lowered}
    assert found(RunOutcomes.of(nodes, outcomes, None, None), nodes) == {}


def test_cut_candidates_belong_to_their_decision() -> None:
    def nodes(prompt: str) -> list[Node]:
        return [
            Text(0, None, (prompt,)),
            Generate(1, 0, "a", GREEDY, path="a"),
            Text(2, None, ("y",)),
            Generate(3, 2, "b", GREEDY, path="b"),
            Decide(4, "first", (Ref(1), Ref(3)), path="first()"),
        ]

    winner = NodeFinished(1, 4, None, (), Usage(), Timing(), value="a")
    outcomes: dict[int, NodeFinished | RtlangError] = {1: ended("a"), 3: ended("", FinishReason.CANCELLED), 4: winner}
    base = RunOutcomes.of(nodes("x"), outcomes, None, None)
    assert set(KnownFinder(base.new_keys(None), base).add(nodes("x"))) == {1, 3, 4}
    assert set(KnownFinder(base.new_keys(None), base).add(nodes("edited"))) == set()
