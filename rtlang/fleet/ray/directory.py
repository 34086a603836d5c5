"""An actor that owns the plan of a fleet: it creates and ends the actors of the engines, as the frontends report their load.

There is one for each fleet, under a name that every frontend knows. Ray starts it again when it dies; it then finds the engines by their
names, and the frontends go on to report. While it is away, frontends work with the engines that they have.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.contract.process.logs import LogFormat, configure_logs
from rtlang.fleet.ray.engine_actor import NAMESPACE, actor_name, create_engine_actor, resources_of
from rtlang.fleet.ray.head import one_line
from rtlang.fleet.replicas.fleet_plan import LEAVE_TIMEOUT_S, ORPHAN_TIMEOUT_S, FleetPlan, Roster
from rtlang.fleet.replicas.scaling import Scaling

logger = logging.getLogger(__name__)

DIRECTORY = "directory"
PLAN_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """How a fleet is made; the first frontend decides.

    Args:
        settings: fields of each engine's RuntimeConfig that differ from their defaults.
        num_replicas: its size at first.
        orphan_timeout_s: seconds without any frontend after which the fleet ends; None for never.
    """

    settings: dict[str, Any]
    scaling: Scaling = field(default_factory=Scaling)
    num_replicas: int | None = None
    orphan_timeout_s: float | None = ORPHAN_TIMEOUT_S
    log_level: str = "WARNING"
    log_form: str = LogFormat.TEXT.value


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The state of a fleet, for people.

    Attributes:
        waiting: tokens that wait, by replica.
    """

    name: str
    model: str
    roster: Roster
    waiting: dict[str, float]
    frontends: tuple[str, ...]
    scaling: Scaling
    is_replacing: bool


class FleetDirectory:
    """The plan of one fleet; methods are called through Ray, one at a time."""

    def __init__(self, fleet: str, options: FleetOptions) -> None:
        configure_logs(options.log_level, is_json=LogFormat(options.log_form) is LogFormat.JSON, process="directory")
        self._fleet, self._options = fleet, options
        self._config = RuntimeConfig(**options.settings)
        self._plan = FleetPlan(
            options.scaling,
            time.monotonic(),
            num_replicas=options.num_replicas,
            names=_existing_replicas(fleet),
            orphan_timeout_s=options.orphan_timeout_s,
        )
        self._lock = threading.Lock()  # guards the plan, and the actors that follow from it
        self._has_ended = threading.Event()
        self._advance()
        self._thread = threading.Thread(target=self._run, name="rtlang-plan", daemon=True)
        self._thread.start()

    def options(self) -> FleetOptions:
        """How the fleet was made."""
        return self._options

    def hear(self, frontend: str, held: tuple[str, ...], ready: tuple[str, ...], waiting: dict[str, float]) -> Roster:
        """See `FleetPlan.hear`."""
        with self._lock:
            return self._plan.hear(frontend, time.monotonic(), held=held, ready=ready, waiting=waiting)

    def leave(self, frontend: str) -> None:
        """See `FleetPlan.leave`."""
        with self._lock:
            self._plan.leave(frontend)

    def replace_all(self) -> None:
        """See `FleetPlan.replace_all`."""
        with self._lock:
            self._plan.replace_all()

    def scale(self, scaling: Scaling) -> None:
        """See `FleetPlan.scale`."""
        with self._lock:
            self._plan.scale(scaling)

    def status(self) -> FleetStatus:
        """The state of the fleet."""
        plan = self._plan
        with self._lock:
            return FleetStatus(
                self._fleet,
                self._config.model,
                plan.roster,
                plan.waiting,
                plan.frontends,
                plan.scaling,
                plan.is_replacing,
            )

    def stop(self) -> None:
        """See `FleetPlan.stop`. The engines and the directory end within seconds."""
        with self._lock:
            self._plan.stop(time.monotonic())

    def _run(self) -> None:
        while not self._has_ended.wait(PLAN_INTERVAL_S):
            try:
                self._advance()
            except RayError as error:
                logger.error("the plan of the fleet %s could not be carried out: %s", self._fleet, one_line(error))

    def _advance(self) -> None:
        with self._lock:
            if self._has_ended.is_set():
                return
            changes = self._plan.advance(time.monotonic(), has_room=self._has_room())
            for replica in changes.created:
                logger.info("the fleet %s gets the replica %s", self._fleet, replica)
                log = (self._options.log_level, self._options.log_form)
                create_engine_actor(self._fleet, replica, self._config, self._options.settings, log)
            self._kill(changes.ended)
            if changes.is_over:
                orphaned = f"it had no frontend for {self._options.orphan_timeout_s} s"
                logger.warning("the fleet %s ends: %s", self._fleet, "stopped" if self._plan.is_stopped else orphaned)
                self._has_ended.set()
        if changes.is_over:
            _end_directory(self._fleet)

    def _kill(self, replicas: tuple[str, ...]) -> None:
        for replica in replicas:
            logger.info("the replica %s of the fleet %s ends", replica, self._fleet)
            kill_actor(actor_name(self._fleet, replica))

    def _has_room(self) -> bool:
        """Whether the cluster has what one more replica takes."""
        if not self._plan.is_replacing:
            return True
        num_cpus, num_gpus = resources_of(self._config)
        free = ray.available_resources()
        return bool(free.get("CPU", 0.0) >= num_cpus and free.get("GPU", 0.0) >= num_gpus)


def create_directory(fleet: str, options: FleetOptions) -> Any:
    """The handle of the directory of a fleet, created if there is none; the fleet keeps its options if there is one."""
    return (
        ray.remote(FleetDirectory)
        .options(
            name=actor_name(fleet, DIRECTORY),
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=-1,
        )
        .remote(fleet, options)
    )


def find_directory(fleet: str) -> Any | None:
    """The handle of the directory of a fleet; None if there is no such fleet."""
    try:
        return ray.get_actor(actor_name(fleet, DIRECTORY), namespace=NAMESPACE)
    except ValueError:
        return None


def fleet_names() -> list[str]:
    """The fleets of the cluster."""
    suffix = "/" + DIRECTORY
    return sorted(name.removesuffix(suffix) for name in _actor_names() if name.endswith(suffix))


def fleet_status(fleet: str, timeout_s: float = 30.0) -> FleetStatus | None:
    """The state of a fleet; None if there is none of this name.

    Raises:
        EngineDeadError: its directory does not answer.
    """
    return _ask(fleet, "status", timeout_s)  # type: ignore[no-any-return]


def replace_fleet(fleet: str, timeout_s: float = 30.0) -> bool:
    """Begin to replace all replicas of a fleet, one at a time; returns whether there is such a fleet.

    Raises:
        EngineDeadError: its directory does not answer.
    """
    is_there = find_directory(fleet) is not None
    _ask(fleet, "replace_all", timeout_s)
    return is_there


def scale_fleet(fleet: str, scaling: Scaling, timeout_s: float = 30.0) -> bool:
    """Change the bounds of a fleet; returns whether there is such a fleet.

    Raises:
        EngineDeadError: its directory does not answer.
    """
    is_there = find_directory(fleet) is not None
    _ask(fleet, "scale", timeout_s, scaling)
    return is_there


def end_fleet(fleet: str, timeout_s: float = 30.0) -> bool:
    """End all actors of a fleet, of one that has lost its directory as well; returns whether there were any.

    Its frontends are told first, so that they end as well instead of looking for other engines.
    """
    directory = find_directory(fleet)
    if directory is not None:
        try:
            ray.get(directory.stop.remote(), timeout=timeout_s)
            _wait_for_end(fleet)
        except RayError as error:
            logger.warning("the directory of the fleet %s does not answer: %s", fleet, one_line(error))
        _end_directory(fleet)
    left = [name for name in _actor_names() if name.startswith(fleet + "/")]
    for name in left:
        kill_actor(name)
    return directory is not None or bool(left)


def _wait_for_end(fleet: str) -> None:
    """Wait until a fleet that was stopped has ended, as long as that should take."""
    end = time.monotonic() + LEAVE_TIMEOUT_S + 3 * PLAN_INTERVAL_S
    while find_directory(fleet) is not None and time.monotonic() < end:
        time.sleep(PLAN_INTERVAL_S / 10)


def _ask(fleet: str, method: str, timeout_s: float, *args: Any) -> Any:
    directory = find_directory(fleet)
    if directory is None:
        return None
    try:
        return ray.get(getattr(directory, method).remote(*args), timeout=timeout_s)
    except RayError as error:
        raise EngineDeadError(f"the directory of the fleet {fleet!r} does not answer: {one_line(error)}") from error


def kill_actor(name: str) -> None:
    """End an actor for good; does nothing if there is none."""
    with contextlib.suppress(ValueError):
        ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)


def _end_directory(fleet: str) -> None:
    kill_actor(actor_name(fleet, DIRECTORY))


def _existing_replicas(fleet: str) -> list[str]:
    """The replicas of a fleet that have actors, in the order of their numbers."""
    prefix = fleet + "/"
    found = [name.removeprefix(prefix) for name in _actor_names() if name.startswith(prefix)]
    return sorted((name for name in found if name != DIRECTORY), key=lambda name: (len(name), name))


def _actor_names() -> list[str]:
    named = ray.util.list_named_actors(all_namespaces=True)
    return [each["name"] for each in named if each["namespace"] == NAMESPACE]
