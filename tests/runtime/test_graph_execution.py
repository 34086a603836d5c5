"""Graphs on the engine against a naive interpreter that runs one node after the other."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import pytest

from rtlang.compiler.pipeline import compile_graph
from rtlang.contract.errors import (
    AbortedError,
    ApplyError,
    CapacityError,
    DeadlineError,
    DependencyError,
    NumericsError,
    RequestError,
)
from rtlang.contract.events import GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import FinishReason, SamplingParams, SelectMethod
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Const,
    Decide,
    Generate,
    Node,
    Ref,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Text,
)
from rtlang.contract.runs.budget import Budget
from tests.support.engine.fake_runner import logprob, naive_generate
from tests.support.long_tests import sized
from tests.support.programs.graph_world import TOKENIZER, World


def interpret(nodes: list[Node], inputs: Mapping[str, str]) -> tuple[dict[int, list[int]], dict[int, list[str]]]:
    """Token sequence after each node, and the texts of each generate or select node."""
    sequences: dict[int, list[int]] = {}
    texts: dict[int, list[str]] = {}
    roles: dict[int, str] = {}
    for node in nodes:
        tokens = list(sequences[node.parent]) if node.parent is not None else []
        role = roles.get(node.parent, "") if node.parent is not None else ""
        if isinstance(node, Text):
            text = ""
            for part in node.parts:
                match part:
                    case str():
                        text += part
                    case Ref():
                        text += texts[part.node_id][part.choice]
                    case Arg():
                        text += inputs[part.name]
                    case RoleStart():
                        text, role = text + f"<{part.role}>", part.role
                    case RoleEnd():
                        text += f"</{role}>"
            if text and not tokens:
                tokens = [1]
            tokens += TOKENIZER.encode(text, is_start=False)
        elif isinstance(node, Generate):
            tokens = tokens or [1]
            made = [
                naive_generate(tokens, node.params.max_tokens, seed=node.params.seed or 0, choice=choice)
                for choice in range(node.params.n)
            ]
            texts[node.node_id] = [TOKENIZER.decode(ids) for ids in made]
            if node.params.n == 1:
                tokens += made[0]
        else:
            tokens = tokens or [1]
            ranks = []
            for choice in node.choices:
                ids = TOKENIZER.encode(choice, is_start=False)
                values = [logprob(tokens + ids[:i], ids[i]) for i in range(len(ids))]
                ranks.append(sum(values) / (len(values) if "token_length" in node.method else 1))
            best = node.choices[ranks.index(max(ranks))]
            texts[node.node_id] = [best]
            tokens += TOKENIZER.encode(best, is_start=False)
        sequences[node.node_id] = tokens
        roles[node.node_id] = role
    return sequences, texts


def random_nodes(rng: random.Random, count: int) -> list[Node]:
    nodes: list[Node] = []
    for node_id in range(count):
        parents = [n.node_id for n in nodes if not (isinstance(n, Generate) and n.params.n > 1)]
        parent = rng.choice(parents) if parents and rng.random() < 0.85 else None
        valued = [n for n in nodes if not isinstance(n, Text)]
        kind = rng.random()
        if kind < 0.45:
            parts: list[Any] = [
                rng.choice(["text", "größe 漢字", " ", "Arg: ", "x" * rng.randint(1, 30)]) for _ in range(2)
            ]
            if valued and rng.random() < 0.5:
                target = rng.choice(valued)
                choice = rng.randrange(target.params.n) if isinstance(target, Generate) else 0
                parts.append(Ref(target.node_id, choice))
            if rng.random() < 0.3:
                parts.append(Arg("a"))
            if rng.random() < 0.3:
                parts = [RoleStart("user"), *parts, RoleEnd()]
            nodes.append(Text(node_id, parent, tuple(parts)))
        elif kind < 0.8:
            n = rng.choice([1, 1, 1, 2, 3])
            params = SamplingParams(max_tokens=rng.randint(1, 12), seed=rng.randint(0, 5), n=n)
            nodes.append(Generate(node_id, parent, rng.choice([None, "x", "y"]), params))
        else:
            choices = tuple(rng.sample(["yes", "no", "may be", "perhaps", "n", "nope"], rng.randint(1, 4)))
            method = rng.choice([SelectMethod.FULL_LIKELIHOOD, SelectMethod.TOKEN_LENGTH_NORMALIZED])
            nodes.append(Select(node_id, parent, rng.choice([None, "z"]), choices, method))
    return nodes


@pytest.mark.parametrize("seed", range(sized(12)))
@pytest.mark.parametrize("num_pages", [80, 400])
def test_random_graphs_give_what_a_naive_interpreter_gives(seed: int, num_pages: int) -> None:
    rng = random.Random(seed)
    world = World(num_pages, max_rows=rng.choice([2, 8]))
    inputs = {"a": "the input"}
    graphs = [random_nodes(rng, rng.randint(1, 25)) for _ in range(4)]
    for nodes in graphs:
        world.submit(nodes, inputs)
        for _ in range(rng.randint(0, 5)):
            world.step()
    world.run()
    assert world.num_ended == 4
    for graph_id, nodes in enumerate(graphs):
        sequences, texts = interpret(nodes, inputs)
        told = world.events[graph_id]
        assert isinstance(told[-1], GraphFinished)
        finished = world.finished(graph_id)
        failed = {event.node_id for event in told if isinstance(event, NodeFailed)}
        for node in nodes:
            if isinstance(node, Text) or node.node_id in failed:
                continue
            assert [c.text for c in finished[node.node_id].completions] == texts[node.node_id]
            for choice, text in enumerate(texts[node.node_id]):
                deltas = [
                    e for e in told if isinstance(e, TextDelta) and (e.node_id, e.choice) == (node.node_id, choice)
                ]
                if isinstance(node, Generate):
                    assert "".join(delta.text for delta in deltas) == text
        assert not failed, [e for e in told if isinstance(e, NodeFailed)]
        assert sequences


def gen(node_id: int, parent: int | None, name: str | None = None, **params: Any) -> Generate:
    return Generate(node_id, parent, name, SamplingParams(**{"max_tokens": 4, "seed": 0} | params))


def test_values_are_collected_by_name() -> None:
    world = World()
    world.submit(
        [Text(0, None, ("hi",)), gen(1, 0, "one"), gen(2, 0, "many", n=2), gen(3, 0, "both"), gen(4, 3, "both")]
    )
    world.run()
    last = world.events[0][-1]
    assert isinstance(last, GraphFinished)
    texts = interpret([Text(0, None, ("hi",)), gen(1, 0), gen(2, 0, n=2), gen(3, 0), gen(4, 3)], {})[1]
    assert last.values == {"one": texts[1][0], "many": texts[2], "both": [texts[3][0], texts[4][0]]}
    assert last.usage.completion_tokens > 0


def test_a_failure_takes_dependants_along_and_nobody_else() -> None:
    world = World(40)
    nodes: list[Node] = [
        Text(0, None, ("hi",)),
        gen(1, 0, "too_long", max_tokens=1000),
        gen(2, 1, "after"),
        Text(3, 0, ("see: ", Ref(1))),
        gen(4, 3, "refers"),
        gen(5, 0, "fine"),
    ]
    world.submit(nodes)
    world.run()
    errors = {event.node_id: event.error for event in world.events[0] if isinstance(event, NodeFailed)}
    assert isinstance(errors[1], CapacityError)
    for node_id in (2, 3, 4):
        error = errors[node_id]
        assert isinstance(error, DependencyError)
        assert (error.node_id, error.cause_code) == (1, "capacity")
    last = world.events[0][-1]
    assert isinstance(last, GraphFinished)
    assert last.failed_node_ids == (1, 2, 3, 4)
    assert set(last.values) == {"fine"}


def test_one_choice_that_fails_fails_its_node_and_frees_the_others() -> None:
    world = World()
    world.submit([Text(0, None, ("hi",)), gen(1, 0, "a", n=3, max_tokens=50)])
    world.runner.poison.add(2)
    world.run()
    failed = [event for event in world.events[0] if isinstance(event, NodeFailed)]
    assert isinstance(failed[0].error, NumericsError)
    assert isinstance(world.events[0][-1], GraphFinished)
    assert world.engine.num_requests == 0


@pytest.mark.parametrize("error", [AbortedError("cancelled"), DeadlineError("late")])
def test_ending_a_graph_ends_its_requests_at_once(error: Any) -> None:
    world = World()
    state = world.submit([Text(0, None, ("hi",)), gen(1, 0, "a", n=3, max_tokens=200), gen(2, 0, "b", max_tokens=200)])
    for _ in range(3):
        world.step()
    state.fail(error)
    assert world.engine.cache.num_in_use == 0
    state.fail(error)
    world.run()
    assert [e for e in world.events[0] if isinstance(e, GraphFailed)] == [GraphFailed(0, error)]


def test_an_open_graph_goes_on_with_nodes_that_come_later() -> None:
    world = World()
    first: list[Node] = [Text(0, None, ("hi",)), gen(1, 0, "a")]
    second: list[Node] = [Text(2, 1, (" and ", Ref(1))), gen(3, 2, "b")]
    state = world.submit(first, is_open=True)
    world.run()
    assert not state.is_ended
    state.add_nodes(second)
    world.run()
    assert not state.is_ended
    state.close()
    assert state.is_ended
    texts = interpret(first + second, {})[1]
    last = world.events[0][-1]
    assert isinstance(last, GraphFinished)
    assert last.values == {"a": texts[1][0], "b": texts[3][0]}


def test_an_empty_graph_ends_at_once() -> None:
    world = World()
    world.submit([])
    assert world.events[0] == [GraphFinished(0, {}, world.events[0][0].usage)]  # type: ignore[union-attr]


def test_messages_must_nest() -> None:
    world = World()
    world.submit([Text(0, None, (RoleStart("user"), "a", RoleStart("user")))])
    world.submit([Text(0, None, (RoleEnd(),))])
    for graph_id in (0, 1):
        assert isinstance(world.events[graph_id][0], NodeFailed)
        assert isinstance(world.events[graph_id][0].error, RequestError)
        assert isinstance(world.events[graph_id][-1], GraphFinished)


def test_a_stop_string_is_not_part_of_what_is_continued() -> None:
    world = World()
    head = [Text(0, None, ("hi",))]
    whole = interpret([*head, gen(1, 0, max_tokens=8)], {})[1][1][0]
    assert len(whole) >= 5
    world.submit([*head, gen(1, 0, "cut", max_tokens=8, stop=(whole[3:5],)), gen(2, 1, "next", max_tokens=3)])
    world.run()
    finished = world.finished(0)
    assert finished[1].completions[0].text == whole[: whole.find(whole[3:5])]
    assert finished[1].completions[0].stop_match == whole[3:5]
    prompt = [1, *TOKENIZER.encode("hi" + finished[1].completions[0].text, is_start=False)]
    assert finished[2].completions[0].token_ids == tuple(naive_generate(prompt, 3))


def test_prompt_logprobs_are_those_of_every_token_but_the_first() -> None:
    world = World()
    world.submit([Text(0, None, ("hello",)), gen(1, 0, "a", prompt_logprobs=0)])
    world.run()
    tokens = [1, *TOKENIZER.encode("hello", is_start=False)]
    found = world.finished(0)[1].prompt_logprobs
    assert found is not None
    assert [f.logprob for f in found] == [logprob(tokens[:i], tokens[i]) for i in range(1, len(tokens))]


def test_select_keeps_the_scores_and_probabilities_of_all_choices() -> None:
    world = World()
    world.submit([Text(0, None, ("hi",)), Select(1, 0, "s", ("yes", "no"), SelectMethod.FULL_LIKELIHOOD)])
    world.run()
    event = world.finished(0)[1]
    tokens = [1, *TOKENIZER.encode("hi", is_start=False)]
    sums = []
    for choice in ("yes", "no"):
        ids = TOKENIZER.encode(choice, is_start=False)
        sums.append(sum(logprob(tokens + ids[:i], ids[i]) for i in range(len(ids))))
    assert event.scores == pytest.approx(sums)
    assert event.probabilities is not None
    assert sum(event.probabilities) == pytest.approx(1)
    assert event.probabilities[0] / event.probabilities[1] == pytest.approx(math.exp(sums[0] - sums[1]))


def test_unconditional_likelihood_subtracts_what_the_choice_has_without_the_prompt() -> None:
    world = World()
    world.submit(
        [Text(0, None, ("hi",)), Select(1, 0, "s", ("ab", "c"), SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED)]
    )
    world.run()
    event = world.finished(0)[1]
    expected = []
    for choice in ("ab", "c"):
        ids = TOKENIZER.encode(choice, is_start=False)
        means = []
        for prefix in ([1, *TOKENIZER.encode("hi", is_start=False)], [1]):
            means.append(sum(logprob(prefix + ids[:i], ids[i]) for i in range(len(ids))) / len(ids))
        expected.append(means[0] - means[1])
    assert event.scores == pytest.approx(expected)


def test_finish_reasons_are_told() -> None:
    world = World()
    world.submit([Text(0, None, ("hi",)), gen(1, 0, "a", max_tokens=2), gen(2, 0, "b", max_tokens=300)])
    world.run()
    finished = world.finished(0)
    assert finished[1].completions[0].finish_reason is FinishReason.LENGTH
    assert finished[2].completions[0].finish_reason is FinishReason.STOP


def test_values_are_computed_when_their_operands_are_there() -> None:
    world = World()
    nodes: list[Node] = [
        Text(0, None, ("hi", Arg("who"))),
        gen(1, 0, "a", max_tokens=4),
        Apply(2, "upper", (Ref(1),)),
        Apply(3, "len", (Arg("who"),)),
        Apply(4, "format", (Const("{}+{}"), Ref(2), Ref(3))),
        Text(5, 1, ("<", Ref(4), Ref(3), ">")),
        gen(6, 5, "b", max_tokens=3),
    ]
    world.submit(nodes, {"who": "Ada"})
    world.run()
    finished = world.finished(0)
    assert set(finished) == {1, 6}
    text = finished[1].completions[0].text
    prompt = [1, *TOKENIZER.encode("hiAda" + text + f"<{text.upper()}+33>", is_start=False)]
    assert finished[6].completions[0].token_ids == tuple(naive_generate(prompt, 3))
    assert isinstance(world.events[0][-1], GraphFinished)


def test_a_failed_computation_fails_what_needs_it() -> None:
    world = World()
    nodes = [gen(0, None, "a"), Apply(1, "parse_int", (Ref(0),)), Text(2, 0, (Ref(1),)), gen(3, 2, "b")]
    world.submit(nodes)
    world.run()
    failed = {event.node_id: event.error for event in world.events[0] if isinstance(event, NodeFailed)}
    assert isinstance(failed[1], ApplyError)
    assert isinstance(failed[3], DependencyError)
    assert (failed[3].node_id, failed[3].cause_code) == (1, "apply")
    assert set(world.finished(0)) == {0}


@pytest.mark.parametrize("passes", [("path",), ()], ids=["path", "plain"])
def test_a_program_ends_earlier_if_its_longest_path_goes_first(passes: tuple[str, ...]) -> None:
    text = Text(0, None, ("ab",))
    chain = [gen(node_id, node_id - 1, max_tokens=8, ignore_eos=True) for node_id in (1, 2, 3)]
    single = [gen(node_id, 0, max_tokens=8, ignore_eos=True) for node_id in (4, 5, 6)]
    graph, _ = compile_graph(RequestGraph((text, *chain, *single)), passes)
    world = World(max_rows=2)
    world.submit(list(graph.nodes))
    world.run()
    num_steps = world.engine.num_steps
    assert num_steps <= 26 if passes else num_steps >= 32


def test_time_that_is_spent_ends_a_generation_once_though_its_end_decides_a_vote() -> None:
    """The failure of one operand decides the vote for the known one, which cancels the third."""
    world = World()
    operands = [gen(1, None, max_tokens=1), gen(2, None, max_tokens=50), gen(3, None, max_tokens=50)]
    state = world.submit([*operands], is_open=True, budget=Budget(seconds=60.0))
    state.add_nodes([Decide(4, "vote", (Ref(1), Ref(2), Ref(3)))])
    state.close()
    for _ in range(3):
        world.step()
    state.spend_time()
    world.run()
    ends = [event for event in world.events[0] if isinstance(event, (NodeFinished, NodeFailed))]
    assert sorted(event.node_id for event in ends) == [1, 2, 3, 4]
    assert isinstance(world.events[0][-1], GraphFinished)
    assert world.finished(0)[3].is_cancelled


@pytest.mark.parametrize("seed", range(sized(30)))
def test_a_deadline_fails_its_generation_alone_and_counts_from_its_start(seed: int) -> None:
    """Each generation waits for a chain of others; all of them run as fast with deadlines as without."""
    rng = random.Random(seed)
    chains = [[rng.randint(1, 9) for _ in range(rng.randint(1, 3))] for _ in range(4)]
    limits = {(i, j): rng.choice([None, rng.randint(1, 12) + 0.5]) for i in range(4) for j in range(len(chains[i]))}

    def nodes_of(limited: bool) -> list[Node]:
        nodes: list[Node] = []
        for i, chain in enumerate(chains):
            nodes.append(Text(len(nodes), None, (f"{i}",)))
            for j, max_tokens in enumerate(chain):
                params = SamplingParams(
                    max_tokens=max_tokens, seed=i, ignore_eos=True, deadline_s=limits[i, j] if limited else None
                )
                nodes.append(Generate(len(nodes), len(nodes) - 1, f"{i}.{j}", params))
        return nodes

    world = World()
    nodes = nodes_of(limited=True)
    world.submit(nodes)
    began, ended = dict[int, float](), dict[int, float]()
    while world.engine.has_work:
        for node_id in world.tables[0].begun:
            began.setdefault(node_id, world.now)
        world.step()
        for node_id in world.tables[0].ended:
            ended.setdefault(node_id, world.now)
    assert world.timers == [], "the timers of a graph end with it"
    plain = World()
    plain.submit(nodes_of(limited=False))
    plain.run()
    texts = {event.name: event.completions[0].text for event in plain.finished(0).values()}
    finished = world.finished(0)
    errors = {event.node_id: event.error for event in world.events[0] if isinstance(event, NodeFailed)}
    at = 0
    for i, chain in enumerate(chains):
        at += 1
        is_lost = False
        for j, _ in enumerate(chain):
            limit = limits[i, j]
            if is_lost:
                assert isinstance(errors[at], DependencyError)
            elif at in errors:
                assert isinstance(errors[at], DeadlineError)
                assert limit is not None
                assert errors[at].message == f"deadline_s = {limit:g}: the deadline of the generation has passed"
                assert limit <= ended[at] - began[at] < limit + 1
                is_lost = True
            else:
                assert finished[at].completions[0].text == texts[f"{i}.{j}"]
                assert limit is None or ended[at] - began[at] < limit
            at += 1
    assert isinstance(world.events[0][-1], GraphFinished)
    world.run()
