"""Votes start only what can decide them, and the rest as it becomes necessary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import RequestError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Apply, Const, Decide, Generate, Node, Ref, RequestGraph, Text
from rtlang.runtime.executors.decision_state import DecisionState
from rtlang.runtime.executors.staging import Staging
from rtlang.runtime.nodes.uses import Uses
from rtlang.testing import ScriptedRuntime


def votes_cast(values: list[str], need: int | None) -> tuple[int, str]:
    """The number of operands that a staged vote starts if each answers at once, and the winning value."""
    state = DecisionState(Decide(0, "vote", (Const(None),) * len(values), need))
    held = list(range(len(values)))
    num_started = 0
    while state.winner() is None:
        started = held[: state.num_needed(held)]
        assert started, "a vote that is not decided goes on"
        held = held[len(started) :]
        for index in started:
            if state.winner() is None:
                state.know(index, values[index])
        num_started += len(started)
    return num_started, state.value(state.winner() or 0)


def test_a_decided_vote_starts_a_majority_and_no_more() -> None:
    assert votes_cast(["a"] * 9, None) == (5, "a")
    assert votes_cast(["a"] * 9, 5) == (5, "a")
    assert votes_cast(["a"] * 9, 3) == (3, "a")
    assert votes_cast(["a"] * 8, None) == (4, "a")  # the others can tie at most, and the earliest wins a tie
    assert votes_cast(["a"] * 2, None) == (1, "a")


def test_a_dissenting_value_starts_as_many_more_as_the_leader_needs() -> None:
    assert votes_cast(list("aabaaaaaa"), None) == (6, "a")
    assert votes_cast(list("abababbbb"), None)[1] == "b"
    assert votes_cast(list("abcdefghi"), None) == (9, "a")


def test_staged_votes_have_the_value_of_all_votes() -> None:
    random = Random(3)
    num_spared = 0
    for _ in range(2000):
        values = random.choices("abc", (6, 2, 1), k=random.randint(1, 9))
        num_started, value = votes_cast(values, None)
        counts = Counter(values)
        assert value == max(counts, key=lambda each: (counts[each], -values.index(each)))
        num_spared += len(values) - num_started
    assert num_spared > 1000


def test_no_fewer_operands_can_decide() -> None:
    """The number is the smallest with which some values of the started operands decide the vote."""
    random = Random(4)
    for _ in range(500):
        count = random.randint(1, 8)
        need = random.choice((None, random.randint(1, count)))
        node = Decide(0, "vote", (Const(None),) * count, need)
        known = {index: random.choice("ab") for index in range(count) if random.random() < 0.4}
        state = DecisionState(node)
        for index, value in known.items():
            state.know(index, value)
        if state.winner() is not None:
            continue
        held = [index for index in range(count) if index not in known and random.random() < 0.7]
        running = [index for index in range(count) if index not in known and index not in held]

        def is_decidable(
            num_started: int,
            node: Decide = node,
            known: dict[int, str] = known,
            started: list[int] = running,
            held: list[int] = held,
        ) -> bool:
            for value in "abz":
                trial = DecisionState(node)
                for index, each in {**known, **dict.fromkeys(started + held[:num_started], value)}.items():
                    trial.know(index, each)
                if trial.winner() is not None:
                    return True
            return False

        expected = next(number for number in range(len(held) + 1) if number == len(held) or is_decidable(number))
        assert state.num_needed(held) == expected, (known, held, need)


def forks(count: int) -> list[Node]:
    """A question, and for each answer an instruction and a generation."""
    nodes: list[Node] = [Text(0, None, ("question",))]
    for number in range(count):
        node_id = 2 * number + 1
        nodes += [
            Text(node_id, 0, (f"{number}",)),
            Generate(node_id + 1, node_id, "answer", SamplingParams(max_tokens=4)),
        ]
    return nodes


def held_ids(nodes: list[Node], vote: Decide, outputs: tuple[int, ...] = (), begun: tuple[int, ...] = ()) -> set[int]:
    RequestGraph((*nodes, vote)).validate()
    uses = Uses()
    staging = Staging(uses, outputs.__contains__, begun)
    staging.add(vote)
    for node in (*nodes, vote):
        uses.add(node)
    assert staging.due(()) == [vote.node_id]
    assert staging.due(()) == []
    staging.update(vote.node_id, DecisionState(vote))
    return {node.node_id for node in nodes if staging.park(node.node_id)}


def test_the_whole_work_of_an_operand_is_held_back() -> None:
    vote = Decide(99, "vote", tuple(Ref(2 * number + 2) for number in range(5)))
    assert held_ids(forks(5), vote) == {7, 8, 9, 10}


def test_what_something_else_needs_starts_at_once() -> None:
    vote = Decide(99, "vote", tuple(Ref(2 * number + 2) for number in range(5)))
    assert held_ids(forks(5), vote, outputs=(10,)) == {5, 6, 7, 8}
    used = Apply(20, "upper", (Ref(8),), "shown")
    assert held_ids([*forks(5), used], vote) == {5, 6, 9, 10}
    assert held_ids(forks(5), vote, begun=(8, 10)) == {3, 4, 5, 6}


@pytest.mark.parametrize("how", ["first", "best"])
def test_other_decisions_hold_nothing_back(how: Any) -> None:
    of = tuple(Ref(2 * number + 2) for number in range(5))
    staging = Staging(Uses(), lambda node_id: False, ())
    staging.add(Decide(99, how, of, None, of if how == "best" else None))
    assert staging.due(range(20)) == []


@rt.program
def sampled(s: rt.State, choices: list[str]) -> Any:
    s += "Is water wet? "
    s += rt.gen("answer", n=9, choices=choices, temperature=1.0, seed=1, max_tokens=8)
    return rt.vote(s["answer"])


@rt.program
def forked(s: rt.State, choices: list[str]) -> Any:
    s += "Is water wet? "
    answers = s.fork(9)
    for number, fork in enumerate(answers):
        fork += rt.gen("answer", choices=choices, temperature=1.0, seed=number, max_tokens=8)
    winner = rt.vote([fork["answer"] for fork in answers])
    answers.join()
    return winner


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny", dtype="float32") as runtime:
        yield runtime


@pytest.mark.parametrize("program", [sampled, forked])
def test_a_vote_on_a_model_has_the_winner_of_all_samples(program: Any, runtime: rt.Runtime) -> None:
    num_spared = 0
    for choices in (["yes"], ["yes", "no"], ["red", "green", "blue"]):
        everything = program.run(choices, runtime=runtime, outputs=["answer"])
        answers = everything["answer"]
        assert len(answers) == 9
        assert None not in answers
        staged = program.run(choices, runtime=runtime)
        kept = [each for each in staged["answer"] if each is not None]
        assert kept == answers[: len(kept)]
        counts = Counter(answers)
        winner = max(answers, key=lambda each: (counts[each], -answers.index(each)))
        assert everything.value == staged.value == winner
        spared = everything.usage.completion_tokens - staged.usage.completion_tokens
        assert (spared > 0) == (len(kept) < 9)
        num_spared += spared
    assert num_spared > 0


def test_what_is_asked_for_is_generated_though_the_vote_is_decided() -> None:
    @rt.program
    def both(s: rt.State) -> Any:
        s += rt.gen("answer", n=5, max_tokens=5)
        return rt.vote(s["answer"]), s["answer"]

    with ScriptedRuntime({"answer": "a"}) as runtime:
        winner, answers = both.run(runtime=runtime).value
    assert winner == "a"
    assert answers == ["a"] * 5


def race(answers: dict[str | None, Any], need: int | None = None) -> tuple[rt.Result, list[str | None]]:
    """The result of a vote over one generation per answer, and the names of the generations that were started."""

    @rt.program
    def race(s: rt.State) -> Any:
        forks = s.fork(len(answers))
        for name, fork in zip(answers, forks, strict=True):
            fork += rt.text(f"question {name}")
            fork += rt.gen(name, max_tokens=8)
        return rt.vote([fork[name] for name, fork in zip(answers, forks, strict=True)], need=need)

    with ScriptedRuntime(answers) as runtime:
        result = race.run(runtime=runtime, on_error="result")
        return result, sorted(str(request.name) for request in runtime.requests)


def test_answers_that_cannot_matter_are_never_asked_for() -> None:
    result, asked = race(dict(zip("abcdefghi", "xxxxxyyyy", strict=True)))
    assert result.value == "x"
    assert asked == list("abcde")
    result, asked = race(dict(zip("abcdefghi", "xyxxxxyyy", strict=True)))
    assert asked == list("abcdef")


def test_failed_answers_are_replaced_by_the_ones_held_back() -> None:
    broken = RequestError("broken")
    result, asked = race({"a": broken, "b": broken, "c": "x", "d": "x", "e": "x", "f": "y", "g": "y"}, need=3)
    assert result.value == "x"
    assert asked == list("abcde")
    result, asked = race(dict.fromkeys("abcde", broken))
    assert isinstance(result.error, rt.RtlangError)
    assert asked == list("abcde")


def test_a_cancelled_or_late_run_ends() -> None:
    @rt.program
    def slow(s: rt.State) -> Any:
        s += rt.gen("answer", n=9, max_tokens=8)
        return rt.vote(s["answer"])

    with ScriptedRuntime({"answer": "x"}, delay_s={"answer": 3600.0}) as runtime:
        result = slow.run(runtime=runtime, deadline_s=0.05, on_error="result")
        assert isinstance(result.error, rt.DeadlineError)
