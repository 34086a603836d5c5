"""Worst cases of graphs on a runtime, many at a time: by price, no turn of the engine thread does more than 4 ms of their work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random

import pytest

import rtlang as rt
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished
from rtlang.contract.request_graph import Apply, Call, Const, Node, Ref, RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.process.turn_work import MOST_TURN_US, TURN_WORK_US, TurnWork
from rtlang_bench.worst_cases.draws import Draws
from rtlang_bench.worst_cases.graph_cases import ARGUMENTS, NODES, function_graph, node_graph
from tests.support.long_tests import sized

ANA, BEN = Principal("ana"), Principal("ben")
AT_ONCE = 8


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(dtype="float32", num_threads=1, num_pages=512) as made:
        yield made


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The prices of all turns that did something."""
    found: list[float] = []
    begin = TurnWork.begin

    def noted(self: TurnWork) -> None:
        if self.spent_us:
            found.append(self.spent_us)
        begin(self)

    monkeypatch.setattr(TurnWork, "begin", noted)
    return found


class Running:
    """A graph that runs; its calls are answered with a list."""

    def __init__(self, runtime: rt.Runtime, graph: RequestGraph, inputs: dict[str, str], principal: Principal) -> None:
        self._has_ended, self._is_accepted = threading.Event(), threading.Event()
        self._called: list[int] = []
        options = RunOptions(inputs, deadline_s=4.0, principal=principal)
        self._run = runtime.submit(graph, self._listen, options)

    def _listen(self, event: Event) -> None:
        if isinstance(event, CallRequested):
            self._called.append(event.node_id)
        if isinstance(event, (GraphFinished, GraphFailed)):
            self._has_ended.set()

    def wait(self) -> None:
        while not self._has_ended.wait(0.01):
            while self._called:
                self._run.resolve(self._called.pop(), [1, "a"])


def test_no_turn_does_more_work_than_it_has_room_for(runtime: rt.Runtime, turns: list[float]) -> None:
    kinds = [(function_graph, name) for name in ARGUMENTS] + [(node_graph, name) for name in NODES for _ in range(8)]
    rng, num_run = Random(4), 0
    rng.shuffle(kinds)
    for start in range(0, sized(len(kinds), usual=4 * AT_ONCE), AT_ONCE):
        running = []
        for number, (make, name) in enumerate(kinds[start : start + AT_ONCE]):
            draft = make(Draws(Random(f"{start}/{number}")), name)
            try:
                running.append(Running(runtime, RequestGraph.from_plain(draft.graph()), draft.inputs, ANA))
            except RtlangError:  # an invalid one
                continue
        for each in running:
            each.wait()
        num_run += len(running)
    assert num_run > 10
    assert max(turns) > TURN_WORK_US / 2
    assert max(turns) <= MOST_TURN_US


def test_many_graphs_of_one_client_leave_turns_to_another(runtime: rt.Runtime, turns: list[float]) -> None:
    many: list[Node] = [Apply(number, "add", (Const(number), Const(1))) for number in range(1_000)]
    graphs = [Running(runtime, RequestGraph(tuple(many)), {}, ANA) for _ in range(20)]
    called: list[Node] = [Call(0, "f", ()), *(Apply(number, "list", (Ref(number - 1),)) for number in range(1, 20))]
    before = len(turns)
    Running(runtime, RequestGraph(tuple(called)), {}, BEN).wait()
    num_turns = len(turns) - before
    for each in graphs:
        each.wait()
    assert max(turns) <= MOST_TURN_US
    assert len(turns) - before > 100
    assert num_turns < len(turns) / 2, "the other client's small graph ends long before the large ones"
