"""Measures a fleet on this machine: two engines against one, and whole-program routing against rules for single requests.

Each engine is a process with one thread. Throughput is that of a fleet of one engine and of a fleet of two, in turns on the same programs.
The rules share one fleet of two engines, in turns on the same programs and arrivals, with empty caches.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean

from rtlang.bench.checkpoint import SHAPES, write_random
from rtlang.bench.measure import Measurement, percentile, run_on_target
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.contract.service.target import Target
from rtlang.fleet.engines.launcher import ProcessLauncher
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.fleet.routing.router import Router
from rtlang.model.loader import model_directory
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_bench.figure import Figure
from rtlang_bench.fleet.fleet_programs import ProgramSizes, chats, trees
from rtlang_bench.fleet.request_rules import Exchangeable, PowerOfTwo, PrefixAffinity
from rtlang_bench.fleet.single_calls import run_call_by_call

LEAST_RATIO, MOST_HIT_DIFFERENCE = 1.7, 0.02
ARRIVAL_SHARE = 0.7
"""Rate of arrivals for the rules, as a share of the programs that whole-program routing runs when all arrive at once."""

WORKLOADS = {"tree": trees, "chat": chats}
READY_TIMEOUT_S = 300.0
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one side, summed.

    Attributes:
        busiest_cpu_s, cpu_s: processor time of the busiest engine, and of all.
        latencies_s: of all programs.
    """

    total_s: float
    num_programs: int
    hit_rate: float
    cpu_s: float
    busiest_cpu_s: float
    latencies_s: tuple[float, ...]


def measure_throughput(
    config: RuntimeConfig, sizes: ProgramSizes, *, rounds: int, seed: int, tell: Tell
) -> Iterator[Figure]:
    """Two engines against one on every workload."""
    encoder = Tokenizer.from_pretrained(config.model)
    with ExitStack() as stack:
        targets: dict[int, Fleet] = {}
        engines: dict[int, list[int]] = {}
        for number in (1, 2):
            tell(f"starting a fleet of {number}")
            before = set(child_processes())
            targets[number] = stack.enter_context(_started_fleet(config, number))
            engines[number] = sorted(set(child_processes()) - before)
            _warm_up(targets[number], encoder, number)
        for name, make in WORKLOADS.items():
            runs: dict[int, list[Side]] = {1: [], 2: []}
            for turn in range(rounds):
                workload = make(encoder, sizes, seed + turn)
                for number in (1, 2) if turn % 2 == 0 else (2, 1):
                    tell(f"{name}, {number} engines, turn {turn + 1} of {rounds}")
                    start = [cpu_seconds(each) for each in engines[number]]
                    measured = run_on_target(targets[number], workload.graphs)
                    end = [cpu_seconds(each) for each in engines[number]]
                    runs[number].append(_side(measured, [after - at for at, after in zip(start, end, strict=True)]))
            one, two = (_sum(runs[number]) for number in (1, 2))
            note = f"{workload.summary}, {rounds} turns"
            yield Figure(f"{name}_throughput_ratio", one.total_s / two.total_s, ">=", LEAST_RATIO, "x", note)
            yield Figure(
                f"{name}_processor_ratio",
                one.busiest_cpu_s / two.busiest_cpu_s if two.busiest_cpu_s else math.nan,
                ">=",
                LEAST_RATIO,
                "x",
                f"processor time of the one engine over that of the busier of two: the ratio if every engine had a core to itself; all "
                f"engines: {one.cpu_s:.1f} s and {two.cpu_s:.1f} s",
            )
            yield Figure(
                f"{name}_hit_rate_difference",
                abs(one.hit_rate - two.hit_rate),
                "<=",
                MOST_HIT_DIFFERENCE,
                "",
                f"{one.hit_rate:.3f} with one engine, {two.hit_rate:.3f} with two",
            )


def measure_rules(
    config: RuntimeConfig, sizes: ProgramSizes, *, rounds: int, seed: int, tell: Tell
) -> Iterator[Figure]:
    """Latencies of programs under whole-program routing and under rules for single requests, on one fleet of two engines."""
    encoder = Tokenizer.from_pretrained(config.model)
    rules: dict[str, Callable[[int], Router]] = {
        "programs": lambda number: Router(seed=number),
        "power_of_two": PowerOfTwo,
        "prefix_affinity": PrefixAffinity,
    }
    router = Exchangeable(Router())
    tell("starting a fleet of two engines")
    with _started_fleet(config, 2, router) as fleet:
        _warm_up(fleet, encoder, 2)
        for workload_name, make in WORKLOADS.items():
            workload = make(encoder, sizes, seed)
            capacity = len(workload.graphs) / run_on_target(fleet, workload.graphs).total_s
            runs: dict[str, list[Side]] = {name: [] for name in rules}
            for turn in range(rounds):
                workload = make(encoder, sizes, seed + 1 + turn)
                arrivals_s = random_arrivals(len(workload.graphs), ARRIVAL_SHARE * capacity, seed + turn)
                for name in list(rules)[turn % len(rules) :] + list(rules)[: turn % len(rules)]:
                    tell(f"{workload_name}, {name}, turn {turn + 1} of {rounds}")
                    fleet.clear_cache()
                    router.exchange(rules[name](seed + turn))
                    run = run_on_target if name == "programs" else run_call_by_call
                    runs[name].append(_side(run(fleet, workload.graphs, arrivals_s=arrivals_s), [0.0]))
            ours = _sum(runs.pop("programs"))
            yield _latency(f"{workload_name}_programs", ours, ours, workload.summary)
            for name, found in runs.items():
                side = _sum(found)
                yield _latency(f"{workload_name}_{name}", side, ours, "")
                ratio = fmean(side.latencies_s) / fmean(ours.latencies_s)
                yield Figure(f"{workload_name}_{name}_mean_over_programs", ratio, ">=", 1.0, "x")
                ratio = percentile(side.latencies_s, 0.99) / percentile(ours.latencies_s, 0.99)
                yield Figure(f"{workload_name}_{name}_p99_over_programs", ratio, ">=", 1.0, "x")


def measure_fleet(
    config: RuntimeConfig, sizes: ProgramSizes, *, rounds: int, seed: int, tell: Tell
) -> Iterator[Figure]:
    """All figures. The embedded model is replaced by the random Llama of 36 million parameters: its own steps take no time."""
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        directory = model_directory(config.model)
        if config.model == EMBEDDED_MODEL:
            tell("writing the random benchmark model")
            model_type, shape = next(iter(SHAPES.values()))
            directory = write_random(Path(scratch) / "model", directory, model_type, shape)
        config = replace(config, model=str(directory))
        yield from measure_throughput(config, sizes, rounds=rounds, seed=seed, tell=tell)
        yield from measure_rules(config, sizes, rounds=rounds, seed=seed, tell=tell)


@contextmanager
def _started_fleet(config: RuntimeConfig, num_engines: int, router: Router | None = None) -> Iterator[Fleet]:
    """A fleet whose engines are all ready, with one thread each.

    Raises:
        EngineDeadError: an engine did not become ready.
    """
    launchers = [ProcessLauncher(f"replica-{number}") for number in range(1, num_engines + 1)]
    with Fleet(launchers, replace(config, num_threads=1), router=router) as fleet:
        for launcher in launchers:
            if not fleet.wait_until_ready(launcher.name, READY_TIMEOUT_S):
                raise EngineDeadError(f"{launcher.name} was not ready within {READY_TIMEOUT_S:g} s")
        yield fleet


def child_processes() -> list[int]:
    """The processes that this one has started (Linux)."""
    paths = Path("/proc/self/task").glob("*/children")
    return [int(child) for path in paths for child in path.read_text().split()]


def cpu_seconds(process_id: int) -> float:
    """Processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _warm_up(target: Target, encoder: Tokenizer, num_replicas: int) -> None:
    """Compile what the first steps need, in every engine."""
    sizes = ProgramSizes(8 * num_replicas, 8 * num_replicas, 64, 8, 4, 1, 2, 2)
    run_on_target(target, trees(encoder, sizes, 10**6).graphs)


def random_arrivals(count: int, rate: float, seed: int) -> list[float]:
    """Times of arrivals in seconds, a Poisson process of `rate` per second."""
    random, at, found = Random(seed), 0.0, []
    for _ in range(count):
        at += random.expovariate(rate)
        found.append(at)
    return found


def _side(measured: Measurement, cpu_s: Sequence[float]) -> Side:
    return Side(
        measured.total_s,
        len(measured.latencies_s),
        measured.cached_tokens / measured.prompt_tokens,
        sum(cpu_s),
        max(cpu_s, default=0.0),
        measured.latencies_s,
    )


def _sum(sides: Sequence[Side]) -> Side:
    return Side(
        sum(each.total_s for each in sides),
        sum(each.num_programs for each in sides),
        fmean(each.hit_rate for each in sides),
        sum(each.cpu_s for each in sides),
        sum(each.busiest_cpu_s for each in sides),
        tuple(latency for each in sides for latency in each.latencies_s),
    )


def _latency(name: str, side: Side, ours: Side, note: str) -> Figure:
    """The mean latency of a rule; the bound is that of whole programs."""
    mean, p99 = fmean(side.latencies_s), percentile(side.latencies_s, 0.99)
    return Figure(
        f"{name}_mean_latency",
        mean,
        ">=",
        fmean(ours.latencies_s),
        "s",
        f"p99 {p99:.2f} s of {side.num_programs} programs, hit rate {side.hit_rate:.3f}"
        + (f"; {note}" if note else ""),
    )
