"""Chooses the replica of each program: the router's rule, fed with what programs are, what was sent, and what replicas report.

The last report of a replica does not count the programs that were sent since; they are added to it. The work of a program is estimated
from its graph, and the estimator learns from the first generation of each program and from the replicas' reports.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from rtlang.contract.events import Event, NodeFinished, TextDelta
from rtlang.contract.node_work import NodeWork
from rtlang.contract.request_graph import Generate, Select
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.fleet.engines.load_balancer import LoadBalancer
from rtlang.fleet.messages.frames import Message
from rtlang.fleet.routing.prefill_rule import PrefillRule
from rtlang.fleet.routing.program_prefix import WorkEstimator
from rtlang.fleet.routing.rebalancing import MovableProgram, programs_to_move
from rtlang.fleet.routing.router import ProgramWork, Router

NO_LOAD: Message = dict.fromkeys(
    ("prompt", "output", "prompt_ahead", "output_ahead", "running", "pages", "free", "asked", "hit"), 0
)
"""The report of a replica that has not reported yet."""
SETTLED_REPORTS = 2
"""Reports of a replica after which programs that moved away are not in its load any more."""


@dataclass(slots=True)
class _RoutedProgram:
    """A program that has not ended.

    Attributes:
        inputs: until a generation of it has ended, from which the estimator learns.
        engine: the one that has it.
        num_came: engines that had come when it was opened there.
    """

    run: EngineRun
    work: ProgramWork
    inputs: Mapping[str, str] | None
    engine: str | None = None
    num_came: int = 0


@dataclass(slots=True)
class _Sent:
    """The programs that were opened on a replica and that no report of it has counted yet, and how many were counted.

    Attributes:
        num_reports: reports that have come.
        num_reports_moved: as many had come when programs were moved away, to others with less work.
    """

    graph_ids: deque[int] = field(default_factory=deque)
    num_counted: int = 0
    num_reports: int = 0
    num_reports_moved: int = -SETTLED_REPORTS


class ProgramBalancer(LoadBalancer):
    """Chooses the replica of each program of a fleet.

    Args:
        router: chooses replicas, and belongs to the balancer from now on.
        prefill: names of the replicas that only compute prompts (see prefill_rule.py). Replicas that follow one have the same role.
    """

    def __init__(self, router: Router, prefill: Collection[str] = ()) -> None:
        self.router, self.estimator = router, WorkEstimator()
        self._prefill, self._rule = frozenset(prefill), PrefillRule()
        self._programs: dict[int, _RoutedProgram] = {}
        self._loads: dict[str, Message] = {}
        self._sent: defaultdict[str, _Sent] = defaultdict(_Sent)
        self._num_came = 0
        self._came: dict[str, int] = {}  # engines that are ready, and how many had come by then
        self._closed: set[str] = set()  # those of them that took no programs

    def role(self, engine: str) -> str:
        """What a replica does: "any", "prefill" or "decode"."""
        if not self._prefill:
            return "any"
        return "prefill" if self._computes_prompts(engine) else "decode"

    def load(self, engine: str) -> Message:
        """The last report of a replica; NO_LOAD before the first."""
        return self._loads.get(engine, NO_LOAD)

    def num_waiting(self, load: Message) -> float:
        """Tokens that wait to be computed, nodes that have not begun included, as the router counts them."""
        work = NodeWork(load["prompt"] + load["prompt_ahead"], load["output"] + load["output_ahead"])
        return work.weighted(self.estimator.output_weight)

    # -- see LoadBalancer

    def accept(self, run: EngineRun, inputs: Mapping[str, str]) -> None:
        """See `LoadBalancer.accept`."""
        work = self.estimator.estimate(run.graph, inputs, run.share.principal.namespace)
        self._programs[run.graph_id] = _RoutedProgram(run, work, inputs)

    def forget(self, graph_id: int) -> None:
        """See `LoadBalancer.forget`."""
        self._programs.pop(graph_id, None)

    def choose(self, graph_id: int, engines: Collection[str]) -> str:
        """See `Placement.choose`. Replicas that compute prompts are chosen only for a program that begins, and if that pays."""
        program = self._programs[graph_id]
        staying = [name for name in engines if not self._computes_prompts(name)]
        among: Collection[str] = engines
        if staying and len(staying) < len(engines):
            among = staying
            if program.run.ledger.is_empty:
                num_held = max(self.router.num_held_tokens(name, program.work) for name in staying)
                if self._rule.is_worthwhile(program.work, num_held):
                    among = set(engines).difference(staying)
        return self.router.choose(program.work, among)

    def note_opened(self, graph_id: int, engine: str) -> None:
        """See `Placement.note_opened`."""
        self._sent[engine].graph_ids.append(graph_id)
        program = self._programs[graph_id]
        program.engine, program.num_came = engine, self._num_came

    def note_left(self, graph_id: int, engine: str) -> None:
        """See `Placement.note_left`."""
        program = self._programs.get(graph_id)
        if program is not None:
            program.engine = None
            self.router.ended(engine, program.work)

    def note_output(self, graph_id: int, engine: str, event: Event, is_open: Callable[[str], bool]) -> bool:
        """See `LoadBalancer.note_output`. A program that was opened for its prompt moves, if another replica takes it."""
        program = self._programs[graph_id]
        if isinstance(event, NodeFinished) and event.usage.prompt_tokens and program.inputs is not None:
            self.estimator.learn(program.run.nodes, event.node_id, program.inputs, event.usage.prompt_tokens)
            program.inputs = None
        if not self._computes_prompts(engine):
            return False
        node = program.run.nodes.get(event.node_id) if isinstance(event, TextDelta | NodeFinished) else None
        return isinstance(node, Generate | Select) and any(
            is_open(name) and not self._computes_prompts(name) for name in self.router.names
        )

    def note_ready(self, engine: str, ready: Message) -> None:
        """See `LoadBalancer.note_ready`."""
        self._forget_sent(engine)
        self.router.add(engine, ready.get("cache_tokens"))
        self._num_came += 1
        self._came[engine] = self._num_came

    def note_load(self, engine: str, load: Message) -> None:
        """See `LoadBalancer.note_load`."""
        self._loads[engine] = load
        if engine in self.router.names:
            self.estimator.output_weight = load["output_weight"] / 100 or self.estimator.output_weight
            sent = self._sent[engine]
            sent.num_reports += 1
            while sent.graph_ids and sent.num_counted < load["opened"]:
                sent.graph_ids.popleft()
                sent.num_counted += 1
            works = [self._programs[graph_id].work for graph_id in sent.graph_ids if graph_id in self._programs]
            self.router.report(engine, self.num_waiting(load), works)
        self._rule.report(engine, {name: load.get(name) or None for name in ("prefill_ns", "fetch_ns")})

    def moves(self, is_open: Callable[[str], bool]) -> list[tuple[int, str]]:
        """See `LoadBalancer.moves` and rebalancing.py. To replicas that came after the programs were opened where they are."""
        found = []
        for name, number in self._came.items():
            if not is_open(name):
                self._closed.add(name)
            elif name in self._closed:  # a spare that takes programs from now on
                self._closed.discard(name)
                self._num_came += 1
                self._came[name] = number = self._num_came
            if name in self._closed or self._computes_prompts(name):
                continue
            programs = self._movable(name, number)
            waiting = {each: self.router.waiting(each) for each in (*programs, name)}
            for graph_id, left in programs_to_move(waiting, programs, name):
                self._sent[left].num_reports_moved = self._sent[left].num_reports
                self.router.choose(self._programs[graph_id].work, among=(name,))  # it counts there from now on
                found.append((graph_id, name))
        return found

    def _movable(self, to: str, number: int) -> dict[str, list[MovableProgram]]:
        """By engine, the programs that may move to one that came as the `number`th."""
        found: defaultdict[str, list[MovableProgram]] = defaultdict(list)
        for graph_id, program in self._programs.items():
            engine = program.engine
            if engine is None or program.num_came >= number or engine == to or self._computes_prompts(engine):
                continue
            sent = self._sent[engine]
            if engine in self.router.names and sent.num_reports >= sent.num_reports_moved + SETTLED_REPORTS:
                found[engine].append(self._as_movable(graph_id, program, to))
        return found

    def _as_movable(self, graph_id: int, program: _RoutedProgram, to: str) -> MovableProgram:
        work, num_delivered, weight = program.work, program.run.num_delivered, self.estimator.output_weight
        done = 0.0
        if not program.run.ledger.is_empty:
            done = work.prefix_tokens + weight * num_delivered
        again = work.prefix_tokens - self.router.num_held_tokens(to, work) + num_delivered
        return MovableProgram(graph_id, max(0.0, work.compute_at(weight) - done), max(0.0, again))

    def forget_engine(self, engine: str) -> None:
        """See `LoadBalancer.forget_engine`."""
        self._forget_sent(engine)
        self._loads.pop(engine, None)
        self._rule.forget(engine)

    def _forget_sent(self, engine: str) -> None:
        self._sent.pop(engine, None)
        self._came.pop(engine, None)
        self._closed.discard(engine)
        if engine in self.router.names:
            self.router.remove(engine)

    def _computes_prompts(self, engine: str) -> bool:
        return place_of(engine) in self._prefill


def place_of(name: str) -> str:
    """The name of the first engine of a replica, whose role and GPUs those that follow it have: "a" for "a~2"."""
    return name.partition("~")[0]
