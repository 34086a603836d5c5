"""Measures how soon the throughput of a fleet is back after an engine died, in times of an engine's start.

python -m rtlang_bench.fleet_recovery

Clients run seeded programs one after the other on engines in child processes. One engine is killed; the time counts until the throughput of
the next seconds is at least 90 % of that before, and is divided by the time until the engine was back. Texts must be those of the first
run.
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.replicas.process_fleet import ProcessFleet
from rtlang.fleet.replicas.scaling import Scaling
from rtlang_bench.command import Shape, command, config_of, progress, show

GOAL = 1.5
"""The throughput is back after so many times of an engine's start, at most."""
SHARE = 0.9
WINDOW_S = 5.0
"""Seconds over which throughput is measured."""
READY_TIMEOUT_S = 300.0
END_TIMEOUT_S = 300.0
_STEP_S = 0.1

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Death:
    """One engine that was killed.

    Attributes:
        before, without: tokens a second before, and of the engines that were left, until it was back.
        start_s: seconds from the death until the engine was back.
        back_s: seconds from the death until the throughput was back.
    """

    before: float
    without: float
    start_s: float
    back_s: float

    @property
    def ratio(self) -> float:
        """Time until the throughput was back, in times of an engine's start."""
        return self.back_s / self.start_s


@dataclass(slots=True)
class FleetRecovery:
    """The result.

    Attributes:
        programs: how many ended, by how: `done`, `failed`, `lost` (no end in time) and `changed` (a text that differs from the first run).
    """

    num_replicas: int
    num_spares: int
    deaths: list[Death] = field(default_factory=list)
    programs: Counter[str] = field(default_factory=Counter)

    @property
    def ratio(self) -> float:
        """The median of all deaths."""
        return statistics.median(death.ratio for death in self.deaths)

    @property
    def is_met(self) -> bool:
        """Whether the goal is met and every program ended with the right text."""
        return self.ratio <= GOAL and set(self.programs) == {"done"}

    def __str__(self) -> str:
        lines = [
            f"{death.before:.0f} tokens/s before, {death.without / death.before:.2f}x of that until the engine was back after "
            f"{death.start_s:.1f} s; {SHARE:.0%} after {death.back_s:.1f} s: {death.ratio:.2f} starts"
            for death in self.deaths
        ]
        programs = ", ".join(f"{count} {kind}" for kind, count in sorted(self.programs.items()))
        lines.append(
            f"{self.num_replicas} engines and {self.num_spares} spares, {len(self.deaths)} deaths: throughput back after "
            f"{self.ratio:.2f} starts of an engine (median; goal: at most {GOAL:g}); programs: {programs} (goal: only done)"
        )
        return "\n".join(lines)


def back_after(arrivals: Sequence[float], death: float, before: float, window_s: float = WINDOW_S) -> float:
    """Seconds after a death from which on `window_s` have SHARE of the throughput before.

    Args:
        arrivals: when each token came, in order, of any clock.
        before: tokens a second.
    """
    start = death
    while arrivals and start + window_s <= arrivals[-1]:
        if rate(arrivals, start, start + window_s) >= SHARE * before:
            return start - death
        start += _STEP_S
    return float("inf")


def rate(arrivals: Sequence[float], start: float, end: float) -> float:
    """Tokens a second of the time between."""
    return (bisect_left(arrivals, end) - bisect_left(arrivals, start)) / max(end - start, 1e-9)


def program(index: int, num_tokens: int) -> RequestGraph:
    """Program `index`: long generations, so that throughput comes back only if running ones move."""
    params = SamplingParams(max_tokens=num_tokens, temperature=1.0, ignore_eos=True)
    return RequestGraph(
        (
            Text(0, None, (f"Log {index} of a ship:",)),
            Generate(1, 0, "x", params),
            Text(2, 1, (" The next day",)),
            Generate(3, 2, "y", params),
        )
    )


class _Client(threading.Thread):
    """Runs its program again and again until `stop` is set."""

    def __init__(self, fleet: ProcessFleet, index: int, num_tokens: int, stop: threading.Event) -> None:
        super().__init__(name=f"client-{index}", daemon=True)
        self.arrivals: list[float] = []
        self.counts: Counter[str] = Counter()
        self._fleet, self._index, self._stop_event = fleet, index, stop
        self._graph = program(index, num_tokens)
        self._expected: Any = None

    def run(self) -> None:
        while not self._stop_event.is_set():
            self.counts[self._run_once()] += 1

    def _run_once(self) -> str:
        ended, ends, text = threading.Event(), list[Event](), list[str]()

        def listen(event: Event) -> None:
            if isinstance(event, TextDelta):
                now = time.monotonic()
                self.arrivals.extend(now for _ in event.token_ids)
                text.append(event.text)
            elif isinstance(event, (GraphFinished, GraphFailed)):
                ends.append(event)
                ended.set()

        self._fleet.submit(self._graph, listen, RunOptions(seed=self._index))
        if not ended.wait(END_TIMEOUT_S):
            return "lost"
        if not isinstance(ends[0], GraphFinished):
            return "failed"
        outcome = (ends[0].values, "".join(text))
        self._expected = outcome if self._expected is None else self._expected
        return "done" if outcome == self._expected else "changed"


def measure_fleet_recovery(
    config: RuntimeConfig,
    *,
    num_replicas: int = 2,
    num_spares: int = 0,
    num_clients: int = 16,
    num_deaths: int = 3,
    num_tokens: int = 200,
    tell: Tell = lambda line: None,
) -> FleetRecovery:
    """Kill engines one after the other.

    Args:
        config: of the engines; float32 and one thread for each unless it says otherwise.
        num_tokens: of each generation; a program has two.
    """
    found = FleetRecovery(num_replicas, num_spares)
    scaling = Scaling(num_replicas, num_replicas, num_spares=num_spares)
    settings = replace(
        config, dtype="float32" if config.dtype == "auto" else config.dtype, num_threads=config.num_threads or 1
    )
    with ProcessFleet(settings, scaling) as fleet:
        _wait_for_all(fleet)
        stop = threading.Event()
        clients = [_Client(fleet, index, num_tokens, stop) for index in range(num_clients)]
        for client in clients:
            client.start()
        while not all(client.counts for client in clients):  # each has its expected text
            time.sleep(_STEP_S)
        for number in range(num_deaths):
            tell(f"death {number + 1} of {num_deaths}")
            found.deaths.append(_kill_one(fleet, clients))
        stop.set()
        for client in clients:
            client.join(END_TIMEOUT_S)
            found.programs += client.counts
    return found


def _kill_one(fleet: ProcessFleet, clients: list[_Client]) -> Death:
    time.sleep(2 * WINDOW_S)
    working = [each for each in fleet.fleet_report().replicas if each.state == "ready"]
    victim = max(working, key=lambda each: each.num_programs)
    pid = fleet.pids()[victim.name]
    death = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    while fleet.pids().get(victim.name) == pid:
        time.sleep(0.01)
    if not fleet.wait_until_ready(victim.name, READY_TIMEOUT_S):
        raise TimeoutError(f"{victim.name} did not come back")
    back = time.monotonic()
    time.sleep(2 * (back - death) + 2 * WINDOW_S)
    arrivals = sorted(at for client in clients for at in list(client.arrivals))
    before = rate(arrivals, death - 2 * WINDOW_S, death)
    return Death(before, rate(arrivals, death, back), back - death, back_after(arrivals, death, before))


def _wait_for_all(fleet: ProcessFleet) -> None:
    for replica in fleet.fleet_report().replicas:
        if not fleet.wait_until_ready(replica.name, READY_TIMEOUT_S):
            raise TimeoutError(f"{replica.name} is not ready")


@with_settings(RuntimeConfig, "settings")
def bench_fleet_recovery(
    settings: dict[str, Any],
    replicas: Annotated[int, typer.Option(min=2, max=64, help="Engines that work.")] = 2,
    spares: Annotated[int, typer.Option(min=0, max=8, help="Additional warm spares.")] = 0,
    clients: Annotated[int, typer.Option(min=1, max=1024, help="Programs at once.")] = 16,
    deaths: Annotated[int, typer.Option(min=1, max=100, help="Engines that are killed, one after the other.")] = 3,
    tokens: Annotated[int, typer.Option(min=8, max=100_000, help="Tokens of each generation.")] = 200,
    shape: Shape = None,
) -> None:
    """Kill engines of a fleet on this machine, and measure the time until its throughput is back, in times of an engine's start.

    Exits with code 1 if that takes more than 1.5 starts, or if a program is lost, fails or changes its text.
    """
    with one_line_errors(), config_of(settings, shape) as config, progress() as tell:
        found = measure_fleet_recovery(
            config,
            num_replicas=replicas,
            num_spares=spares,
            num_clients=clients,
            num_deaths=deaths,
            num_tokens=tokens,
            tell=tell,
        )
        show(found)


app = command(bench_fleet_recovery)

if __name__ == "__main__":
    app()
