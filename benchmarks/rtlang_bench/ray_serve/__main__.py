"""Compares rtlang's router of whole programs on Ray Serve with Ray Serve's own routers, which get the calls of programs one by one.

python -m rtlang_bench.ray_serve [--rounds 4] [--programs 64] [--seed 0] [--quick]

Each rule has a deployment of its own on a Ray that is started for it: two replicas, each an engine with one thread. The rules take turns
with the same programs and arrivals, and caches are empty at the start of a turn. A client of Ray Serve's routers sends each call as soon
as its context is known, with all text before it, as to a stateless server; rtlang's router gets a program as one request. The rules are
Ray Serve's default, the power of two choices, and its prefix affinity, with Ray's own settings.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

from rtlang.bench.checkpoint import SHAPES, write_random
from rtlang.bench.machine import this_machine
from rtlang.bench.measure import Measurement, percentile, run_on_target
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.model.loader import model_directory
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_bench.fleet.fleet_figures import ARRIVAL_SHARE, WORKLOADS, random_arrivals
from rtlang_bench.fleet.fleet_programs import QUICK, ProgramSizes, trees
from rtlang_bench.fleet.single_calls import run_call_by_call
from rtlang_bench.fleet_soak import keep_on_loopback

PROGRAMS, POWER_OF_TWO, PREFIX_AFFINITY = "whole programs", "power of two", "prefix affinity"
_AFFINITY_CLASS = "ray.llm._internal.serve.routing_policies.prefix_aware.prefix_aware_router.PrefixCacheAffinityRouter"
# That of the public module, ray.serve.llm.request_router, which imports pyarrow and more.
ROUTERS: dict[str, dict[str, Any]] = {
    PROGRAMS: {},
    POWER_OF_TWO: {"request_router_config": {}},
    PREFIX_AFFINITY: {"request_router_config": {"request_router_class": _AFFINITY_CLASS}},
}
"""Options of the deployment of each rule; without any it has the router of whole programs."""

NUM_REPLICAS = 2
NUM_PAGES = 6144
"""Pages of each engine: more than the programs of a turn need, so that nothing is evicted."""
WARM_UP = ProgramSizes(8, 8, 64, 8, 4, 1, 2, 2)
Tell = Callable[[str], None]


@dataclass(slots=True)
class Turns:
    """All turns of one rule on one workload.

    Attributes:
        client_cpu_s: processor time of the client and of the router, which is in its process.
    """

    runs: list[Measurement] = field(default_factory=list)
    client_cpu_s: float = 0.0

    @property
    def hit_rate(self) -> float:
        """Prompt tokens that were in a cache, over all."""
        return sum(run.cached_tokens for run in self.runs) / sum(run.prompt_tokens for run in self.runs)

    @property
    def latencies_s(self) -> list[float]:
        """Of the programs of all turns."""
        return [latency for run in self.runs for latency in run.latencies_s]

    def mean_ratios(self, other: Turns) -> list[float]:
        """The mean latency over that of another rule, turn by turn."""
        pairs = zip(self.runs, other.runs, strict=True)
        return [fmean(run.latencies_s) / fmean(beside.latencies_s) for run, beside in pairs]


def compare_routers(
    config: RuntimeConfig, sizes: ProgramSizes, *, rounds: int, seed: int, tell: Tell
) -> Iterator[tuple[str, dict[str, Turns]]]:
    """The turns of every rule, for one workload after the other. This process is connected to Ray, which has six processors to give.

    Args:
        config: of each engine; its model is a directory.
        rounds: turns of each rule on each workload.
    Returns:
        What the programs of a workload are, and its turns by rule.
    """
    encoder = Tokenizer.from_pretrained(config.model)
    with ExitStack() as stack:
        targets = stack.enter_context(_deployed(config, seed, tell))
        warm_up = trees(encoder, WARM_UP, 10**6)
        for target in targets.values():
            target.warm_up(warm_up.graphs)
        for name, make in WORKLOADS.items():
            workload = make(encoder, sizes, seed)
            capacity = len(workload.graphs) / run_on_target(targets[PROGRAMS], workload.graphs).total_s
            turns = {rule: Turns() for rule in ROUTERS}
            for turn in range(rounds):
                workload = make(encoder, sizes, seed + 1 + turn)
                arrivals_s = random_arrivals(len(workload.graphs), ARRIVAL_SHARE * capacity, seed + turn)
                for rule in _rotated(list(ROUTERS), seed + turn):
                    tell(f"{name}, {rule}, turn {turn + 1} of {rounds}")
                    target = targets[rule]
                    target.warm_up(warm_up.graphs[:1])
                    cpu_s = process_time()
                    run = run_on_target if rule == PROGRAMS else run_call_by_call
                    turns[rule].runs.append(run(target, workload.graphs, arrivals_s=arrivals_s))
                    turns[rule].client_cpu_s += process_time() - cpu_s
            yield f"{workload.summary}, {ARRIVAL_SHARE * capacity:.2f} programs/s", turns


@contextmanager
def _deployed(config: RuntimeConfig, seed: int, tell: Tell) -> Iterator[dict[str, Any]]:
    """A target for each rule, whose replicas are all ready."""
    from rtlang.fleet.ray.serve_router import program_deployment as deployment
    from rtlang_bench.ray_serve import replicas

    serve, router_config = import_module("ray.serve"), import_module("ray.serve.config").RequestRouterConfig
    serve.start(proxy_location="Disabled")
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with ExitStack() as stack:
        stack.callback(serve.shutdown)
        targets = {}
        for rule, options in ROUTERS.items():
            tell(f"starting the deployment of {rule}")
            made = {name: router_config(**value) for name, value in options.items()}
            app = deployment(config, num_replicas=NUM_REPLICAS, seed=seed, engine=replicas.MeasuredEngine, **made)
            handle = serve.run(app, name=rule.replace(" ", "-"), route_prefix=None)
            targets[rule] = stack.enter_context(replicas.ServeTarget(handle))
        yield targets


def _rotated(names: Sequence[str], turn: int) -> list[str]:
    start = turn % len(names)
    return [*names[start:], *names[:start]]


def table(turns: Mapping[str, Turns]) -> list[str]:
    """The rules of one workload as lines; ratios are over whole programs, in brackets those of the turns."""
    ours = turns[PROGRAMS]
    lines = [
        f"{'rule':<16} {'mean':>7} {'p99':>7} {'hit rate':>9} {'client CPU':>11}   mean over whole programs   p99 over whole programs"
    ]
    for rule, side in turns.items():
        mean, p99 = fmean(side.latencies_s), percentile(side.latencies_s, 0.99)
        ratios = side.mean_ratios(ours)
        lines.append(
            f"{rule:<16} {mean:6.2f}s {p99:6.2f}s {side.hit_rate:9.3f} {side.client_cpu_s:10.1f}s   "
            f"{mean / fmean(ours.latencies_s):.2f} ({min(ratios):.2f} to {max(ratios):.2f})        "
            f"{p99 / percentile(ours.latencies_s, 0.99):.2f}"
        )
    return lines


def main() -> None:
    """Start Ray, and print the latencies of programs under each rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="turns of each rule on each workload")
    parser.add_argument("--programs", type=int, default=ProgramSizes().num_programs, help="programs of each turn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one turn of few small programs, to see whether it runs")
    options = parser.parse_args()
    sizes = QUICK if options.quick else ProgramSizes(options.programs)
    keep_on_loopback()
    from rtlang.fleet.ray import cluster
    from rtlang.fleet.ray.head import LOCAL

    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch, ExitStack() as stack:
        model_type, shape = next(iter(SHAPES.values()))
        directory = write_random(Path(scratch) / "model", model_directory(EMBEDDED_MODEL), model_type, shape)
        config = RuntimeConfig(model=str(directory), num_threads=1, num_pages=NUM_PAGES)
        stack.callback(cluster.leave_ray)
        cluster.join_ray(LOCAL, num_cpus=NUM_REPLICAS * len(ROUTERS))
        rounds = 1 if options.quick else options.rounds
        print(this_machine(), flush=True)
        found = compare_routers(
            config, sizes, rounds=rounds, seed=options.seed, tell=lambda line: print(line, file=sys.stderr)
        )
        for summary, turns in found:
            print(f"\n{summary}; {rounds} turns", *table(turns), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
