"""Graphs of the benchmark and a recorder of their events."""

from __future__ import annotations

import threading
import time
from typing import Any

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import GraphRun, Target


def generation(prompt: str, *, constraint: Constraint | None = None, **params: Any) -> RequestGraph:
    """A graph of one generation named "out"; `params` are those of `SamplingParams`."""
    return RequestGraph(
        (Text(0, None, (prompt,)), Generate(1, 0, "out", SamplingParams(**params), constraint=constraint))
    )


class Recorder:
    """Listens to one graph. Read it after `wait`, or while the graph runs for counts only.

    Attributes:
        times: arrival of each delta, by `time.perf_counter`.
        num_tokens: tokens so far.
        deltas: texts of the deltas of choice 0.
        text: the final text of choice 0; None before, and if the node failed.
        error: of the graph or its node.
    """

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.times: list[float] = []
        self.deltas: list[str] = []
        self.num_tokens = 0
        self.text: str | None = None
        self.error: RtlangError | None = None
        self.ended: float | None = None
        self._has_ended = threading.Event()
        self._run: GraphRun | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self.times.append(time.perf_counter())
            self.num_tokens += len(event.token_ids) or 1
            if event.choice == 0:
                self.deltas.append(event.text)
        elif isinstance(event, NodeFinished) and event.completions:
            self.text = event.completions[0].text
        elif isinstance(event, NodeFailed):
            self.error = event.error
        if isinstance(event, (GraphFinished, GraphFailed)):
            if isinstance(event, GraphFailed):
                self.error = event.error
            self.ended = time.perf_counter()
            self._has_ended.set()

    def submit(self, target: Target, graph: RequestGraph, **options: Any) -> Recorder:
        """Submit a graph; a refusal is kept as its error."""
        self.started = time.perf_counter()
        try:
            self._run = target.submit(graph, self, RunOptions(**options))
        except RtlangError as error:
            self.error, self.ended = error, time.perf_counter()
            self._has_ended.set()
        return self

    def cancel(self) -> None:
        """Cancel the graph."""
        if self._run is not None:
            self._run.cancel()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""
        return self._has_ended.wait(timeout_s)

    @property
    def has_ended(self) -> bool:
        return self._has_ended.is_set()

    @property
    def gaps(self) -> list[float]:
        """Seconds between consecutive deltas."""
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]

    def longest_gap(self, start: float, end: float) -> float:
        """The longest time without a delta between two moments, in seconds."""
        inside = [moment for moment in self.times if start <= moment <= end]
        return max((b - a for a, b in zip([start, *inside], [*inside, end], strict=True)), default=end - start)


class Canary:
    """A client that keeps one stream running: when a graph ends, the next one starts.

    Use as a context manager around an attack.
    """

    def __init__(self, target: Target, *, max_tokens: int = 400) -> None:
        self._target, self._max_tokens = target, max_tokens
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_running, name="rtlang-bench-canary", daemon=True)
        self.recorders: list[Recorder] = []
        self.gaps: list[float] = []
        self.num_errors = 0

    def __enter__(self) -> Canary:
        self._thread.start()
        while not any(each.times for each in self.recorders) and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30.0)

    def _keep_running(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            graph = generation(f"Canary {number}: ", max_tokens=self._max_tokens, ignore_eos=True)
            recorder = Recorder()
            self.recorders.append(recorder)
            recorder.submit(self._target, graph)
            while not recorder.wait(0.02):
                if self._stop.is_set():
                    recorder.cancel()
                    recorder.wait(10.0)
            if recorder.error is not None and not self._stop.is_set():
                self.num_errors += 1
                time.sleep(0.01)

    def longest_gap(self, start: float, end: float) -> float:
        """The longest time in which no token of any of its graphs arrived, in seconds."""
        times = sorted(moment for each in list(self.recorders) for moment in list(each.times) if start <= moment <= end)
        return max(b - a for a, b in zip([start, *times], [*times, end], strict=True))
