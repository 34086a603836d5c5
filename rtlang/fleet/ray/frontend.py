"""Finds or makes a fleet on Ray, and uses it from this process: the target of a frontend.

    with RayFleet("127.0.0.1:6379", "default", config, options) as target:
        ...

A fleet belongs to its cluster, not to the process that made it: its actors are detached, so that they outlive a frontend that was
killed, and another one finds them by the fleet's name. A fleet on a Ray that this process started (`local`) ends with the process.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from dataclasses import asdict
from typing import Any, Self

import ray
from ray.exceptions import ActorDiedError, RayError

from rtlang.contract.config import RuntimeConfig, secret_settings
from rtlang.contract.errors import ConfigError, ConnectionLostError, EngineDeadError
from rtlang.contract.service.fleet_report import DEFAULT_FLEET
from rtlang.fleet.ray.actor_launcher import RayLauncher
from rtlang.fleet.ray.cluster import head_in_use, join_ray, leave_ray
from rtlang.fleet.ray.directory import FleetOptions, create_directory, find_directory
from rtlang.fleet.ray.engine_actor import resources_of
from rtlang.fleet.ray.head import AUTO, one_line
from rtlang.fleet.ray.head_watch import HeadWatch
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.fleet.replicas.fleet_plan import Roster
from rtlang.fleet.replicas.roster_follower import RosterFollower

logger = logging.getLogger(__name__)

HEAR_TIMEOUT_S = 10.0
START_TIMEOUT_S = 120.0
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_fleet_name(name: str) -> str:
    """The name, if it is one.

    Raises:
        ConfigError: it is not.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError("fleet", name, "expected 1 to 64 letters, digits, '_', '.' and '-'")
    return name


def fleet_address(url: str) -> tuple[str, str]:
    """The address of the cluster and the name of the fleet in `ray://[HOST:PORT/]FLEET`.

    Raises:
        ConfigError: the URL has another form.
    """
    scheme, _, rest = url.partition("://")
    address, slash, name = rest.rpartition("/")
    has_port = address.rpartition(":")[2].isdigit()
    if scheme != "ray" or not _NAME.fullmatch(name) or (slash and not has_port):
        raise ConfigError("url", url, "expected ray://FLEET or ray://HOST:PORT/FLEET")
    return address or AUTO, name


def connect_fleet(url: str) -> RayFleet:
    """A started `RayFleet` for `ray://[HOST:PORT/]FLEET`, an existing fleet.

    Raises:
        ConfigError: the URL has another form.
        ConnectionLostError: there is no such cluster, or no such fleet.
    """
    address, name = fleet_address(url)
    return RayFleet(address, name).start()


class RayFleet(Fleet):
    """A fleet whose engines are actors. A `Target`; a context manager.

    Args:
        address: see `rtlang.fleet.ray.cluster.join_ray`.
        name: of the fleet in its cluster.
        options: makes the fleet if there is none of this name; None uses an existing one only. The engines of a fleet keep the settings
            of the frontend that created it.
    Raises:
        ConfigError: the name is not one, or the fleet has another model than the options say.
        ConnectionLostError: there is no such cluster, or no such fleet.
    """

    def __init__(
        self,
        address: str = AUTO,
        name: str = DEFAULT_FLEET,
        options: FleetOptions | None = None,
        *,
        stall_timeout_s: float = 120.0,
        seed: int = 0,
    ) -> None:
        check_fleet_name(name)
        num_cpus = None if options is None else _num_local_cpus(options)
        self._owns_ray = join_ray(address, num_cpus=num_cpus)
        try:
            self._roster = _DirectoryRoster(name, options)
            found = self._roster.options
            _check_same_model(name, found, options)
            roster = self._roster.hear((), (), {})
            if roster.is_over:
                raise ConnectionLostError(f"the fleet {name!r} is being stopped; try again")
        except BaseException:
            if self._owns_ray:
                leave_ray()
            raise
        launchers = [RayLauncher(name, each) for each in roster.used]
        super().__init__(
            launchers,
            RuntimeConfig(**found.settings),
            stall_timeout_s=stall_timeout_s,
            seed=seed,
            num_spares=min(found.scaling.num_spares, len(launchers) - 1),
        )
        self._follower = RosterFollower(self, self._roster, lambda replica: RayLauncher(name, replica))
        self._head_watch = HeadWatch(head_in_use(), self._give_up)
        self._is_closed = self._has_lost_head = False

    def start(self) -> Self:
        """See `Fleet.start`."""
        self._head_watch.start()
        super().start()
        self._follower.start()
        return self

    def close(self) -> None:
        """See `Fleet.close`. The engines stay for other frontends, unless Ray was started by this process."""
        self._head_watch.close()
        self._follower.close()
        super().close()
        if self._is_closed:
            return
        self._is_closed = True
        if not self._has_lost_head:
            self._roster.leave()
        if self._owns_ray:
            self._owns_ray = False
            leave_ray()

    def _give_up(self, reason: str) -> None:
        """Ray ends this process soon: tell all programs why."""
        logger.critical("%s; the fleet %s is given up", reason, self._roster.fleet)
        self._has_lost_head = True
        self.stop(reason, is_wanted=False)


class _DirectoryRoster:
    """The roster of a fleet, as its directory tells it; see `RosterSource`."""

    def __init__(self, fleet: str, options: FleetOptions | None) -> None:
        self.fleet, self._frontend = fleet, f"{os.uname().nodename}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        found = find_directory(fleet) if options is None else create_directory(fleet, options)
        if found is None:
            raise ConnectionLostError(f"the Ray cluster has no fleet {fleet!r}; `rtlang serve --ray` makes one")
        self._directory: Any = found
        try:
            self.options: FleetOptions = ray.get(self._directory.options.remote(), timeout=START_TIMEOUT_S)
        except RayError as error:
            raise ConnectionLostError(
                f"the directory of the fleet {fleet!r} does not answer: {one_line(error)}"
            ) from error

    def hear(self, held: tuple[str, ...], ready: tuple[str, ...], waiting: dict[str, float]) -> Roster:
        try:
            answer = self._directory.hear.remote(self._frontend, held, ready, waiting)
            roster: Roster = ray.get(answer, timeout=HEAR_TIMEOUT_S)
        except ActorDiedError as error:  # for good: Ray starts a directory again that was not ended
            logger.warning("the fleet %s has ended: %s", self.fleet, one_line(error))
            return Roster((), (), is_over=True)
        except RayError as error:
            raise EngineDeadError(
                f"the directory of the fleet {self.fleet!r} does not answer: {one_line(error)}"
            ) from error
        return roster

    def leave(self) -> None:
        try:
            ray.get(self._directory.leave.remote(self._frontend), timeout=HEAR_TIMEOUT_S)
        except ActorDiedError:
            logger.debug("the fleet %s has ended", self.fleet)
        except RayError as error:
            logger.warning("the fleet %s does not know that this frontend has ended: %s", self.fleet, one_line(error))


def _check_same_model(name: str, found: FleetOptions, wanted: FleetOptions | None) -> None:
    if wanted is None:
        return
    model, theirs = (RuntimeConfig(**each.settings).model for each in (wanted, found))
    if model != theirs:
        raise ConfigError("model", model, f"the fleet {name!r} runs {theirs}; choose another name with --fleet")
    if differences := _differences(wanted, found):
        logger.warning(
            "the fleet %s keeps the options of the frontend that created it: %s", name, ", ".join(differences)
        )


def _differences(wanted: FleetOptions, found: FleetOptions) -> list[str]:
    """The options that differ, each with the value of the fleet and the one that was asked for, secrets without their values; the size at
    first does not count.
    """
    theirs, ours, secret = _plain_options(found), _plain_options(wanted), secret_settings(RuntimeConfig)
    names = [name for name in theirs if theirs[name] != ours[name]]
    return [name if name in secret else f"{name} = {theirs[name]!r}, not {ours[name]!r}" for name in names]


def _plain_options(options: FleetOptions) -> dict[str, Any]:
    """All options under their names, the settings of the engines as they count."""
    config = asdict(RuntimeConfig(**options.settings))
    rest = {
        name: value for name, value in asdict(options).items() if name not in ("settings", "scaling", "num_replicas")
    }
    return config | asdict(options.scaling) | rest


def _num_local_cpus(options: FleetOptions) -> int:
    """Processors that a local Ray must be able to give away: a replica more than there will be, for rolling updates."""
    num_cpus, _ = resources_of(RuntimeConfig(**options.settings))
    return (options.scaling.max_replicas + options.scaling.num_spares + 1) * num_cpus
