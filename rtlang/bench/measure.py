"""Runs a workload on a runtime, and defines the measurements recorded for every run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.graph import RequestGraph
from rtlang.contract.params import Usage
from rtlang.contract.target import Target

OutputKey = tuple[int, int]
"""Index of the graph in its workload, and the node id."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one workload. All graphs are submitted at its start; times are in seconds since then.

    Attributes:
        total_s: time until the last graph ended.
        latencies_s: time until each graph ended, in graph order.
        first_token_s: time until the first generated token of each graph, in graph order.
        outputs: the generated token ids.
        prompt_tokens, cached_tokens: totals of all generations; cached tokens are prompt tokens that were not recomputed.
        num_steps: forward passes; None if not known.
        cpu_s: processor time of all threads of the process; None if not measured.
        peak_bytes: peak resident memory of the process; None if unknown.
    """

    total_s: float
    latencies_s: tuple[float, ...]
    first_token_s: tuple[float, ...]
    outputs: dict[OutputKey, tuple[int, ...]] = field(repr=False)
    prompt_tokens: int
    cached_tokens: int = 0
    num_steps: int | None = None
    cpu_s: float | None = None
    peak_bytes: int | None = None

    @property
    def num_output_tokens(self) -> int:
        return sum(map(len, self.outputs.values()))

    @property
    def num_computed_tokens(self) -> int:
        """Tokens that went through the model."""
        return self.prompt_tokens - self.cached_tokens + self.num_output_tokens

    @property
    def output_tokens_per_s(self) -> float:
        return self.num_output_tokens / self.total_s


class _GraphRecorder:
    """The listener of one graph. Written by a runtime thread; read only after `on_end` was called."""

    def __init__(self, on_end: Callable[[], None], clock: Callable[[], float], started: float) -> None:
        self._on_end, self._clock, self._started = on_end, clock, started
        self.latency_s = 0.0
        self.first_token_s: float | None = None
        self.outputs: dict[int, tuple[int, ...]] = {}
        self.usage = Usage()
        self.error: RtlangError | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case NodeFinished():
                # Timing counts from when the node was ready; subtracting its total from the time now gives that moment.
                start = self._clock() - self._started - event.timing.total_s
                first = start + event.timing.first_token_s
                self.first_token_s = first if self.first_token_s is None else min(first, self.first_token_s)
                self.outputs[event.node_id] = event.completions[0].token_ids
            case NodeFailed():
                self.error = self.error or event.error
            case GraphFinished():
                self.usage = event.usage
                self._end()
            case GraphFailed():
                self.error = self.error or event.error
                self._end()

    def _end(self) -> None:
        self.latency_s = self._clock() - self._started
        self._on_end()


def run_on_target(
    target: Target, graphs: Sequence[RequestGraph], *, clock: Callable[[], float] = perf_counter
) -> Measurement:
    """Submit all graphs at once and wait for the last.

    Raises:
        RtlangError: the error of the first failed graph, raised once all graphs have ended.
    """
    is_done = threading.Event()
    lock = threading.Lock()
    num_running = len(graphs)

    def end_one() -> None:
        nonlocal num_running
        with lock:
            num_running -= 1
            if num_running == 0:
                is_done.set()

    started = clock()
    recorders = [_GraphRecorder(end_one, clock, started) for _ in graphs]
    for graph, recorder in zip(graphs, recorders, strict=True):
        target.submit(graph, recorder)
    if graphs:
        is_done.wait()
    total_s = clock() - started
    for recorder in recorders:
        if recorder.error is not None:
            raise recorder.error
    usage = sum((recorder.usage for recorder in recorders), Usage())
    return Measurement(
        total_s=total_s,
        latencies_s=tuple(recorder.latency_s for recorder in recorders),
        first_token_s=tuple(recorder.first_token_s or recorder.latency_s for recorder in recorders),
        outputs={
            (index, node_id): token_ids
            for index, recorder in enumerate(recorders)
            for node_id, token_ids in recorder.outputs.items()
        },
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
    )


def agreement(ours: Measurement, other: Measurement) -> tuple[int, int]:
    """Number of generations with the same token ids on both sides, and number of generations that both sides have."""
    keys = ours.outputs.keys() & other.outputs.keys()
    return sum(ours.outputs[key] == other.outputs[key] for key in keys), len(keys)
