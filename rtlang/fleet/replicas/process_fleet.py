"""A fleet of child processes of this one, whose size follows its queue."""

from __future__ import annotations

import time
from typing import Self

from rtlang.contract.config import RuntimeConfig
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.fleet.replicas.fleet_plan import FleetPlan
from rtlang.fleet.replicas.machine import process_launchers
from rtlang.fleet.replicas.roster_follower import INTERVAL_S, LocalRoster, RosterFollower
from rtlang.fleet.replicas.scaling import Scaling
from rtlang.fleet.replicas.shared_pages import with_shared_pages


class ProcessFleet(Fleet):
    """A fleet on this machine. A `Target`; a context manager.

    Args:
        config: settings of each engine.
        scaling: the bounds of its size.
        num_replicas: its size at first; the smallest allowed if it is not given.
        num_prefill: the number of replicas that only compute prompts (see `Fleet`); all exchange pages then.
    Raises:
        ConfigError: the machine has fewer GPUs than the replicas need.
    """

    def __init__(
        self,
        config: RuntimeConfig,
        scaling: Scaling,
        *,
        num_replicas: int | None = None,
        num_prefill: int = 0,
        stall_timeout_s: float = 120.0,
        seed: int = 0,
    ) -> None:
        now = time.monotonic()
        plan = FleetPlan(scaling, now, num_replicas=num_replicas, orphan_timeout_s=None)
        plan.advance(now)
        launcher_of = process_launchers(
            config, scaling.max_replicas + scaling.num_spares, lambda: (*plan.roster.used, *plan.roster.draining)
        )
        launchers = [launcher_of(name) for name in plan.roster.used]
        prefill = [launcher.name for launcher in launchers[:num_prefill]]
        settings = with_shared_pages(config) if prefill else config
        super().__init__(
            launchers,
            settings,
            stall_timeout_s=stall_timeout_s,
            seed=seed,
            prefill=prefill,
            num_spares=scaling.num_spares,
        )
        self._plan = plan
        self._follower = RosterFollower(self, LocalRoster(plan), launcher_of, interval_s=INTERVAL_S)

    def start(self) -> Self:
        """See `Fleet.start`."""
        super().start()
        self._follower.start()
        return self

    def replace(
        self,
        config: RuntimeConfig | None = None,
        *,
        starts_first: bool = True,
        ready_timeout_s: float = 600.0,
        drain_timeout_s: float = 0.0,
    ) -> None:
        """See `Fleet.replace`. The size does not follow the queue meanwhile."""
        with self._follower.paused():
            try:
                super().replace(
                    config,
                    starts_first=starts_first,
                    ready_timeout_s=ready_timeout_s,
                    drain_timeout_s=drain_timeout_s,
                )
            finally:
                with self._lock:
                    self._plan.adopt(self._pool.staying())

    def close(self) -> None:
        """See `Fleet.close`."""
        self._follower.close()
        super().close()
