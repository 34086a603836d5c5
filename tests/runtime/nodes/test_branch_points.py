"""Branch points of the prompts of graphs, against a walk over the whole graph and over the sequences of its nodes.

The tokens of the fake model are bytes, after one start token, so positions are lengths of texts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Arg,
    Block,
    Const,
    Generate,
    Marks,
    Node,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Select,
    Text,
    TokenIds,
    num_requests,
    parent_of,
)
from rtlang.contract.runs.known import KnownOutcome
from rtlang.engine.requests.request import RequestSpec
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.nodes.branch_points import MAX_NODES_BACK, MAX_POINTS
from rtlang.runtime.nodes.node_table import NodeTable
from tests.runtime.texts.test_borders import CHAT, SMOLLM, THINKING, chat_tokenizer
from tests.support.engine.fake_runner import FakeModelConfig, FakeRunner
from tests.support.engine.fake_state_runner import FakeStateRunner
from tests.support.programs.graph_world import World

SHORT = SamplingParams(max_tokens=5)
LONG_TEXT = "A text of more than three pages. "


def state_world(**settings: Any) -> World:
    return World(runner=FakeStateRunner(400, 4, num_states=16), **settings)


def chat_world(tokenizer: Tokenizer, num_states: int = 16) -> World:
    config = FakeModelConfig(tokenizer.vocab_size)
    runner = FakeStateRunner(2000, 4, num_states=num_states, tokenizer=tokenizer, model_config=config)
    return World(2000, runner)


def specs_of(nodes: list[Node], inputs: dict[str, str] | None = None, **options: Any) -> list[RequestSpec]:
    """The requests of a graph that ran to its end."""
    world = state_world()
    world.submit(nodes, inputs, **options)
    world.run()
    return world.specs


def generate(node_id: int, parent: int | None, n: int = 1, **params: Any) -> Generate:
    return Generate(node_id, parent, f"g{node_id}", replace(SHORT, n=n, **params))


def test_a_model_without_states_gets_no_branch_points() -> None:
    nodes: list[Node] = [Text(0, None, (LONG_TEXT,)), generate(1, 0), generate(2, 0), generate(3, 0, n=2)]
    world = World(runner=FakeRunner(400, 4))
    state = world.submit(nodes)
    world.run()
    assert [spec.branch_points for spec in world.specs] == [()] * 4
    assert all(sequence.ends == () and sequence.num_constant == 0 for sequence in state.table.sequences.values())


def test_a_prompt_that_nothing_else_continues_has_no_branch_points() -> None:
    assert [spec.branch_points for spec in specs_of([Text(0, None, (LONG_TEXT,)), generate(1, 0)])] == [()]


def test_several_completions_begin_with_all_but_the_last_token_of_their_prompt() -> None:
    prompt = 1 + len(LONG_TEXT)
    specs = specs_of([Text(0, None, (LONG_TEXT,)), generate(1, 0, n=3)])
    assert [spec.branch_points for spec in specs] == [(prompt - 1,)] * 3
    best = specs_of([Text(0, None, (LONG_TEXT,)), generate(1, 0, best_of=2, temperature=1.0)])
    assert [spec.branch_points for spec in best] == [(prompt - 1,)] * 2


def test_the_choices_of_a_select_begin_with_all_but_the_last_token_of_its_prompt() -> None:
    specs = specs_of([Text(0, None, (LONG_TEXT,)), Select(1, 0, "s", ("yes", "no")), generate(2, 1)])
    prompt = 1 + len(LONG_TEXT)
    assert [spec.branch_points for spec in specs[:2]] == [(prompt - 1,)] * 2
    assert all(len(spec.prompt_ids) > prompt for spec in specs[:2])


def test_forks_leave_the_sequence_that_they_share() -> None:
    nodes: list[Node] = [
        Text(0, None, (LONG_TEXT,)),
        *(Text(1 + index, 0, (f"fork {index}",)) for index in range(3)),
        *(generate(4 + index, 1 + index) for index in range(3)),
    ]
    assert [spec.branch_points for spec in specs_of(nodes)] == [(1 + len(LONG_TEXT),)] * 3


def test_a_sequence_that_later_parts_may_continue_is_a_branch_point() -> None:
    for is_kept in (False, True):
        marks = Marks(lifetime="program" if is_kept else "part")
        nodes: list[Node] = [
            Text(0, None, (LONG_TEXT,)),
            Generate(1, 0, "a", SHORT, marks=marks),
            Text(2, 1, ("more",)),
            generate(3, 2),
        ]
        first, second = specs_of(nodes)
        end = len(second.prompt_ids) - len("more")
        assert first.branch_points == ()
        assert (end in second.branch_points) == is_kept


def test_rows_of_a_program_share_its_text_before_the_first_input() -> None:
    nodes: list[Node] = [
        Text(0, None, (LONG_TEXT,)),
        Text(1, 0, ("Question: ", Arg("question"), "\n")),
        generate(2, 1),
    ]
    prompts = {question: specs_of(nodes, {"question": question})[0] for question in ("Who?", "When?", "")}
    shared = 1 + len(LONG_TEXT + "Question: ")
    assert {spec.branch_points for spec in prompts.values()} == {(shared,)}
    assert len({tuple(spec.prompt_ids[:shared]) for spec in prompts.values()}) == 1


def test_rows_share_the_text_before_the_first_input_of_a_message(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path, SMOLLM)
    parts = (
        RoleStart("user"),
        "Once upon a time there was a little dog. Say: ",
        Arg("what"),
        RoleEnd(),
        RoleStart("assistant"),
    )
    specs = []
    for what in ("name", "quick fox"):
        world = chat_world(tokenizer)
        world.submit([Text(0, None, parts), generate(1, 0)], {"what": what})
        world.run()
        specs += world.specs
    a, b = (list(spec.prompt_ids) for spec in specs)
    parted = num_common(a, b)
    for spec in specs:
        assert parted - 1 <= spec.branch_points[-2] <= parted, "the last token of the text may be longer in the prompt"


def test_a_generated_value_ends_the_constant_text() -> None:
    nodes: list[Node] = [
        generate(0, None),
        Text(1, None, (LONG_TEXT, Ref(0, 0), "and so on")),
        generate(2, 1),
    ]
    assert specs_of(nodes)[-1].branch_points == (1 + len(LONG_TEXT),)


def test_positions_lie_in_a_prompt_that_was_cut_off_or_healed() -> None:
    shared, more = LONG_TEXT * 2, "and a tail"
    for params in ({"truncate_prompt_tokens": 50}, {"truncate_prompt_tokens": 4}, {"token_healing": True}):
        nodes: list[Node] = [
            Text(0, None, (shared,)),
            *(Text(1 + index, 0, (more,)) for index in range(2)),
            *(generate(3 + index, 1 + index, **params) for index in range(2)),
            generate(5, 0, **params),
        ]
        for spec in specs_of(nodes):
            expected = len(spec.prompt_ids) - len(more)
            assert all(0 < point <= len(spec.prompt_ids) for point in spec.branch_points)
            if bytes(each - 3 for each in spec.prompt_ids[-4:]) == b"tail" and expected > 0:
                assert spec.branch_points == (expected,)


def test_a_fork_inside_a_loop_is_a_branch_point_after_the_loop() -> None:
    body = Block((Text(11, 10, (LONG_TEXT,)), generate(12, 11), Text(13, 11, ("aside",)), generate(14, 13)), 12, None)
    nodes: list[Node] = [
        Text(0, None, (LONG_TEXT,)),
        Repeat(10, 0, body, Const(False), 2, 4, "loop"),
        Text(20, 10, ("after",)),
        generate(21, 20),
    ]
    world = state_world()
    state = world.submit(nodes)
    world.run()
    last = world.specs[-1]
    assert bytes(each - 3 for each in last.prompt_ids[-5:]) == b"after"
    forks = [len(state.table.sequences[node_id]) for node_id in (11, 11 + 4)]
    assert list(last.branch_points) == forks


def test_a_resumed_run_has_the_same_branch_points() -> None:
    nodes: list[Node] = [
        Text(0, None, (LONG_TEXT,)),
        generate(1, 0),
        *(Text(2 + index, 1, (f"fork {index}",)) for index in range(2)),
        *(generate(4 + index, 2 + index) for index in range(2)),
    ]
    world = state_world()
    world.submit(nodes)
    world.run()
    first, *others = world.specs
    assert all(len(spec.branch_points) == 2 for spec in others), "the end of the text, and of the generation"
    resumed = specs_of(nodes, known={1: KnownOutcome(world.finished(0)[1])})
    assert [(spec.prompt_ids, spec.branch_points) for spec in resumed] == [
        (spec.prompt_ids, spec.branch_points) for spec in others
    ]
    assert first.branch_points == ()


@pytest.mark.parametrize("template", [SMOLLM, THINKING], ids=["smollm2", "qwen3"])
def test_a_chat_that_is_sent_again_finds_a_branch_point_of_the_turn_before(template: str, tmp_path: Path) -> None:
    """As one text node of messages, as a program makes it, and as tokens, as a server makes it."""
    tokenizer = chat_tokenizer(tmp_path, template)
    messages = [CHAT[:3], *((RoleStart("user"), f"question {index}", RoleEnd()) for index in range(8))]
    for as_tokens in (False, True):
        before: RequestSpec | None = None
        conversation: list[Any] = list(messages[0])
        for question in messages[1:]:
            conversation += question
            parts: tuple[Any, ...] = (*conversation, RoleStart("assistant"))
            if as_tokens:
                found = specs_of_chat(tokenizer, parts)
                parts = (TokenIds(tuple(found.prompt_ids)),)
            spec = specs_of_chat(tokenizer, parts)
            prompt = list(spec.prompt_ids)
            assert list(spec.branch_points) == sorted(set(spec.branch_points))
            assert len(spec.branch_points) <= 3
            if before is not None:
                parted = num_common(before.prompt_ids, prompt)
                usable = [point for point in before.branch_points if point <= parted]
                rest = tokenizer.decode(before.prompt_ids[usable[-1] :])
                assert rest in ("\nassistant\n", "\nassistant\n<think>\n"), "all messages are before the point"
                assert before.branch_points[0] == spec.branch_points[0], "the system message"
            before = spec
            conversation += (RoleStart("assistant"), "<think>\nso\n</think>\n\nanswer", RoleEnd())


@pytest.mark.parametrize("template", [SMOLLM, THINKING], ids=["smollm2", "qwen3"])
def test_a_chat_computes_little_more_than_its_new_tokens(template: str, tmp_path: Path) -> None:
    """Without the ends of messages, 43 turns of the chat with thoughts compute 4 to 5 % of their prompt tokens a second time."""
    rng = random.Random(1)
    world = chat_world(chat_tokenizer(tmp_path, template), num_states=8)
    conversation: list[Any] = [RoleStart("system"), "Be brief. " * 20, RoleEnd()]
    known: list[list[int]] = []
    num_prompt = num_computed = num_new = 0
    for _ in range(24):
        conversation += [RoleStart("user"), "the quick brown fox " * rng.randint(2, 30), RoleEnd()]
        state = world.submit([Text(0, None, (*conversation, RoleStart("assistant"))), generate(1, 0)])
        world.run()
        end = world.finished(state.graph_id)[1]
        prompt = list(world.specs[-1].prompt_ids)
        num_prompt += len(prompt)
        num_computed += len(prompt) - end.usage.cached_tokens
        num_new += len(prompt) - max((num_common(each, prompt) for each in known), default=0)
        (completion,) = end.completions
        known.append(prompt + list(completion.token_ids))
        conversation += [RoleStart("assistant"), "<think>\nso\n</think>\n\n" + completion.text, RoleEnd()]
    assert num_computed - num_new <= 0.02 * num_prompt


def num_common(first: Sequence[int], second: Sequence[int]) -> int:
    both = zip(first, second, strict=False)
    return next((at for at, (a, b) in enumerate(both) if a != b), min(len(first), len(second)))


def specs_of_chat(tokenizer: Any, parts: tuple[Any, ...]) -> RequestSpec:
    world = chat_world(tokenizer)
    world.submit([Text(0, None, parts), generate(1, 0)])
    world.run()
    return world.specs[0]


def test_the_points_of_a_prompt_and_the_nodes_before_it_are_bounded() -> None:
    nodes: list[Node] = [Text(0, None, ("start",))]
    num_turns = MAX_NODES_BACK + 20
    for index in range(num_turns):
        nodes.append(Text(2 * index + 1, nodes[-1].node_id if not index else 2 * index - 1, ("ab",)))
        nodes.append(Text(2 * index + 2, 2 * index + 1, ("aside",)))
    last = 2 * num_turns - 1
    nodes.append(generate(last + 2, last))
    (spec,) = specs_of(nodes)
    assert len(spec.branch_points) == MAX_POINTS
    assert spec.branch_points[-1] == len(spec.prompt_ids)


def expected_points(table: NodeTable, node: Generate | Select) -> set[int]:
    """The ends of the nodes before a node that several sequences continue, from the whole graph."""
    table_nodes = table.nodes
    found: set[int] = set()
    parent = parent_of(node)
    prompt = len(table.sequences[parent]) if parent is not None else 1
    at, child = parent, node
    while at is not None:
        others = [each for each in table_nodes.values() if parent_of(each) == at and each is not child]
        is_shared = bool(others) or (child is not node and num_requests(child) > 1)
        if is_shared:
            found.add(len(table.sequences[at]))
        child, at = table_nodes[at], parent_of(table_nodes[at])
    if num_requests(node) > 1:
        found.add(prompt - 1)
    chain: list[int] = []
    at = parent
    while at is not None:
        chain.append(at)
        at = parent_of(table_nodes[at])
    num_constant = 0
    for node_id in reversed(chain):
        if not isinstance(table_nodes[node_id], Text):
            break
        num_constant = len(table.sequences[node_id])
    if num_constant < prompt:
        found.add(num_constant)
    return {point for point in found if 0 < point <= prompt}


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_have_the_branch_points_of_their_shape(seed: int) -> None:
    rng = random.Random(seed)
    nodes: list[Node] = [Text(0, None, ("root text",))]
    for node_id in range(1, rng.randint(4, 25)):
        parents = [each.node_id for each in nodes if not (isinstance(each, Generate) and each.params.n > 1)]
        parent = rng.choice(parents[-4:])
        kind = rng.random()
        if kind < 0.45:
            nodes.append(Text(node_id, parent, ("text " * rng.randint(1, 4) + str(node_id),)))
        elif kind < 0.85:
            nodes.append(generate(node_id, parent, n=rng.choice((1, 1, 1, 2))))
        else:
            nodes.append(Select(node_id, parent, f"s{node_id}", ("yes", "no", "maybe")))
    world = state_world()
    state = world.submit(nodes)
    world.run()
    by_prompt: dict[tuple[int, ...], list[RequestSpec]] = {}
    for spec in world.specs:
        by_prompt.setdefault(tuple(spec.prompt_ids), []).append(spec)
    num_seen = 0
    for node in nodes:
        if not isinstance(node, (Generate, Select)):
            continue
        expected = tuple(sorted(expected_points(state.table, node)))
        prompt = state.table.sequences[parent_of(node)].token_ids  # type: ignore[index]
        if isinstance(node, Generate):
            found = by_prompt[prompt]
        else:
            choices = [tuple(each + 3 for each in choice.encode()) for choice in node.choices]
            found = [spec for choice in choices for spec in by_prompt[prompt + choice]]
        assert expected in {tuple(spec.branch_points) for spec in found}
        num_seen += 1
    assert num_seen
