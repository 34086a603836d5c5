"""Runs a workload on a runtime, and defines the measurements recorded for every run."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import (
    CallRequested,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
)
from rtlang.contract.params import Usage
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.service.target import GraphRun, Target

OutputKey = tuple[int, int]
"""Index of the graph in its workload, and the node id."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one workload; times are in seconds since its start.

    Attributes:
        total_s: time until the last graph ended.
        latencies_s: time from the arrival of each graph until it ended, in graph order.
        output_times_s: when the outputs of each generation came; an output has one token, or several that were drafted.
        outputs: the generated token ids.
        prompt_tokens, cached_tokens: totals of all generations; cached tokens are prompt tokens that were not recomputed.
        arrivals_s: when each graph arrived; empty if all did at the start.
        num_steps: forward passes; None if not known.
        cpu_s: processor time of all threads of the process; None if not measured.
        peak_bytes: peak resident memory of the process; None if unknown.
    """

    total_s: float
    latencies_s: tuple[float, ...]
    output_times_s: dict[OutputKey, tuple[float, ...]] = field(repr=False)
    outputs: dict[OutputKey, tuple[int, ...]] = field(repr=False)
    prompt_tokens: int
    cached_tokens: int = 0
    arrivals_s: tuple[float, ...] = ()
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

    @property
    def first_token_s(self) -> tuple[float, ...]:
        """Time from the arrival of each graph until its first output, in graph order; graphs without outputs are left out."""
        first: dict[int, float] = {}
        for (index, _), times in self.output_times_s.items():
            if times:
                first[index] = min(first.get(index, times[0]), times[0])
        return tuple(first[index] - self._arrival_s(index) for index in sorted(first))

    def gaps_s(self, beside: int | None = None) -> list[float]:
        """Times between two outputs of a generation.

        Args:
            beside: a graph; then only gaps of the others that end between its arrival and its first output.
        """
        pairs = [
            pair for (index, _), times in self.output_times_s.items() if index != beside for pair in pairwise(times)
        ]
        if beside is not None:
            start = self._arrival_s(beside)
            own = [times[0] for (index, _), times in self.output_times_s.items() if index == beside and times]
            pairs = [pair for pair in pairs if start < pair[1] <= min(own, default=self.total_s)]
        return [after - before for before, after in pairs]

    def _arrival_s(self, index: int) -> float:
        return self.arrivals_s[index] if self.arrivals_s else 0.0


class _GraphRecorder:
    """The listener of one graph. Written by a runtime thread; read only after `on_end` was called.

    Attributes:
        run: the submitted graph, once it is known; answers its tools.
    """

    def __init__(
        self, on_end: Callable[[], None], clock: Callable[[], float], started: float, arrival_s: float
    ) -> None:
        self._on_end, self._clock, self._started, self._arrival_s = on_end, clock, started, arrival_s
        self.run: Future[GraphRun] = Future()
        self.latency_s = 0.0
        self.output_times_s: dict[int, list[float]] = {}
        self.outputs: dict[int, tuple[int, ...]] = {}
        self.usage = Usage()
        self.error: RtlangError | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case TextDelta():
                self.output_times_s.setdefault(event.node_id, []).append(self._clock() - self._started)
            case CallRequested():
                _, delay_s, answer = event.args
                timer = threading.Timer(delay_s, self._answer, (event.node_id, answer))
                timer.daemon = True
                timer.start()
            case NodeFinished() if event.completions:
                self.outputs[event.node_id] = event.completions[0].token_ids
            case NodeFailed():
                self.error = self.error or event.error
            case GraphFinished():
                self.usage = event.usage
                self._end()
            case GraphFailed():
                self.error = self.error or event.error
                self._end()

    def _answer(self, node_id: int, answer: str) -> None:
        with suppress(RtlangError):  # the graph has ended
            self.run.result().resolve(node_id, answer)

    def _end(self) -> None:
        self.latency_s = self._clock() - self._started - self._arrival_s
        self._on_end()


def run_on_target(
    target: Target,
    graphs: Sequence[RequestGraph],
    *,
    arrivals_s: Sequence[float] = (),
    clock: Callable[[], float] = perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> Measurement:
    """Submit all graphs, and wait for the last.

    Args:
        arrivals_s: by graph, when to submit it, in seconds from now; empty for all at once.
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
    due_s = tuple(arrivals_s) or (0.0,) * len(graphs)
    recorders = [_GraphRecorder(end_one, clock, started, at_s) for at_s in due_s]
    for at_s, graph, recorder in sorted(zip(due_s, graphs, recorders, strict=True), key=lambda each: each[0]):
        wait_s = at_s - (clock() - started)
        if wait_s > 0:
            sleep(wait_s)
        recorder.run.set_result(target.submit(graph, recorder))
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
        output_times_s={
            (index, node_id): tuple(times)
            for index, recorder in enumerate(recorders)
            for node_id, times in recorder.output_times_s.items()
        },
        outputs={
            (index, node_id): token_ids
            for index, recorder in enumerate(recorders)
            for node_id, token_ids in recorder.outputs.items()
        },
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        arrivals_s=tuple(arrivals_s),
    )


def agreement(ours: Measurement, other: Measurement) -> tuple[int, int]:
    """Number of generations with the same token ids on both sides, and number of generations that both sides have."""
    keys = ours.outputs.keys() & other.outputs.keys()
    return sum(ours.outputs[key] == other.outputs[key] for key in keys), len(keys)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed; NaN without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
