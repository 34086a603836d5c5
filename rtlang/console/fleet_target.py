"""The target of `rtlang serve` when several engines stand behind the frontend: child processes, or actors of Ray."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from rtlang.console.fleet import ray_module
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.fleet_report import DEFAULT_FLEET
from rtlang.contract.logs import LogFormat, writes_json


@dataclass(frozen=True, slots=True)
class FleetChoice:
    """What the command line says about a fleet.

    Args:
        replicas: a fixed size, or the size at first if bounds are given as well.
        min_replicas, max_replicas: bounds between which the fleet follows its queue.
        ray: the address of a Ray cluster, or "local"; None for child processes.
        name: of the fleet in its cluster.
        prefill_replicas: how many of the child processes only compute prompts.
    """

    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    ray: str | None = None
    name: str = DEFAULT_FLEET
    prefill_replicas: int = 0

    @property
    def is_fleet(self) -> bool:
        """Whether anything was said: else one engine does."""
        return bool(self.prefill_replicas) or any(
            each is not None for each in (self.replicas, self.min_replicas, self.max_replicas, self.ray)
        )

    @property
    def runs_processes(self) -> bool:
        """Whether its engines are child processes."""
        return self.is_fleet and self.ray is None

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest size.

        Raises:
            CommandError: the size at first is outside of them.
        """
        first = self.replicas or 1
        low = self.min_replicas if self.min_replicas is not None else min(first, self.max_replicas or first)
        high = self.max_replicas if self.max_replicas is not None else max(first, low)
        if self.replicas is not None and not low <= self.replicas <= high:
            raise CommandError(
                f"--replicas {self.replicas}: expected {low} (--min-replicas) to {high} (--max-replicas)"
            )
        if self.prefill_replicas and (self.ray is not None or self.prefill_replicas >= low):
            raise CommandError(
                f"--prefill-replicas {self.prefill_replicas}: expected fewer than all replicas ({low}), and no --ray"
            )
        return low, high


def fleet_target(settings: RuntimeConfig, choice: FleetChoice, *, stall_timeout_s: float) -> Any:
    """A fleet that has not been started.

    Raises:
        CommandError: Ray is needed and not installed, or the sizes contradict each other.
        ConfigError, ConnectionLostError: see `RayFleet`.
    """
    scaling = import_module("rtlang.cluster.scaling").Scaling(*choice.bounds)
    if choice.ray is None:
        process_fleet = import_module("rtlang.cluster.process_fleet").ProcessFleet
        return process_fleet(
            settings,
            scaling,
            num_replicas=choice.replicas,
            num_prefill=choice.prefill_replicas,
            stall_timeout_s=stall_timeout_s,
        )
    frontend, directory = ray_module("frontend"), ray_module("directory")
    given = {each.name: getattr(settings, each.name) for each in fields(settings)}
    options = directory.FleetOptions(
        {name: value for name, value in given.items() if value != getattr(RuntimeConfig(), name)},
        scaling,
        choice.replicas,
        log_level=logging.getLevelName(logging.getLogger().getEffectiveLevel()),
        log_form=(LogFormat.JSON if writes_json() else LogFormat.TEXT).value,
    )
    return frontend.RayFleet(choice.ray, choice.name, options, stall_timeout_s=stall_timeout_s)
