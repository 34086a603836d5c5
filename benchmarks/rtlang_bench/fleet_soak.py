"""Disturbs a fleet at random for a long time, and looks for lost, doubled or changed texts.

python -m rtlang_bench.fleet_soak --minutes 30 --nodes 4

A Ray cluster of several nodes runs on this machine. Clients run seeded programs whose texts are known from an undisturbed run; meanwhile
engines are killed, the fleet is replaced engine by engine, grows and shrinks, and nodes die and come back.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from random import Random
from typing import Annotated, Any

import typer

from rtlang.console.fleet_commands import ray_modules
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.replicas.scaling import Scaling
from rtlang_bench.command import command, progress, show
from rtlang_bench.prompt_memory import Sample, sample

logger = logging.getLogger(__name__)

NAME = "soak"
WAIT_S = 300.0
"""Seconds after which a program counts as lost."""
NUM_PROGRAMS = 24
GOAL = 1.1
"""The memory of the frontend at the end is at most so many times that after the first minute."""
FIRST_S = 60.0
PAUSE_S = 5.0, 15.0  # between two disturbances, at random
STORE_BYTES = 80 << 20


@dataclass(slots=True)
class FleetSoak:
    """The result.

    Attributes:
        programs: how many ended, by how: `done`, `lost` (no end in time), `failed`, `changed` (a text that differs from the undisturbed
            one, or a piece that came twice) and `ended twice`.
        disturbances: how many of each kind.
        first, last: memory of the frontend's process after the first minute, and at the end.
    """

    minutes: float
    programs: Counter[str] = field(default_factory=Counter)
    disturbances: Counter[str] = field(default_factory=Counter)
    num_moved: int = 0
    first: Sample | None = None
    last: Sample | None = None

    @property
    def ratio(self) -> float:
        """Resident memory at the end over that after the first minute."""
        assert self.first is not None
        assert self.last is not None
        return self.last.resident / self.first.resident

    @property
    def is_met(self) -> bool:
        """Whether every program ended once with the right text, and memory stayed flat."""
        return set(self.programs) == {"done"} and self.ratio <= GOAL

    def __str__(self) -> str:
        assert self.first is not None
        assert self.last is not None
        programs = ", ".join(f"{count} {kind}" for kind, count in sorted(self.programs.items()))
        disturbances = ", ".join(f"{count} {kind}" for kind, count in sorted(self.disturbances.items()))
        return (
            f"programs in {self.minutes:g} minutes: {programs} (goal: only done)\n"
            f"disturbances: {disturbances}\n"
            f"memory of the frontend: {self.first.resident / 2**20:.0f} MiB, then {self.last.resident / 2**20:.0f} MiB: "
            f"{self.ratio:.3f}x (goal: at most {GOAL:g}x)"
        )


def keep_on_loopback() -> None:
    """Let Ray use loopback addresses only. Ray reads this when it is imported."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def measure_fleet_soak(
    settings: dict[str, Any],
    *,
    minutes: float = 30.0,
    num_nodes: int = 4,
    num_clients: int = 16,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> FleetSoak:
    """Run the soak.

    Args:
        settings: of the engines; float32 and one thread unless they say otherwise.
        tell: gets a line about each disturbance, and the state every minute.
    Raises:
        ModuleNotFoundError: Ray is not installed.
    """
    chosen: dict[str, Any] = {"dtype": "float32", "num_threads": 1, "num_pages": 600}
    chosen |= settings
    keep_on_loopback()
    from rtlang.fleet.ray.directory import FleetOptions, end_fleet
    from rtlang.fleet.ray.frontend import RayFleet

    tell(f"starting a cluster of {num_nodes} nodes")
    with _Cluster(num_nodes, cpus_per_node=2 * chosen["num_threads"]) as cluster:
        options = FleetOptions(chosen, Scaling(2, 2))
        with RayFleet(cluster.address, NAME, options) as fleet:
            tell("running the programs undisturbed")
            expected = [_run(fleet, index) for index in range(NUM_PROGRAMS)]
            soak = FleetSoak(minutes)
            stop = threading.Event()
            clients = [_Client(fleet, expected, seed * 1000 + number, stop) for number in range(num_clients)]
            for client in clients:
                client.start()
            _disturb(soak, fleet, cluster, clients, Random(seed), tell)
            stop.set()
            for client in clients:
                client.join(WAIT_S + 10.0)
                soak.programs += client.counts
            soak.last = sample(soak.programs.total())
            soak.num_moved = sum(each.num_moved for each in fleet.fleet_report().replicas)
        end_fleet(NAME)
    return soak


def story(index: int) -> RequestGraph:
    """Program `index`: two generations, the second one of two choices."""
    params = SamplingParams(max_tokens=24, temperature=1.0, ignore_eos=True)
    both = SamplingParams(max_tokens=16, temperature=1.0, n=2)
    return RequestGraph(
        (
            Text(0, None, (f"Story {index} of a fleet:",)),
            Generate(1, 0, "x", params),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", both),
        )
    )


class _Ear:
    """What one program gave: the tokens and the text of each choice, and its ends."""

    def __init__(self) -> None:
        self.tokens: dict[tuple[int, int], list[int]] = {}
        self.text: dict[tuple[int, int], str] = {}
        self.ends: list[GraphFinished | GraphFailed] = []
        self.ended = threading.Event()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            key = event.node_id, event.choice
            self.tokens.setdefault(key, []).extend(event.token_ids)
            self.text[key] = self.text.get(key, "") + event.text
        elif isinstance(event, (GraphFinished, GraphFailed)):
            self.ends.append(event)
            self.ended.set()


def _run(fleet: Any, index: int) -> _Ear:
    """Run a program whose seed is its number.

    Raises:
        TimeoutError: it does not end.
        RtlangError: it failed.
    """
    ear = _Ear()
    fleet.submit(story(index), ear, RunOptions(seed=index))
    if not ear.ended.wait(WAIT_S):
        raise TimeoutError
    (end, *_) = ear.ends
    if isinstance(end, GraphFailed):
        raise end.error
    return ear


class _Client(threading.Thread):
    """Runs one program after the other until `stop` is set, and compares what it gives."""

    def __init__(self, fleet: Any, expected: list[_Ear], seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"soak-{seed}", daemon=True)
        self.counts: Counter[str] = Counter()
        self._fleet, self._expected, self._random, self._stop_event = fleet, expected, Random(seed), stop
        self._last: _Ear | None = None

    def run(self) -> None:
        while not self._stop_event.is_set():
            index = self._random.randrange(len(self._expected))
            try:
                ear = _run(self._fleet, index)
            except TimeoutError:
                self.counts["lost"] += 1
                continue
            except RtlangError as error:
                logger.error("program %d failed: %s", index, error)
                self.counts["failed"] += 1
                continue
            is_same = _outcome(ear) == _outcome(self._expected[index])
            self.counts["done" if is_same else "changed"] += 1
            if self._last is not None and len(self._last.ends) > 1:
                self.counts["ended twice"] += 1
            self._last = ear


def _outcome(ear: _Ear) -> tuple[Any, ...]:
    """All that must not differ: the end without its times."""
    (end, *_) = ear.ends
    assert isinstance(end, GraphFinished)
    return ear.tokens, ear.text, end.values, end.failed_node_ids


def _disturb(
    soak: FleetSoak,
    fleet: Any,
    cluster: _Cluster,
    clients: list[_Client],
    random: Random,
    tell: Callable[[str], None],
) -> None:
    """Disturb the fleet at random for the time of the soak."""
    seconds = soak.minutes * 60.0
    first_s = min(FIRST_S, seconds / 5)
    started, next_line = time.monotonic(), 0.0
    kinds = ["kill"] * 5 + ["scale"] * 2 + ["replace"] + ["node"]
    while (now := time.monotonic() - started) < seconds:
        time.sleep(min(random.uniform(*PAUSE_S), max(0.0, seconds - now)))
        now = time.monotonic() - started
        count = sum(client.counts.total() for client in clients)
        if soak.first is None and now >= first_s:
            soak.first = sample(count)
        if now >= next_line:
            next_line += 60.0
            tell(f"{now / 60:5.1f} min: {count} programs, {sample(count)}")
        if seconds - now < 3 * PAUSE_S[1]:
            continue  # the end is quiet, so that programs that wait can end
        kind = random.choice(kinds)
        with suppress(RtlangError):
            done = _do(kind, cluster, random)
            if done is not None:
                soak.disturbances[kind] += 1
                tell(f"{now / 60:5.1f} min: {done}")


def _do(kind: str, cluster: _Cluster, random: Random) -> str | None:
    """One disturbance; returns what was done, None if nothing could be."""
    from rtlang.fleet.ray import directory

    if kind == "replace":
        status = directory.fleet_status(NAME)
        if status is None or status.is_replacing:
            return None
        directory.replace_fleet(NAME)
        return "the engines are replaced one by one"
    if kind == "scale":
        size = random.randint(1, cluster.num_nodes)
        directory.scale_fleet(NAME, Scaling(size, size))
        return f"the fleet gets {size} engines"
    if kind == "node":
        cluster.replace_a_node(random)
        return "a node dies and another one comes"
    pids = cluster.engine_pids(NAME)
    if not pids:
        return None
    pid = random.choice(pids)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return f"the engine {pid} is killed"


class _Cluster:
    """A Ray cluster of several nodes on this machine."""

    def __init__(self, num_nodes: int, cpus_per_node: int) -> None:
        self.num_nodes = num_nodes
        self._ray = import_module("ray")
        self._node = {"num_cpus": cpus_per_node, "node_ip_address": "127.0.0.1", "object_store_memory": STORE_BYTES}
        head = self._node | {"include_dashboard": False}
        self._cluster = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args=head)
        self._others: list[Any] = []
        self.address: str = self._cluster.address

    def __enter__(self) -> _Cluster:
        try:
            self._others = [self._cluster.add_node(**self._node) for _ in range(self.num_nodes - 1)]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        self._cluster.shutdown()

    def replace_a_node(self, random: Random) -> None:
        """Kill a node besides the first one, with all that runs there, and add another one."""
        if self._others:
            node = self._others.pop(random.randrange(len(self._others)))
            self._cluster.remove_node(node, allow_graceful=False)
        self._others.append(self._cluster.add_node(**self._node))

    def engine_pids(self, fleet: str) -> list[int]:
        """The processes of the engines that answer at once."""
        from rtlang.fleet.ray.directory import fleet_status
        from rtlang.fleet.ray.engine_actor import NAMESPACE, actor_name

        status = fleet_status(fleet)
        pids = []
        for name in status.roster.used if status else ():
            with suppress(Exception):  # it is being started, or has gone meanwhile
                actor = self._ray.get_actor(actor_name(fleet, name), namespace=NAMESPACE)
                pids.append(self._ray.get(actor.address.remote(), timeout=1.0).pid)
        return pids


@with_settings(RuntimeConfig, "settings")
def bench_fleet_soak(
    settings: dict[str, Any],
    minutes: Annotated[float, typer.Option(min=0.1, max=10_000, help="Time of the load.")] = 30.0,
    nodes: Annotated[int, typer.Option(min=1, max=16, help="Nodes of the cluster, all on this machine.")] = 4,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Clients at once.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the load and of the disturbances.")] = 0,
) -> None:
    """Kill, replace and add engines and nodes of a Ray cluster on this machine at random, and compare the texts of seeded programs.

    Exits with code 1 if a program is lost or fails, if a text changes, or if the memory of the frontend grows by more than a tenth.
    """
    with one_line_errors():
        keep_on_loopback()
        ray_modules()  # says how to install it
        with progress() as tell:
            found = measure_fleet_soak(
                settings, minutes=minutes, num_nodes=nodes, num_clients=clients, seed=seed, tell=tell
            )
        show(found)


app = command(bench_fleet_soak)

if __name__ == "__main__":
    app()
