"""Measures programs on a runtime: a target that notes when each program ends, and the engine's counters around a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from time import perf_counter, process_time
from typing import Any

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.request_graph import Node, RequestGraph, all_nodes
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener
from rtlang.lang.execution.result import Result
from rtlang.runtime.graph_run import LocalGraphRun
from rtlang.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a workload under one variant.

    Attributes:
        prompt_tokens: prompt tokens that were computed; cached ones are not.
        generated_tokens: generated tokens, those of cancelled generations included.
        latencies_s: seconds from the submission of each measured program until its end.
        latency_steps: mean number of steps of the engine in that time, which other load on the machine does not change.
        peak_pages: most KV pages that requests used at once.
        num_steps: steps of the engine.
        num_nodes: nodes of the submitted graphs.
        cpu_s: processor time of all threads of the process.
        cached_share: for programs that wait, the share of their tokens that were cached when they went on; None for others.
    """

    prompt_tokens: int
    generated_tokens: int
    latencies_s: tuple[float, ...]
    latency_steps: float
    peak_pages: int
    num_steps: int
    num_nodes: int
    cpu_s: float
    cached_share: float | None = None

    @property
    def latency_s(self) -> float:
        """Mean latency of a program."""
        return mean(self.latencies_s)


class TimedTarget:
    """A runtime that notes how long each program ran. See `Target`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.latencies_s: list[float] = []
        self.latencies_steps: list[int] = []
        self.num_nodes = 0

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._runtime.is_alive

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        return self._runtime.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`."""
        return self._runtime.abilities

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> _TimedRun:
        """See `Target.submit`."""
        started, first_step = perf_counter(), self._runtime.stats()["num_steps"]

        def listen(event: Event) -> None:
            if isinstance(event, (GraphFinished, GraphFailed)):
                self.latencies_s.append(perf_counter() - started)
                self.latencies_steps.append(self._runtime.stats()["num_steps"] - first_step)
            listener(event)

        self._count(graph.nodes)
        seed = 0 if options.seed is None else options.seed  # the same samples in every variant
        run = self._runtime.submit(graph, listen, replace(options, seed=seed))
        return _TimedRun(run, self._count)

    def _count(self, nodes: Sequence[Node]) -> None:
        self.num_nodes += sum(1 for _ in all_nodes(nodes))

    def close(self) -> None:
        """Leave the runtime as it is."""


class _TimedRun:
    """A run that counts the nodes that are added to it. See `GraphRun`."""

    def __init__(self, run: LocalGraphRun, count: Callable[[Sequence[Node]], None]) -> None:
        self._run, self._count = run, count
        self.graph_id, self.close, self.cancel = run.graph_id, run.close, run.cancel
        self.resolve, self.reject, self.grant = run.resolve, run.reject, run.grant

    def extend(self, nodes: Sequence[Node]) -> None:
        """See `GraphRun.extend`."""
        self._count(nodes)
        self._run.extend(nodes)


@dataclass(slots=True)
class Meter:
    """The runtimes that a workload uses, and the figures that it reports besides the engine's counters.

    Attributes:
        runtime: not measured program by program; for other load.
        target: of the measured programs.
        cached_share: see `Run`.
    """

    runtime: Runtime
    target: TimedTarget = field(init=False)
    cached_share: float | None = None

    def __post_init__(self) -> None:
        self.target = TimedTarget(self.runtime)


def measure(runtime: Runtime, play: Callable[[Meter], None]) -> Run:
    """Run a workload once with an empty prefix cache."""
    runtime.clear_cache()
    meter = Meter(runtime)
    before, cpu_before = runtime.stats(), process_time()
    play(meter)
    cpu_s, after = process_time() - cpu_before, runtime.stats()
    grown = {name: after[name] - before[name] for name in after}
    return Run(
        prompt_tokens=grown["num_prompt_tokens"] - grown["num_cached_tokens"],
        generated_tokens=grown["num_generated_tokens"],
        latencies_s=tuple(meter.target.latencies_s),
        latency_steps=mean(meter.target.latencies_steps),
        peak_pages=after["most_pages_in_use"],
        num_steps=grown["num_steps"],
        num_nodes=meter.target.num_nodes,
        cpu_s=cpu_s,
        cached_share=meter.cached_share,
    )


def checked(results: list[Result[Any]]) -> list[Result[Any]]:
    """The results.

    Raises:
        RtlangError: a program failed, so there are no figures.
    """
    for result in results:
        if result.error is not None:
            raise result.error if isinstance(result.error, RtlangError) else RuntimeError(f"{result.error!r}")
    return results
