"""Runs programs as clients of a stateless server do: every call is a request of its own with the whole text before it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

from rtlang.bench.measure import Measurement, OutputKey
from rtlang.contract.errors import EngineDeadError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.params import Usage
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Text, TokenIds, parent_of
from rtlang.contract.service.target import Target


@dataclass(slots=True)
class _Program:
    """A running program.

    Attributes:
        outputs: token ids of ended calls, by node.
        waiting: calls that have not been sent.
    """

    nodes: dict[int, Node]
    arrival_s: float
    waiting: set[int]
    num_running: int = 0
    outputs: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def ready(self) -> list[int]:
        """Calls whose earlier calls have all ended."""
        return [
            each for each in sorted(self.waiting) if all(before in self.outputs for before in self._calls_before(each))
        ]

    def request(self, call: int) -> RequestGraph:
        """The graph of one call: the texts of the program, each encoded on its own as there, and earlier outputs as tokens."""
        nodes: list[Node] = []
        for node_id in self._path(call):
            node, parent = self.nodes[node_id], len(nodes) - 1 if nodes else None
            if node_id == call:
                assert isinstance(node, Generate)
                nodes.append(Generate(len(nodes), parent, node.name, node.params, node.constraint))
            else:
                parts = node.parts if isinstance(node, Text) else (TokenIds(self.outputs[node_id]),)
                nodes.append(Text(len(nodes), parent, parts))
        return RequestGraph(tuple(nodes))

    def _path(self, node_id: int) -> list[int]:
        path: list[int] = []
        at: int | None = node_id
        while at is not None:
            path.append(at)
            at = parent_of(self.nodes[at])
        return path[::-1]

    def _calls_before(self, call: int) -> list[int]:
        return [each for each in self._path(call)[:-1] if isinstance(self.nodes[each], Generate)]


def run_call_by_call(
    target: Target,
    graphs: Sequence[RequestGraph],
    *,
    arrivals_s: Sequence[float] = (),
    clock: Callable[[], float] = perf_counter,
    timeout_s: float = 600.0,
) -> Measurement:
    """Run programs of texts and generations call by call, and wait for the last.

    Args:
        arrivals_s: by program, seconds from now; empty for all at once.
        timeout_s: seconds without any event after which the run fails.
    Returns:
        The figures, with no times of outputs.
    Raises:
        RtlangError: the error of a failed call. EngineDeadError: nothing came for `timeout_s`.
    """
    events: queue.SimpleQueue[tuple[int, int, Event]] = queue.SimpleQueue()
    started = clock()
    due = list(arrivals_s) or [0.0] * len(graphs)
    programs = [
        _Program(
            {node.node_id: node for node in graph.nodes},
            at_s,
            {node.node_id for node in graph.nodes if isinstance(node, Generate)},
        )
        for graph, at_s in zip(graphs, due, strict=True)
    ]
    to_come = sorted(range(len(programs)), key=due.__getitem__)[::-1]
    latencies = [0.0] * len(programs)
    outputs: dict[OutputKey, tuple[int, ...]] = {}
    usage, num_left = Usage(), len(programs)

    def send(index: int) -> None:
        program = programs[index]
        for call in program.ready():
            program.waiting.discard(call)
            program.num_running += 1
            target.submit(program.request(call), partial(_put, events, index, call))

    while num_left:
        now = clock() - started
        while to_come and due[to_come[-1]] <= now:
            send(to_come.pop())
        try:
            index, call, event = events.get(timeout=max(0.0, due[to_come[-1]] - now) if to_come else timeout_s)
        except queue.Empty:
            if not to_come:
                raise EngineDeadError(f"no event came for {timeout_s:g} s") from None
            continue
        program = programs[index]
        match event:
            case NodeFinished():
                program.outputs[call] = outputs[index, call] = event.completions[0].token_ids
            case NodeFailed() | GraphFailed():
                raise event.error
            case GraphFinished():
                usage += event.usage
                program.num_running -= 1
                send(index)
                if not program.waiting and not program.num_running:
                    latencies[index] = clock() - started - program.arrival_s
                    num_left -= 1
    return Measurement(
        total_s=clock() - started,
        latencies_s=tuple(latencies),
        output_times_s={},
        outputs=outputs,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        arrivals_s=tuple(arrivals_s),
    )


def _put(events: queue.SimpleQueue[tuple[int, int, Event]], index: int, call: int, event: Event) -> None:
    if isinstance(event, (NodeFinished, NodeFailed, GraphFinished, GraphFailed)) and not _is_text(event):
        events.put((index, call, event))


def _is_text(event: Event) -> bool:
    """Whether the event ends a node that generates nothing."""
    return isinstance(event, NodeFinished) and not event.completions
