"""A target over several engines: whole programs go to the engine with the least work for them, and on elsewhere when it ends.

    launchers = [ProcessLauncher(f"replica-{index}") for index in range(2)]
    with Fleet(launchers, RuntimeConfig(model=...)) as fleet:
        ...

Every engine is a replica: it serves the same model with a cache of its own. `rtlang.cluster.router` chooses the replica of a program when
it is submitted; all its generations stay there. A program moves, behind the output that it has given, when its replica ends or is removed,
or when it is told to. Replicas come and go while programs run.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rtlang.cluster.fleet_cache import FleetCacheService
from rtlang.cluster.prefill_rule import PrefillRule
from rtlang.cluster.program_prefix import WorkEstimator
from rtlang.cluster.router import ProgramWork, Router
from rtlang.contract.cache_service import CacheService
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError, ParameterError
from rtlang.contract.events import Event, NodeFinished, TextDelta
from rtlang.contract.fleet_report import FleetReport, ReplicaReport
from rtlang.contract.graph import Generate, RequestGraph, Select
from rtlang.contract.node_work import NodeWork
from rtlang.supervise.cache_calls import RemoteCacheService
from rtlang.supervise.engine_link import EngineLink
from rtlang.supervise.engine_run import EngineRun
from rtlang.supervise.engine_target import EngineTarget, PlacedEngine
from rtlang.supervise.frames import Message
from rtlang.supervise.launcher import Launcher

_NO_LOAD: Message = dict.fromkeys(
    ("prompt", "output", "prompt_ahead", "output_ahead", "running", "pages", "free", "asked", "hit"), 0
)


@dataclass(slots=True)
class _Load:
    """The last report of a replica, and when it came."""

    message: Message
    taken_s: float


@dataclass(slots=True)
class _Sent:
    """The programs that were opened on an engine and that no report of it has counted yet, and how many were counted."""

    graph_ids: deque[int] = field(default_factory=deque)
    num_counted: int = 0


class Fleet(EngineTarget):
    """Runs programs on several engines. Thread-safe; a context manager.

    Args:
        launchers: start the engines, one replica each; their names differ.
        prefill: names of those that only compute prompts (see prefill_rule.py): a program that is opened there moves to another replica
            after its first token, which fetches the pages of the prompt if the settings have `cache_listen`.
        config: settings of the runtime of each engine.
        stall_timeout_s: seconds without an answer of an engine's thread after which its engine is replaced.
        seed: determines the random choices of the router.
        router: chooses replicas, and belongs to the fleet from now on; None for a `Router`.
    """

    _labels_engines = True

    def __init__(
        self,
        launchers: Iterable[Launcher],
        config: RuntimeConfig | None = None,
        *,
        stall_timeout_s: float = 120.0,
        seed: int = 0,
        prefill: Collection[str] = (),
        router: Router | None = None,
    ) -> None:
        given = list(launchers)
        names = [launcher.name for launcher in given]
        if not names or len(set(names)) < len(names):
            raise ParameterError("launchers", names, "expected at least one, and different names")
        super().__init__(given, config, stall_timeout_s=stall_timeout_s)
        self.cache_service: CacheService = FleetCacheService(self._cache_services)
        if unknown := set(prefill) - set(names):
            raise ParameterError("prefill", sorted(unknown), f"expected some of {', '.join(names)}")
        if len(set(prefill)) == len(names):
            raise ParameterError("prefill", sorted(prefill), "expected a replica that is not among them")
        self._prefill = frozenset(prefill)  # replicas that follow one have the same role
        self._rule = PrefillRule()
        self._router = Router(seed=seed) if router is None else router
        self._works: dict[int, ProgramWork] = {}  # by graph id
        self._estimator = WorkEstimator()
        # By graph id, the inputs of programs of which no generation has ended.
        self._unlearned: dict[int, Mapping[str, str]] = {}
        self._loads: dict[str, _Load] = {}
        self._sent: defaultdict[str, _Sent] = defaultdict(_Sent)  # by replica
        self._changed = threading.Condition(self._lock)  # an engine became ready, or gave up its last graph
        self._updating = threading.Lock()  # one rolling update at a time

    # -- replicas

    def add(self, launcher: Launcher, *, config: RuntimeConfig | None = None, name: str | None = None) -> str:
        """Add a replica, which takes programs once it is ready. Returns its name at once.

        Args:
            config: settings of its runtime; None for those of the fleet.
            name: None for the name of the launcher.
        Raises:
            ParameterError: there is a replica of this name.
            EngineDeadError: the fleet was closed.
        """
        with self._lock:
            if not self.is_alive:
                raise EngineDeadError("the fleet was closed")
            engine = PlacedEngine(EngineLink(launcher, config or self.config, self, name=name))
            if engine.name in self._engines:
                raise ParameterError("name", engine.name, "expected a name that no replica has")
            self._engines[engine.name] = engine
            engine.link.start()
        return engine.name

    def remove(self, name: str, *, drain: bool = True, timeout_s: float = 0.0) -> None:
        """Remove a replica. Blocks until its engine has ended.

        Args:
            drain: whether its programs may end there for `timeout_s` before they move; False moves them at once.
            timeout_s: seconds that its programs may take to end there.
        Raises:
            ParameterError: there is no replica of this name, or it is the only one.
        """
        with self._lock:
            engine = self._engine(name)
            if sum(not each.is_leaving for each in self._engines.values()) - (not engine.is_leaving) < 1:
                raise ParameterError("name", name, "expected a replica that is not the only one")
            engine.is_leaving, engine.is_open = True, False
        if drain and timeout_s:
            with self._lock:
                self._changed.wait_for(lambda: not engine.runs or self._is_closing.is_set(), timeout_s)
        for run in list(engine.runs.values()):
            self._move(run, engine, None)
        engine.link.close()
        engine.link.join()
        with self._lock:
            self._engines.pop(name, None)
            self._loads.pop(name, None)
            self._forget_sent(name)
            self.metrics.forget(name)
        self._update_state()
        self._name_peers()

    def move(self, graph_id: int, to: str) -> None:
        """Move a program to another replica: it goes on there behind the output that it has given. Does nothing if it has ended, or is
        opened alone because its engines have crashed.

        Raises:
            ParameterError: the replica does not exist, or takes no programs now.
        """
        with self._lock:
            target, run = self._engine(to), self._runs.get(graph_id)
            if not target.is_open:
                raise ParameterError("to", to, "expected a replica that takes programs")
            if run is not None and run.engine is not None and run.engine is not target:
                self._move(run, run.engine, target)

    def replace(
        self,
        config: RuntimeConfig | None = None,
        *,
        starts_first: bool = True,
        ready_timeout_s: float = 600.0,
        drain_timeout_s: float = 0.0,
    ) -> None:
        """Replace every replica that stays by a new engine, one after the other. Blocks until all are replaced; programs go on without a
        failure.

        Args:
            config: settings of the new runtimes, which later replicas get as well; None for those of now.
            starts_first: whether a new engine is ready before the old one gives up its programs, which needs room for one more engine. If
                False, the old one ends first: its programs go on at the other replicas, of which there must be one.
            ready_timeout_s: seconds that a new engine may take until it is ready.
            drain_timeout_s: see `remove`.
        Raises:
            EngineDeadError: a new engine did not become ready; it is removed, and the remaining replicas go on. Also if the fleet was
                closed meanwhile.
        """
        with self._updating:
            settings = config or self.config
            for old in list(self._engines.values()):
                if old.is_leaving:
                    continue
                if not starts_first:
                    self.remove(old.name, timeout_s=drain_timeout_s)
                name = self.add(old.link.launcher, config=settings, name=_next_name(old.name, self._engines))
                if not self.wait_until_ready(name, ready_timeout_s):
                    if self._is_closing.is_set():
                        raise EngineDeadError(f"the fleet was closed before {name} was ready")
                    error = self._engine(name).link.error
                    self.remove(name)
                    raise error or EngineDeadError(f"{name} was not ready within {ready_timeout_s:g} s")
                if starts_first:
                    self.remove(old.name, timeout_s=drain_timeout_s)
            self.config = settings

    def wait_until_ready(self, name: str, timeout_s: float) -> bool:
        """Wait until a replica is ready; returns False after the timeout, or if it failed to start.

        Raises:
            ParameterError: there is no replica of this name.
        """
        with self._lock:
            link = self._engine(name).link
            self._changed.wait_for(lambda: link.is_ready or link.num_failed or not self.is_alive, timeout_s)
            return link.is_ready

    def fleet_report(self) -> FleetReport:
        """See `ReportsFleet`."""
        now = time.monotonic()
        with self._lock:
            replicas = tuple(self._report(engine, now) for engine in self._engines.values())
            num_placed = sum(each.num_programs for each in replicas)
            return FleetReport(self.config.model, len(self._runs), len(self._runs) - num_placed, replicas)

    # -- see EngineTarget

    def on_ready(self, link: EngineLink) -> None:
        """See `LinkOwner.on_ready`."""
        with self._lock:
            self._forget_sent(link.name)  # its cache is empty
            self._router.add(link.name, link.ready.get("cache_tokens"))
        super().on_ready(link)
        with self._lock:
            self._changed.notify_all()
        self._name_peers()

    def on_death(self, link: EngineLink, *, was_ready: bool, has_crashed: bool) -> None:
        """See `LinkOwner.on_death`."""
        with self._lock:
            if link.name in self._engines:
                self._engines[link.name].is_open = False
            self._forget_sent(link.name)
            self._loads.pop(link.name, None)
            self._rule.forget(link.name)
        super().on_death(link, was_ready=was_ready, has_crashed=has_crashed)
        with self._lock:
            self._changed.notify_all()

    def _prepare(self, run: EngineRun, graph: RequestGraph, inputs: Mapping[str, str]) -> None:
        principal = run.share.principal
        self._works[run.graph_id] = self._estimator.estimate(graph, inputs, principal.namespace)
        self._unlearned[run.graph_id] = inputs

    def _choose(self, run: EngineRun, engines: Mapping[str, PlacedEngine]) -> PlacedEngine:
        if run.graph_id not in self._works:  # rejected
            return next(iter(engines.values()))
        work = self._works[run.graph_id]
        return engines[self._router.choose(work, self._names_for(run, work, engines))]

    def _names_for(self, run: EngineRun, work: ProgramWork, engines: Mapping[str, PlacedEngine]) -> Collection[str]:
        """The replicas for a program: those that compute prompts only if it begins, and if that pays."""
        staying = [name for name in engines if not self._computes_prompts(name)]
        if not staying or len(staying) == len(engines):
            return engines
        if not run.ledger.is_empty:
            return staying
        num_held = max(self._router.num_held_tokens(name, work) for name in staying)
        return engines.keys() - staying if self._rule.is_worthwhile(work, num_held) else staying

    def _computes_prompts(self, name: str) -> bool:
        return place_of(name) in self._prefill

    def _note_output(self, run: EngineRun, event: Event) -> None:
        """Learn from the first generation; a program that was opened for its prompt goes on elsewhere, if there is a place."""
        if isinstance(event, NodeFinished) and event.usage.prompt_tokens and run.graph_id in self._unlearned:
            inputs = self._unlearned.pop(run.graph_id)
            self._estimator.learn(run.nodes, event.node_id, inputs, event.usage.prompt_tokens)
        engine = run.engine
        if engine is None or not self._computes_prompts(engine.name):
            return
        node = run.nodes.get(event.node_id) if isinstance(event, TextDelta | NodeFinished) else None
        if isinstance(node, Generate | Select) and any(
            each.is_open and not self._computes_prompts(name) for name, each in self._engines.items()
        ):
            self._move(run, engine, None)

    def _note_left(self, run: EngineRun, engine: PlacedEngine) -> None:
        work = self._works.get(run.graph_id)
        if work is not None:
            self._router.ended(engine.name, work)
        if not engine.runs:
            self._changed.notify_all()

    def _forget(self, run: EngineRun) -> None:
        super()._forget(run)
        self._works.pop(run.graph_id, None)
        self._unlearned.pop(run.graph_id, None)

    def _note_load(self, engine: PlacedEngine, message: Message) -> None:
        self._loads[engine.name] = _Load(message, time.monotonic())
        if engine.name in self._router.names:
            self._estimator.output_weight = message["output_weight"] / 100 or self._estimator.output_weight
            sent = self._sent[engine.name]
            while sent.graph_ids and sent.num_counted < message["opened"]:
                sent.graph_ids.popleft()
                sent.num_counted += 1
            works = [self._works[graph_id] for graph_id in sent.graph_ids if graph_id in self._works]
            self._router.report(engine.name, self._waiting(message), works)
        self._rule.report(engine.name, {name: message.get(name) or None for name in ("prefill_ns", "fetch_ns")})

    def _name_peers(self) -> None:
        """Tell every engine where the others serve their pages."""
        with self._lock:
            ready = [engine.link for engine in self._engines.values() if engine.link.is_ready]
        addresses = [link.ready["pages_at"] for link in ready if link.ready.get("pages_at")]
        if addresses:
            for link in ready:
                link.put({"t": "peers", "addresses": addresses})

    def _cache_services(self) -> dict[str, CacheService]:
        ready = [engine.link for engine in list(self._engines.values()) if engine.link.is_ready]
        return {link.name: RemoteCacheService(link.ask) for link in ready}

    # -- under the lock

    def _engine(self, name: str) -> PlacedEngine:
        try:
            return self._engines[name]
        except KeyError:
            raise ParameterError("name", name, f"expected one of {', '.join(self._engines)}") from None

    def _role(self, name: str) -> str:
        if not self._prefill:
            return "any"
        return "prefill" if self._computes_prompts(name) else "decode"

    def _move(self, run: EngineRun, engine: PlacedEngine, target: PlacedEngine | None) -> None:
        """Take a program off a replica and open it at another one, or at the one that the router chooses."""
        with self._lock:
            if run.engine is not engine or run.cancelled_at is not None:
                return
            is_probed = run is self._probing.run and not run.is_proven
            if is_probed and target is not None:
                return
            self._put(run, {"t": "cancel"})
            engine.num_moved += 1
            self.metrics.moved_programs.inc()
            if is_probed:
                self._probe_again(run)
                return
            self._take_off(run)
            if target is None:
                self._place(run)
            else:
                self._open(run, target)

    def _waiting(self, load: Message) -> float:
        """Tokens that wait to be computed, those of nodes that have not begun included, as the router counts them."""
        work = NodeWork(load["prompt"] + load["prompt_ahead"], load["output"] + load["output_ahead"])
        return work.weighted(self._estimator.output_weight)

    def _open(self, run: EngineRun, engine: PlacedEngine) -> None:
        super()._open(run, engine)
        self._sent[engine.name].graph_ids.append(run.graph_id)

    def _forget_sent(self, name: str) -> None:
        self._sent.pop(name, None)
        if name in self._router.names:
            self._router.remove(name)

    def _report(self, engine: PlacedEngine, now: float) -> ReplicaReport:
        found, link = self._loads.get(engine.name), engine.link
        load = found.message if found else _NO_LOAD
        return ReplicaReport(
            name=engine.name,
            state=engine.state,
            role=self._role(engine.name),
            num_programs=len(engine.runs),
            num_waiting_tokens=round(self._waiting(load)),
            num_running=load["running"],
            num_free_pages=load["free"],
            num_pages=load["pages"],
            num_queried_tokens=load["asked"],
            num_hit_tokens=load["hit"],
            num_deaths=link.num_restarts,
            num_moved=engine.num_moved,
            report_age_s=None if found is None else now - found.taken_s,
        )


def place_of(name: str) -> str:
    """The name of the first engine of a replica, whose role and GPUs those that follow it have: "a" for "a~2"."""
    return name.partition("~")[0]


def _next_name(name: str, taken: Iterable[str]) -> str:
    """The name of the engine that follows another one: "a", "a~2", "a~3"."""
    base, _, number = name.partition("~")
    for following in itertools.count(int(number or 1) + 1):
        found = f"{base}~{following}"
        if found not in taken:
            return found
    raise AssertionError
