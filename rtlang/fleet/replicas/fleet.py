"""A target over several engines: whole programs go to the engine with the least work for them, and on elsewhere when it ends.

    launchers = [ProcessLauncher(f"replica-{index}") for index in range(2)]
    with Fleet(launchers, RuntimeConfig(model=...)) as fleet:
        ...

Every engine is a replica: it serves the same model with a cache of its own. `ProgramBalancer` chooses the replica of a program when it is
submitted; all its generations stay there. A program moves, after the output that it has given, when its replica ends or is removed,
or when it is told to. Replicas come and go while programs run.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection, Iterable

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError, ParameterError
from rtlang.contract.service.cache_service import CacheService
from rtlang.contract.service.fleet_report import FleetReport, ReplicaReport
from rtlang.fleet.engines.engine_link import EngineLink
from rtlang.fleet.engines.engine_run import EngineRun, deliver_all
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.engines.launcher import Launcher
from rtlang.fleet.messages.cache_calls import RemoteCacheService
from rtlang.fleet.replicas.fleet_cache import FleetCacheService
from rtlang.fleet.routing.program_balancer import ProgramBalancer
from rtlang.fleet.routing.router import Router


class Fleet(EngineTarget):
    """Runs programs on several engines. Thread-safe; a context manager.

    Args:
        launchers: start the engines, one replica each; their names differ.
        prefill: names of those that only compute prompts (see prefill_rule.py): a program that is opened there moves to another replica
            after its first token, which fetches the pages of the prompt if the settings have `cache_listen`.
        config: settings of the runtime of each engine.
        stall_timeout_s: seconds without an answer of an engine thread after which its engine is replaced.
        seed: determines the random choices of the router.
        router: chooses replicas, and belongs to the fleet from now on; None for a `Router`.
        num_spares: replicas that take no programs while all others are ready. When another one ends, a spare takes its place at once, and
            the engine that is started for it is the next spare. Not with `prefill`.
    """

    def __init__(
        self,
        launchers: Iterable[Launcher],
        config: RuntimeConfig | None = None,
        *,
        stall_timeout_s: float = 120.0,
        seed: int = 0,
        prefill: Collection[str] = (),
        router: Router | None = None,
        num_spares: int = 0,
    ) -> None:
        given = list(launchers)
        names = [launcher.name for launcher in given]
        if not names or len(set(names)) < len(names):
            raise ParameterError("launchers", names, "expected at least one, and different names")
        if unknown := set(prefill) - set(names):
            raise ParameterError("prefill", sorted(unknown), f"expected some of {', '.join(names)}")
        if len(set(prefill)) == len(names):
            raise ParameterError("prefill", sorted(prefill), "expected a replica that is not among them")
        if num_spares and (prefill or num_spares >= len(names)):
            raise ParameterError("num_spares", num_spares, f"expected less than {len(names)}, and 0 with prefill")
        self._programs = ProgramBalancer(Router(seed=seed) if router is None else router, prefill)
        super().__init__(
            given,
            config,
            stall_timeout_s=stall_timeout_s,
            balancer=self._programs,
            labels_engines=True,
            num_spares=num_spares,
        )
        self.cache_service: CacheService = FleetCacheService(self._cache_services)
        self._updating = threading.Lock()  # one rolling update at a time

    # -- replicas

    def add(self, launcher: Launcher, *, config: RuntimeConfig | None = None, name: str | None = None) -> str:
        """Add a replica, which takes programs once it is ready. Returns its name at once.

        Args:
            config: settings of its runtime; None for the fleet's settings.
            name: None for the name of the launcher.
        Raises:
            ParameterError: there is a replica of this name.
            EngineDeadError: the fleet was closed.
        """
        with self._lock:
            if not self.is_alive:
                raise EngineDeadError("the fleet was closed")
            link = EngineLink(launcher, config or self.config, self, name=name)
            if link.name in self._links:
                raise ParameterError("name", link.name, "expected a name that no replica has")
            self._add_link(link)
            link.start()
        return link.name

    def remove(self, name: str, *, drain: bool = True, timeout_s: float = 0.0) -> None:
        """Remove a replica. Blocks until its engine has ended.

        Args:
            drain: whether its programs may end there for `timeout_s` before they move; False moves them at once.
            timeout_s: seconds that its programs may take to end there.
        Raises:
            ParameterError: there is no replica of this name, or it is the only one.
        """
        with self._lock:
            link = self._link(name)
            if set(self._pool.staying()) <= {name}:
                raise ParameterError("name", name, "expected a replica that is not the only one")
            self._carry_out(self._pool.leave(name, time.monotonic()))
            graphs = self._pool.engines[name].graphs
            if drain and timeout_s:
                self._changed.wait_for(lambda: not graphs or self._is_closing.is_set(), timeout_s)
            if name in self._links:  # else another thread has removed it meanwhile
                self._carry_out(self._pool.evacuate(name, time.monotonic()), f"{name} gives up its programs")
        link.close()
        link.join()
        failed: list[EngineRun] = []
        with self._lock:
            if name in self._links:
                self._balancer.forget_engine(name)
                failed = self._carry_out(self._pool.remove_engine(name, time.monotonic()), f"{name} was removed")
                del self._links[name]
                self.metrics.forget(name)
        deliver_all(failed)
        self._update_state()
        self._name_peers()

    def move(self, graph_id: int, to: str) -> None:
        """Move a program to another replica: it goes on there after the output that it has given. Does nothing if it has ended, or is
        opened alone because its engines have crashed.

        Raises:
            ParameterError: the replica does not exist, or takes no programs now.
        """
        with self._lock:
            self._link(to)
            if not self._pool.is_open(to):
                raise ParameterError("to", to, "expected a replica that takes programs")
            self._carry_out(self._pool.move(graph_id, to, time.monotonic()), "others wait for its engine")

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
            config: settings of the new runtimes, which later replicas get as well; None for the present ones.
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
            with self._lock:
                replaced = [self._links[name] for name in self._pool.staying()]
            for old in replaced:
                with self._lock:
                    if old.name not in self._pool.staying():
                        continue
                if not starts_first:
                    self.remove(old.name, timeout_s=drain_timeout_s)
                name = self.add(old.launcher, config=settings, name=_next_name(old.name, self._links))
                if not self.wait_until_ready(name, ready_timeout_s):
                    if self._is_closing.is_set():
                        raise EngineDeadError(f"the fleet was closed before {name} was ready")
                    error = self._link(name).error
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
            link = self._link(name)
            self._changed.wait_for(lambda: link.is_ready or link.num_failed or not self.is_alive, timeout_s)
            return link.is_ready

    def pids(self) -> dict[str, int]:
        """The processes of the engines on this machine, by replica."""
        with self._lock:
            found = {name: link.pid for name, link in self._links.items()}
        return {name: pid for name, pid in found.items() if pid is not None}

    def fleet_report(self) -> FleetReport:
        """See `ReportsFleet`."""
        now = time.monotonic()
        with self._lock:
            replicas = tuple(self._report(name, now) for name in self._links)
            num_placed = sum(each.num_programs for each in replicas)
            return FleetReport(self.config.model_name, len(self._runs), len(self._runs) - num_placed, replicas)

    def on_ready(self, link: EngineLink) -> None:
        """See `LinkOwner.on_ready`."""
        super().on_ready(link)
        self._name_peers()

    def _name_peers(self) -> None:
        """Tell every engine where the others serve their pages."""
        with self._lock:
            ready = [link for link in self._links.values() if link.is_ready]
        addresses = [link.ready["pages_at"] for link in ready if link.ready.get("pages_at")]
        if addresses:
            for link in ready:
                link.put({"t": "peers", "addresses": addresses})

    def _cache_services(self) -> dict[str, CacheService]:
        ready = [link for link in list(self._links.values()) if link.is_ready]
        return {link.name: RemoteCacheService(link.ask) for link in ready}

    # -- under the lock

    def _link(self, name: str) -> EngineLink:
        try:
            return self._links[name]
        except KeyError:
            raise ParameterError("name", name, f"expected one of {', '.join(self._links)}") from None

    def _report(self, name: str, now: float) -> ReplicaReport:
        engine, link, load = self._pool.engines[name], self._links[name], self._programs.load(name)
        return ReplicaReport(
            name=name,
            state=self._replica_state(name),
            role=self._programs.role(name),
            num_programs=len(engine.graphs),
            num_waiting_tokens=round(self._programs.num_waiting(load)),
            num_running=load["running"],
            num_free_pages=load["free"],
            num_pages=load["pages"],
            num_queried_tokens=load["asked"],
            num_hit_tokens=load["hit"],
            num_deaths=link.num_restarts,
            num_moved=engine.num_moved,
            report_age_s=max(0.0, now - link.last_beat) if link.is_ready else None,
        )


def _next_name(name: str, taken: Iterable[str]) -> str:
    """The name of the engine that follows another one: "a", "a~2", "a~3"."""
    base, _, number = name.partition("~")
    for following in itertools.count(int(number or 1) + 1):
        found = f"{base}~{following}"
        if found not in taken:
            return found
    raise AssertionError
