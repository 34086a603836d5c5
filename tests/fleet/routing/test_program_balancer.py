"""Programs on replicas without engines: what was sent counts until a report counts it, and prompts go where they pay."""

from __future__ import annotations

import pytest

from rtlang.contract.events import TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.fleet.routing.prefill_rule import PrefillRule
from rtlang.fleet.routing.program_balancer import NO_LOAD, ProgramBalancer, place_of
from rtlang.fleet.routing.router import Router
from rtlang.runtime.admission import Admission, Share

GRAPH = RequestGraph((Text(0, None, ("A story. " * 1000,)), Generate(1, 0, "x", SamplingParams(max_tokens=8))))
READY = {"cache_tokens": 6400}


class NoOwner:
    """Takes no messages."""

    def send(self, *args: object) -> None:
        raise NotImplementedError

    def cancel(self, run: EngineRun) -> None:
        raise NotImplementedError


def accepted(balancer: ProgramBalancer, graph_id: int, graph: RequestGraph = GRAPH) -> EngineRun:
    share = Share(Admission(100))
    run = EngineRun(NoOwner(), graph_id, graph, graph.validate(), lambda event: None, share, RunOptions())
    balancer.accept(run, {})
    return run


def begun(prefill: tuple[str, ...] = ()) -> ProgramBalancer:
    balancer = ProgramBalancer(Router(), prefill)
    for name in ("a", "b"):
        balancer.note_ready(name, READY)
    return balancer


def test_a_program_counts_from_its_opening_until_a_report_counts_it() -> None:
    balancer = begun()
    accepted(balancer, 1)
    name = balancer.choose(1, ["a", "b"])
    balancer.note_opened(1, name)
    sent = balancer.router.waiting(name)
    assert sent > 0
    load = NO_LOAD | {"output_weight": 100, "opened": 0}
    balancer.note_load(name, load)
    assert balancer.router.waiting(name) > 0, "the report does not know the program"
    balancer.note_load(name, load | {"opened": 1})
    assert balancer.router.waiting(name) == 0
    assert balancer.load(name)["opened"] == 1
    balancer.note_left(1, name)
    balancer.forget(1)
    balancer.forget_engine(name)
    assert balancer.load(name) == NO_LOAD


def test_a_program_begins_where_prompts_are_computed_and_moves_with_its_first_token() -> None:
    balancer = begun(("a",))
    balancer._rule = PrefillRule(gain=0.0)
    assert (balancer.role("a"), balancer.role("b")) == ("prefill", "decode")
    run = accepted(balancer, 1)
    for name in ("a", "b"):
        balancer.note_load(name, NO_LOAD | {"output_weight": 100, "opened": 0, "prefill_ns": 1000, "fetch_ns": 1})
    assert balancer.choose(1, ["a", "b"]) == "a"
    event = TextDelta(1, 1, 0, "x", (4,))
    run.ledger.take(event)
    assert not balancer.note_output(1, "a", event, lambda name: False), "no other replica takes it"
    assert balancer.note_output(1, "a", event, lambda name: True)
    assert not balancer.note_output(1, "b", event, lambda name: True)
    assert balancer.choose(1, ["a", "b"]) == "b"


def test_replicas_that_follow_have_the_place_of_the_first() -> None:
    assert [place_of(name) for name in ("a", "a~2", "a~13")] == ["a"] * 3


def loaded(balancer: ProgramBalancer, engine: str, num_programs: int, tokens: int) -> list[EngineRun]:
    """Programs that an engine has begun, and two reports of the load that they are there."""
    runs = [accepted(balancer, graph_id) for graph_id in range(1, 1 + num_programs)]
    for run in runs:
        balancer.note_opened(run.graph_id, balancer.choose(run.graph_id, [engine]))
    for _ in range(2):
        balancer.note_load(engine, NO_LOAD | {"output_weight": 400, "opened": num_programs, "prompt": tokens})
    return runs


def test_programs_move_to_a_replica_that_comes_back_but_only_once() -> None:
    balancer = begun()
    balancer.forget_engine("b")
    loaded(balancer, "a", 16, 40_000)
    assert balancer.moves(lambda name: True) == []
    balancer.note_ready("b", READY)
    assert balancer.moves(lambda name: False) == [], "it takes no programs yet"
    moves = balancer.moves(lambda name: True)
    assert {to for _, to in moves} == {"b"}
    assert 4 <= len(moves) <= 8
    for graph_id, to in moves:
        balancer.note_left(graph_id, "a")
        balancer.note_opened(graph_id, to)
    assert balancer.moves(lambda name: True) == [], "the load of a does not tell yet that they have left"
    for _ in range(2):
        balancer.note_load("b", NO_LOAD | {"output_weight": 400, "opened": len(moves), "prompt": 90_000})
        balancer.note_load("a", NO_LOAD | {"output_weight": 400, "opened": 16})
    assert balancer.moves(lambda name: True) == [], "none goes back"


@pytest.mark.parametrize("output_weight", [1, 4, 40])
def test_half_of_the_programs_move_at_whatever_weight_output_tokens_have(output_weight: int) -> None:
    """The queue is reported by the weight that the replicas measure; the programs came before anything was measured."""
    balancer = begun()
    balancer.forget_engine("b")
    graph = RequestGraph(
        (Text(0, None, ("Story:",)), Generate(1, 0, "x", SamplingParams(max_tokens=200, ignore_eos=True)))
    )
    for graph_id in range(1, 17):
        balancer.note_opened(accepted(balancer, graph_id, graph).graph_id, balancer.choose(graph_id, ["a"]))
    load = NO_LOAD | {"output_weight": 100 * output_weight, "opened": 16, "output": 16 * 200}
    for _ in range(2):
        balancer.note_load("a", load)
    balancer.note_ready("b", READY)
    assert len(balancer.moves(lambda name: True)) in (7, 8)


def test_no_program_moves_to_a_replica_that_computes_prompts() -> None:
    balancer = begun(("b",))
    balancer.forget_engine("b")
    loaded(balancer, "a", 16, 40_000)
    balancer.note_ready("b", READY)
    assert balancer.moves(lambda name: True) == []


def test_programs_stay_if_their_prompts_take_longer_than_their_wait() -> None:
    balancer = begun()
    balancer.forget_engine("b")
    loaded(balancer, "a", 16, 2_000)
    balancer.note_ready("b", READY)
    assert balancer.moves(lambda name: True) == []


def test_programs_move_to_a_spare_that_takes_programs_from_now_on() -> None:
    balancer = begun()
    loaded(balancer, "a", 16, 40_000)
    assert balancer.moves(lambda name: name == "a") == []
    assert len(balancer.moves(lambda name: True)) >= 4
